//! Locks that never expire: what ends them, and which findings say so.

use serde_json::json;

use crate::support::{FOREVER, Server};

const HOUR: u64 = 3_600_000;

const REFERENCE_LOCK: &str =
    r#"{"state":"in-progress","owner":"o","fingerprint":"f","created_at":1795806000000}"#;

/// Rule: a lock without TTL that the next request gives one blocks nobody indefinitely, and no
/// command says that it does. Revert: without `gives_ttl` in the schema of the reference.
#[test]
fn a_lock_to_which_begin_gives_a_ttl_is_no_orphan() {
    let server = Server::holding(&[("idemkey:p", REFERENCE_LOCK, FOREVER)]);
    let inspect = server.idemctl(&["inspect", "p", "--schema", "reference"]);
    inspect.shows("conflict (409 Conflict) until the lock expires; it has no TTL, and this request gives it one");
    inspect.shows("warning no-expiry: the lock never expires until a retry gives it a TTL");
    assert!(!inspect.text().contains("indefinitely"), "{}", inspect.text());
    let json = server.idemctl(&["inspect", "p", "--schema", "reference", "-o", "json"]).json();
    assert_eq!(json["records"][0]["next_request"]["gives_ttl"], true, "{json}");
    let check = server.idemctl(&["check", "--schema", "reference"]).exits(1);
    check.shows("WARNING - 1 lock of reference without TTL until the next retry, e.g. p");
    let json = server.idemctl(&["check", "--schema", "reference", "-o", "json"]).exits(1).json();
    assert_eq!((&json["given_ttl"], &json["findings"][0]["count"]), (&json!(1), &json!(0)));
    // What is predicted is what the script does.
    let begin = ["begin", "p", "--schema", "reference", "--fingerprint", "f", "--yes"];
    server.idemctl(&begin).exits(1);
    server.idemctl(&["check", "--schema", "reference"]).exits(0);
    let inspect = server.idemctl(&["inspect", "p", "--schema", "reference"]);
    inspect.shows("conflict (409 Conflict) for another");
    // Nobody may retry, so that a sweep still removes such a lock.
    server.send::<()>(&[b"PERSIST", b"idemkey:p"]);
    let sweep = ["sweep", "--schema", "reference", "--orphaned", "--grace", "0s", "--yes"];
    server.idemctl(&sweep).exits(0).says("Swept: 1 of 1 lock done");
}

/// The reference under another name, with one text of its schema replaced.
fn variant(from: &str, to: &str) -> Server {
    let server = Server::start();
    let toml = include_str!("../../lua/reference/schema.toml");
    assert!(toml.contains(from), "{from}");
    let toml = toml.replacen(from, to, 1).replace("name = \"reference\"", "name = \"mine\"");
    let mut files = vec![("schema.toml", toml.as_str())];
    for (name, text) in [
        ("begin.lua", include_str!("../../lua/reference/begin.lua")),
        ("renew.lua", include_str!("../../lua/reference/renew.lua")),
        ("complete.lua", include_str!("../../lua/reference/complete.lua")),
        ("release.lua", include_str!("../../lua/reference/release.lua")),
    ] {
        files.push((name, text));
    }
    server.describe("mine", &files);
    server
}

/// Rule: only [begin] can have `gives_ttl`, and `schema check` compares it with what begin does.
/// Revert: without `given_ttl` in `sim/ttls.rs`.
#[test]
fn a_schema_says_truly_whether_begin_gives_a_ttl() {
    let check = ["schema", "check", "mine"];
    let server = variant("gives_ttl = true\n", "");
    server.idemctl(&check).shows("begin gives a lock without TTL one; write `gives_ttl = true`");
    let server = variant("[renew]\n", "[renew]\ngives_ttl = true\n");
    server.idemctl(&check).exits(1).shows("only [begin] can have it");
    let server = variant("name", "name");
    let run = server.idemctl(&check).exits(0);
    assert!(!run.all().contains("gives_ttl"), "{}", run.all());
}

