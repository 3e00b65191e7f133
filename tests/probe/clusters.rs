//! A service whose store is a cluster of three masters.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::faults::FAULTS;
use crate::stage::{PAYMENT, verdicts};
use crate::support::cluster::Cluster;
use crate::support::probe_service::{Config, ProbeService};
use crate::support::{Running as _, Runs as _, wire};

/// Long enough for a change on a busy machine while the handler runs.
const HANDLER: Duration = Duration::from_millis(600);

/// A key of another program, on each master.
const OTHERS: [&str; 3] = ["other:{a}", "other:{b}", "other:{c}"];

/// The faults are made and the records removed on whichever master has the key.
#[test]
fn faults_are_made_and_records_removed_on_a_cluster() {
    let cluster = Cluster::start(3);
    let mut masters: Vec<_> = OTHERS.map(|key| cluster.owner(key)).to_vec();
    masters.sort_unstable();
    assert_eq!(masters, [0, 1, 2]);
    for key in OTHERS {
        cluster.set(key, "x", 600_000);
    }
    let redis = format!("redis://127.0.0.1:{}", cluster.port(0));
    let config = Config::correct(wire::schema("express"), redis, HANDLER);
    let service = ProbeService::start(config).unwrap();

    let mut command = cluster.command();
    command.args(["probe", &service.url("/payments"), "-d", PAYMENT, "--schema", "express"]);
    command.args(["--effects", &service.url("/effects"), "--faults", "-o", "json"]);
    let run = command.args(["--only", &format!("{FAULTS},concurrent-keys")]).run();

    let found = verdicts(&run);
    for id in ["fault-lock-expires", "fault-result-expires"] {
        let (verdict, message) = &found[id];
        assert_eq!(verdict, "reported", "{id}: {}", run.all());
        assert!(message.contains("executed 2 times"), "{id}: {message}");
    }
    let (_, message) = &found["fault-foreign-value"];
    assert!(message.contains("kept the value"), "{message}");
    assert_eq!(found["concurrent-keys"].0, "pass", "{}", run.all());
    let records = run.json()["records"].clone();
    assert_eq!(records["kept"], serde_json::json!([]), "{}", run.all());
    assert_eq!(records["not_found"], serde_json::json!([]), "{}", run.all());
    assert_eq!(cluster.size(), OTHERS.len(), "{}", run.all());
}

/// A lock and a result in different slots.
const APART: &str = r#"format = 2
name = "apart"
keys = { lock = "apart-lock:{key}", result = "apart-result:{key}" }
ttl = { lock = "60s", result = "24h" }

[[value]]
name = "held"
at = "lock"
equals = "1"
state = "in-progress"

[[value]]
name = "done"
at = "result"
equals = "1"
state = "completed"
"#;

/// Rule: a record whose Redis keys are in several slots stays as a whole, and is named.
/// Revert: if the Redis keys of one slot are removed, half of the record is left.
#[test]
fn a_record_in_several_slots_stays_and_is_named() {
    let cluster = Cluster::start(3);
    let redis = format!("redis://127.0.0.1:{}", cluster.port(0));
    let config = Config::correct(wire::schema("express"), redis, Duration::from_millis(100));
    let service = ProbeService::start(config).unwrap();
    cluster.node(0).describe("apart", &[("schema.toml", APART)]);

    let mut command = cluster.command();
    command.args(["probe", &service.url("/payments"), "-d", PAYMENT, "--schema", "express"]);
    command.args(["--schema", "apart", "--only", "replay-status", "-o", "json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    let mut keys = Vec::new();
    while keys.is_empty() && began.elapsed() < Duration::from_secs(30) {
        for master in 0..3 {
            keys.extend(cluster.node(master).keys());
        }
    }
    let key = keys[0].strip_prefix("idem:").unwrap();
    let halves = [format!("apart-lock:{key}"), format!("apart-result:{key}")];
    assert_ne!(cluster.slot(&halves[0]), cluster.slot(&halves[1]));
    for half in &halves {
        cluster.set(half, "1", 600_000);
    }
    let run = child.ends().exits(0);
    for half in &halves {
        assert_eq!(cluster.get(half).as_deref(), Some("1"), "{half}: {}", run.all());
    }
    let why = "its Redis keys are in several slots of the cluster";
    let kept = serde_json::json!([{ "key": key, "why": why }]);
    assert_eq!(run.json()["records"]["kept"], kept, "{}", run.all());
}
