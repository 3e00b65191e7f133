//! What counts as a stored result and as the holder of a lock, with protocols that take the lock first.

use std::fs;

use super::{EARLIER_FAULTS, Frontier, USUAL, frontier, only, ways};
use crate::simulate::variant::{MINE, Variant, home, run};

/// The folder with the schemas of these tests.
const SCHEMAS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/explore/schemas");

/// The published libraries that idemctl describes.
const LIBRARIES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/lua/libraries");

/// No worker may be late, and no result may end.
const ASSUMING: [&str; 2] = ["--assume", "critical-section,results-outlive-retries"];

fn explored_in(dir: &str, schema: &str, words: &[&str]) -> Frontier {
    let of = ["explore", schema, "--schema-dir", dir, "--sandbox", "-o", "json"];
    frontier(&only(&run(home().path(), &[&of, words].concat())))
}

/// Rule: a result that a lock hides is stored, so taking the lock does not remove it.
#[test]
fn a_lock_that_hides_a_result_does_not_remove_it() {
    let late = ways(&[("one-effect", &[("expiry=1", 7)])]);
    assert_eq!(explored_in(SCHEMAS, "lock-then-look", &["--faults", EARLIER_FAULTS]), late);
    assert!(!explored_in(LIBRARIES, "idempo", &[]).contains_key("result-kept"));
}

/// Rule: a result that is removed while a lock hides it is removed.
#[test]
fn a_result_that_is_removed_under_a_lock_is_not_kept() {
    let broken = explored_in(SCHEMAS, "release-both", &["--faults", EARLIER_FAULTS]);
    assert_eq!(broken["result-kept"], [("expiry=1 fail=1".to_owned(), 7)]);
    // A failed worker deletes the result under the next worker's lock.
    let token = "1:release-both,release-both,release-both:s0.e0.x0.s1.s0.f1.s1";
    let words = ["explore", "--replay", token, "--schema-dir", SCHEMAS, "--sandbox"];
    run(home().path(), &words).exits(1).shows("Broken: result-kept");
}

/// Rule: a result that begin does not find is stored, too, so the next one replaces it.
#[test]
fn a_result_that_begin_does_not_find_is_replaced() {
    let misspelt = Variant::of("event-driven").with(
        "idempotency.lua",
        "local result_key = 'idem:result:' .. key",
        "local result_key = 'idem:results:' .. key",
    );
    let broken = explored_in(misspelt.folder().to_str().unwrap(), MINE, &["--faults", "none"]);
    assert_eq!(broken["result-not-replaced"], [(String::new(), 6)]);
}

/// Rule: under the assumption that results outlive retries, no stored result ends, even under a lock.
#[test]
fn an_assumption_spares_a_result_that_a_lock_hides() {
    assert_eq!(explored_in(SCHEMAS, "lock-then-look", &ASSUMING), ways(&[]));
}

/// Rule: a worker that only reads does not become the holder of another worker's lock, and the critical section begins after
/// the last call that touches the lock.
#[test]
fn a_worker_that_only_reads_does_not_hold_anothers_lock() {
    let late = ways(&[("one-effect", &[("expiry=1", 7)])]);
    for (dir, schema) in [(SCHEMAS, "lock-then-get"), (LIBRARIES, "idempo")] {
        let earlier = ["--faults", EARLIER_FAULTS];
        assert_eq!(explored_in(dir, schema, &earlier), late, "{schema}");
        assert_eq!(explored_in(dir, schema, &ASSUMING), ways(&[]), "{schema}");
    }
}

/// Rule: what is wrong with the made-up response is no fault of the service.
#[test]
fn a_schema_that_cannot_read_a_made_up_response_is_refused() {
    let toml = fs::read_to_string(format!("{LIBRARIES}/midaz/schema.toml")).unwrap();
    let is_sample = |line: &&str| line.starts_with("sample_body = ");
    let sample = toml.lines().find(is_sample).unwrap();
    let folder = home();
    fs::create_dir(folder.path().join("midaz")).unwrap();
    fs::write(folder.path().join("midaz/schema.toml"), toml.replace(sample, "")).unwrap();
    let words = ["explore", "midaz", "--schema-dir", ".", "--sandbox"];
    let refused = run(folder.path(), &words).exits(2);
    refused.says("do not read the result that `[write]` makes").says("with `sample_body`");
}