/// Rule: an endless lock beside a result that cannot be read is an orphan, and it goes first.
/// Revert: without `State::Unreadable` in `no_expiry`.
#[test]
fn an_endless_lock_beside_an_unreadable_result_is_found_and_swept() {
    let server =
        Server::holding(&[("idem:started:k", "worker-1", FOREVER), ("idem:result:k", "{b", HOUR)]);
    let schema = ["--schema", "event-driven"];
    let of = |words: &[&str]| server.idemctl(&[words, &schema[..]].concat());
    let inspect = of(&["inspect", "k"]);
    inspect.shows("error no-expiry: the lock never expires");
    of(&["check"]).exits(2).shows("CRITICAL - 1 stuck lock (event-driven 1), e.g. k");
    of(&["sweep", "--orphaned", "--grace", "0s", "--yes"]).exits(0).says("Swept: 1 of 1 lock");
    assert_eq!(server.keys(), ["idem:result:k"]);
    // What is left is no lock, and still a value that a monitor can be told of.
    let check = of(&["check", "--include", "unreadable=WARNING"]).exits(1);
    check.shows("WARNING - 1 unreadable value (event-driven 1), e.g. k");
}

/// Rule: if begin looks at the lock first, a lock beside a result rejects retries now, and not only
/// once the result expires. Revert: without the answer in `no_expiry` of a completed record.
#[test]
fn a_lock_that_begin_looks_at_first_rejects_now() {
    let result = b"\x78\x9c\x9b\x7c\xe6\x44\xc3\xc4\x85\x15\x00\x12\x29\x04\x52\x3a\x31";
    let server = Server::holding(&[("idempo:lock:k", "o", FOREVER)]);
    server.send::<()>(&[b"SET", b"idempo:response:k", result]);
    let inspect = server.idemctl(&["inspect", "k", "--schema", "idempo"]);
    inspect
        .shows("error no-expiry: the lock never expires, so every retry is rejected indefinitely");
}

/// A service that stores failures, which begin replays, beside its lock.
const FAILURES: &str = r#"format = 2
name = "failures"
keys = { lock = "f:lock:{key}", result = "f:result:{key}" }
ttl = { lock = "30s", result = "24h" }

[[value]]
name = "failed"
written = "failed_value"

[write]
lock_value = "{owner}"
result_value = '{"state":"DONE","body":{body_json}}'
failed_value = '{"state":"FAILED","error":{error_text}}'

[[begin.call]]
command = ["GET", "{result}"]
replies = [
  { nil = true, means = "next" },
  { value = "completed", means = "replay" },
  { value = "failed", means = "replay" },
]

[[begin.call]]
command = ["SET", "{lock}", "{lock_value}", "NX", "PX", "{lock_ttl_ms}"]
replies = [
  { word = "OK", means = "acquired", when = { lock = "absent" } },
  { nil = true, means = "conflict", when = { lock = "present" }, client = "409 Conflict" },
]
"#;

