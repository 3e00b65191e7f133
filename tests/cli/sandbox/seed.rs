//! What a sandbox is filled with.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use idemctl::domain::diagnosis::{FindingCode, Thresholds};
use idemctl::domain::record::locate;
use idemctl::domain::schema::catalog::Catalog;
use idemctl::sim::seed;
use idemctl::store::connect;
use idemctl::store::{Address, ReadLimit, Sandbox, SandboxKey, Target};

use crate::simulate::variant::{home, path, run};
use crate::support::wire;

/// When seeded records were begun.
const NOW_MS: u64 = 1_700_000_000_000;

#[test]
fn seeding_says_what_it_wrote() {
    let home = home();
    let run =
        run(home.path(), &["sandbox", "--seed", "5", "--schema", "express", "--", "true"]).exits(0);
    run.says("contains 5 records of 1 schema (5 Redis keys)");
}

/// Rule: the context is that of another server.
#[test]
fn a_sandbox_has_the_records_of_all_schemas_whatever_the_context_names() {
    let home = home();
    let folder = home.path().join(".config/idemctl");
    std::fs::create_dir_all(&folder).unwrap();
    let config = "default_context = \"prod\"\n[contexts.prod]\nurl = \"redis://localhost:1\"\nschema = [\"go-chi\"]\n";
    std::fs::write(folder.join("config.toml"), config).unwrap();
    run(home.path(), &["sandbox", "--seed", "5", "--", "true"])
        .exits(0)
        .says("records of 7 schemas");
    run(home.path(), &["sandbox", "--seed", "5", "--schema", "express", "--", "true"])
        .exits(0)
        .says("of 1 schema");
}

const OF_HASHES: &str = r#"
format = 2
name = "plain"
[keys]
record = "h:{key}"
[ttl]
lock = "1m"
result = "1h"
[[value]]
name = "held"
type = "hash"
where = { "/status" = "LOCKED" }
required = ["/owner"]
state = "in-progress"
fields = { owner = "/owner" }
"#;

/// Rule: nothing is warned of that needs no attention. A schema of hashes cannot be filled, which
/// only `-v` says.
#[test]
fn a_schema_that_cannot_be_filled_is_no_warning() {
    let home = home();
    let folder = home.path().join(".config/idemctl/schemas/plain");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("schema.toml"), OF_HASHES).unwrap();
    let filled = run(home.path(), &["sandbox", "--seed", "2", "--", "true"]).exits(0);
    filled.says("records of 7 schemas");
    assert!(!filled.stderr.contains("plain"), "{}", filled.all());
    run(home.path(), &["sandbox", "--seed", "2", "-v", "--", "true"])
        .exits(0)
        .says("Skipped schema plain: it stores hashes");
    // What is named is meant.
    run(home.path(), &["sandbox", "--seed", "2", "--schema", "plain", "--", "true"])
        .exits(2)
        .says("plain is not supported here");
}

/// Every schema, as deployed by default.
fn catalog() -> Catalog {
    Catalog::new(wire::built_in(), &[]).unwrap()
}

/// The codes of all findings on a server filled with so many records a schema, as a plain scan sees
/// them.
async fn codes(count: u64) -> BTreeSet<FindingCode> {
    let catalog = catalog();
    let folders: Vec<_> = std::env::split_paths(&path()).collect();
    let sandbox = Sandbox::start(&folders, &std::env::temp_dir()).await.unwrap();
    let like = Target::new(Address::Unix(PathBuf::new()));
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
    let entries: Vec<SandboxKey> =
        seed::entries(catalog.chosen(), count, now.try_into().unwrap()).collect();
    sandbox.fill(&like, entries.clone().into_iter()).await.unwrap();
    let mut reader = connect(&sandbox.target(&like)).await.unwrap().reader();
    let thresholds = Thresholds { overdue_ms: Some(20_000), ..Thresholds::default() };
    let mut codes = BTreeSet::new();
    for entry in entries {
        let Some((candidate, _)) = locate::for_redis_key(&catalog, &entry.redis_key) else {
            continue;
        };
        if candidate.schemas.iter().any(|schema| !schema.has_fixed_prefix()) {
            continue;
        }
        let mut seen = reader
            .read_or_fail(std::slice::from_ref(&candidate.redis_keys), ReadLimit::Bytes(65_536))
            .await
            .unwrap();
        for record in locate::records(&catalog, &candidate, seen.remove(0).unwrap(), &thresholds) {
            codes.extend(record.findings.iter().map(|finding| finding.code));
        }
    }
    codes
}

#[test]
fn every_finding_occurs_in_a_seed_of_three() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut expected: BTreeSet<_> = FindingCode::ALL.iter().copied().collect();
    // It needs a stated lock TTL, and no shipped service stores the time in its locks.
    expected.remove(&FindingCode::ShortLockTtl);
    for count in [3, 8, 20] {
        assert_eq!(runtime.block_on(codes(count)), expected, "--seed {count}");
    }
}

#[test]
fn a_seed_is_the_same_every_time_and_no_key_occurs_twice() {
    let catalog = catalog();
    let all: Vec<_> = seed::entries(catalog.chosen(), 300, NOW_MS).collect();
    assert_eq!(all, seed::entries(catalog.chosen(), 300, NOW_MS).collect::<Vec<_>>());
    let keys: BTreeSet<_> = all.iter().map(|entry| &entry.redis_key).collect();
    assert_eq!(keys.len(), all.len());
}

#[test]
fn a_seeded_schema_of_ones_own_gets_its_ailments_too() {
    let express: Vec<_> =
        catalog().all().iter().filter(|schema| schema.name == "express").map(Arc::clone).collect();
    let values: BTreeSet<_> =
        seed::entries(&express, 16, NOW_MS).map(|entry| entry.ttl_ms).collect();
    assert!(values.contains(&None), "a lock or a result without expiry is among them");
}