/// Rule: workers return the sample body, each with its own name, so that the formats read it.
#[test]
fn a_sample_body_lets_a_schema_be_explored() {
    let expected = ways(&[
        ("one-effect", &[("expiry=1", 5)]),
        ("result-not-replaced", &[("expiry=1", 7)]),
        ("owner-only", &[("expiry=1", 5)]),
    ]);
    assert_eq!(explored_in(LIBRARIES, "midaz", &["--faults", USUAL]), expected);
    assert_eq!(explored_in(LIBRARIES, "midaz", &ASSUMING), ways(&[]));
}

/// A lock that names no owner, after which begin looks for the result.
fn unnamed() -> Variant {
    Variant::of("event-consumer").with_block(
        "schema.toml",
        ("[[begin.call]]", "[complete]"),
        r#"[[begin.call]]
command = ["SET", "{lock}", "{lock_value}", "NX", "EX", "{lock_ttl}"]
replies = [
  { word = "OK", means = "next" },
  { nil = true, means = "conflict", when = { lock = "present" }, client = "negative acknowledgement, redelivered" },
]

[[begin.call]]
command = ["EXISTS", "{result}"]
replies = [
  { integer = 1, means = "replay", when = { result = "present" }, client = "acknowledged" },
  { integer = 0, means = "acquired", when = { lock = "absent" } },
]

"#,
    )
}

/// Rule: without an owner in the lock, its holder is the worker that wrote it.
#[test]
fn the_holder_of_a_lock_without_owner_is_who_wrote_it() {
    let mine = unnamed();
    let dir = mine.folder().to_str().unwrap();
    // Worker 1 takes the lock, and looks for the result only after worker 2 has taken it.
    let token = "1:mine,mine:s0.x0.s1.s0.s1.e1.s1";
    let words = ["explore", "--replay", token, "--schema-dir", dir, "--sandbox", "-o", "json"];
    let replayed = only(&run(mine.folder(), &words).exits(0));
    let line = &replayed["replay"]["trace"][3];
    assert_eq!(line["holds"], "lock of worker 2, 1m", "{replayed:#}");

    // A SET that overwrites a lock takes it, although the value and its TTL stay the same.
    let blind = Variant::of("event-consumer").with("schema.toml", "\"NX\", ", "");
    let dir = blind.folder().to_str().unwrap();
    let broken = explored_in(dir, MINE, &["--faults", "none"]);
    assert_eq!(broken["owner-only"], [(String::new(), 6)], "{broken:?}");
}

/// Rule: time passes until a value expires by its own time, although its Redis key has no TTL.
#[test]
fn a_lock_ends_by_the_expiry_in_its_value() {
    let broken = explored_in(SCHEMAS, "expires-at", &[]);
    assert!(!broken.contains_key("lock-ends"), "{broken:?}");
    let words =
        ["--faults", "expiry=2,crash=0,fail=0,late-fail=0", "--assume", "results-outlive-retries"];
    let late = explored_in(SCHEMAS, "expires-at", &words);
    assert_eq!(late, ways(&[("one-effect", &[("expiry=1", 5)])]));
    let token = "1:expires-at,expires-at:s0.t0.s1";
    let words = ["explore", "--replay", token, "--schema-dir", SCHEMAS, "--sandbox"];
    let text = run(home().path(), &words).exits(0).text();
    assert!(text.contains("✗ the lock's own expiry passes"), "{text}");
    assert!(text.contains("lock of worker 2, 30s"), "{text}");
}

/// Rule: what is printed can be pasted.
#[test]
fn the_line_that_replays_a_history_runs_as_printed() {
    let words = ["explore", "release-both", "--schema-dir", SCHEMAS, "--sandbox", "--faults"];
    let text = run(home().path(), &[&words[..], &[EARLIER_FAULTS]].concat()).text();
    let line = text.lines().find(|line| line.contains("--replay ")).unwrap();
    let printed = shlex::split(line.trim().strip_prefix("idemctl ").unwrap()).unwrap();
    let printed: Vec<_> = printed.iter().map(String::as_str).collect();
    run(home().path(), &printed).shows("Broken: ");
}