/// Rule: a stored failure that begin replays is a result, also beside a lock. Revert: without
/// `Schema::replays` in the state of a record.
#[test]
fn a_lock_beside_a_failure_that_is_replayed_is_left_over() {
    let server = Server::holding(&[
        ("f:lock:k", "w-1", 20_000),
        ("f:result:k", r#"{"state":"FAILED","error":"e"}"#, HOUR),
    ]);
    server.describe("failures", &[("schema.toml", FAILURES)]);
    let schema = ["--schema", "failures"];
    let of = |words: &[&str]| server.idemctl(&[words, &schema[..]].concat());
    of(&["inspect", "k"]).shows("k  failed  failures");
    let listed = of(&["list", "--state", "failed", "-o", "jsonl"]).exits(0).json_lines();
    assert_eq!(listed.len(), 1);
    of(&["list", "--finding", "leftover-lock"]).exits(0).shows("leftover-lock");
    of(&["check", "--include", "leftover-lock=WARNING"]).exits(1).shows("1 leftover lock");
}

/// Rule: a lock of the schema that never expires is orphaned whatever another program wrote beside
/// it, and only the lock is removed. Revert: without `Author::OfLock`.
#[test]
fn an_endless_lock_beside_a_value_of_another_program_is_orphaned() {
    let server = Server::holding(&[
        ("idempo:lock:empty", "w", FOREVER),
        ("idempo:response:empty", "", HOUR),
        ("idempo:lock:shape", "w", FOREVER),
        ("idempo:response:shape", r#"{"a":1}"#, HOUR),
        ("idempo:lock:type", "w", FOREVER),
        ("idempo:lock:held", "w", HOUR),
        ("idempo:response:held", "", HOUR),
    ]);
    server.send::<()>(&[b"RPUSH", b"idempo:response:type", b"x"]);
    let schema = ["--schema", "idempo"];
    let run = |words: &[&str]| server.idemctl(&[words, &schema].concat());
    run(&["check"]).exits(2).shows("CRITICAL - 3 stuck locks (idempo 3)");
    run(&["list", "--finding", "no-expiry"]).exits(0).says("3 records among 8 keys");
    run(&["inspect", "empty"]).shows("indefinitely, because the lock never expires");
    run(&["inspect", "held"]).shows("until the lock expires");
    // A purge would remove the other value as well.
    let purge = ["purge", "--state", "unreadable", "--match", "empty", "--yes"];
    run(&purge).exits(3).says("matches no format of the schema");
    let sweep = ["sweep", "--orphaned", "--grace", "0s", "--yes"];
    run(&sweep)
        .exits(0)
        .says("Swept: 3 of 3 locks done")
        .says("unless a result or another value remains");
    for key in ["empty", "shape"] {
        assert!(server.get(&format!("idempo:lock:{key}")).is_none(), "{key}");
        assert!(server.get(&format!("idempo:response:{key}")).is_some(), "{key}");
    }
    let left: u64 = server.send(&[b"EXISTS", b"idempo:lock:type", b"idempo:response:type"]);
    assert_eq!(left, 1, "the list stays");
    assert!(server.get("idempo:lock:held").is_some());
    let check = run(&["check"]).exits(1);
    check
        .shows("WARNING - keys under idempo's prefix that do not match schema idempo: 3")
        .shows("orphaned=0");
}

/// Rule: a lock with more than a year left is stuck without a stated TTL, if its Redis key holds
/// nothing but locks. Elsewhere it is a finding, and no orphan.
#[test]
fn a_lock_with_more_than_a_year_left_is_stuck() {
    let two_years = 2 * 365 * 24 * HOUR;
    let server = Server::holding(&[
        ("idem:started:far", "worker-1", two_years),
        ("idempotency:far", r#"{"status":"PENDING"}"#, two_years),
        ("idem:started:near", "worker-1", 300 * 24 * HOUR),
    ]);
    let inspect = server.idemctl(&["inspect", "far", "--schema", "event-driven"]).exits(0);
    inspect.shows("error excess-ttl: the lock expires in 7");
    let listed = server.idemctl(&["list", "--finding", "excess-ttl", "-o", "csv"]).exits(0);
    assert_eq!(listed.text().matches("~excess-ttl").count(), 1, "{}", listed.text());
    let check = server.idemctl(&["check"]).exits(2);
    check.shows("CRITICAL - 1 excess-ttl lock (event-driven 1), e.g. far");
    check.shows("no_expiry=0;;0 excess_ttl=1;;0");
    let json = server.idemctl(&["check", "-o", "json"]).exits(2).json();
    assert_eq!(json["findings"][1]["code"], "excess-ttl", "{json}");
    let sweep = ["sweep", "--orphaned", "--yes", "--grace", "0s"];
    server.idemctl(&sweep).exits(0).shows("excess-ttl      1");
    assert_eq!(server.keys(), ["idem:started:near", "idempotency:far"]);
}

/// Locks whose value is the time at which they were acquired.
const TIMED: &str = r#"format = 2
name = "timed"
keys = { lock = "timed:{key}" }
ttl = { lock = "30s" }
[[value]]
name = "held"
encoding = "text"
opaque = true
state = "in-progress"
timestamp = "s"
fields = { created_at = "" }
"#;

/// Rule: a time in the value that does not fit the TTL is not shown without a remark, and one that
/// shows a TTL far below the stated one is a finding.
#[test]
fn a_time_in_a_lock_is_compared_with_its_ttl() {
    let server = Server::start();
    server.describe("timed", &[("schema.toml", TIMED)]);
    let seconds: Vec<u64> = server.send(&[b"TIME"]);
    server.set("timed:old", (seconds[0] - 15_000_000).to_string(), 26_000);
    server.set("timed:short", (seconds[0] - 5).to_string(), 295_000);
    let old = server.idemctl(&["inspect", "old", "--schema", "timed"]).exits(0);
    old.shows(
        "(by the time in the record); this time, or the lock TTL of 30s, is wrong, unless the",
    );
    let inspect = ["inspect", "short", "--schema", "timed", "--lock-ttl"];
    let short = server.idemctl(&[&inspect[..], &["20m"]].concat()).exits(0);
    short.shows("warning short-lock-ttl: the lock expires 5m").shows("lock TTL is 20m");
    let fits = server.idemctl(&[&inspect[..], &["5m"]].concat()).exits(0);
    assert!(!fits.text().contains("short-lock-ttl"), "{}", fits.text());
}
