//! A library whose client goes by an expiry in the value, whatever TTL the Redis key has: past it the next request takes the
//! key over.

use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::support::terminal::{ends, on_terminal, press};
use crate::support::{Runs as _, Server, backup};

const TOML: &str = r#"
format = 2
name = "lambda"
keys = { record = "{prefix}{key}", prefix = "payments-prod.handler#" }
ttl = { lock = "1m", result = "1h" }

[[value]]
name = "running"
where = { "/status" = "INPROGRESS" }
required = ["/status", "/expiration"]
optional = ["/in_progress_expiration"]
state = "in-progress"
expires_at = { field = "/in_progress_expiration", unit = "ms", past = "reclaimable" }

[[value]]
name = "done"
where = { "/status" = "COMPLETED" }
required = ["/status", "/expiration", "/data"]
optional = ["/validation"]
state = "completed"
fields = { body = "/data", fingerprint = "/validation" }
expires_at = { field = "/expiration", unit = "s", past = "reclaimable" }

[write]
lock_value = '{"status": "INPROGRESS", "expiration": {result_expires_s}, "in_progress_expiration": {lock_expires_ms}}'
result_value = '{"data": {body_text}, "status": "COMPLETED", "expiration": {result_expires_s}}'

[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "NX", "EX", "{result_ttl}"]
replies = [
  { word = "OK", means = "acquired", when = { record = "absent" } },
  { nil = true, means = "next" },
]

[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { value = "done", means = "replay" },
  { value = "running", means = "conflict", client = "IdempotencyAlreadyInProgressError" },
  { nil = true, means = "conflict" },
  { text = true, means = "next" },
]

[[begin.call]]
command = ["SET", "{record}:lock", "True", "NX", "EX", "10"]
replies = [
  { word = "OK", means = "next" },
  { nil = true, means = "conflict" },
]

[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "EX", "{result_ttl}"]
replies = [{ word = "OK", means = "acquired", when = { record = "reclaimable" } }]

[[complete.call]]
command = ["SET", "{record}", "{result_value}", "EX", "{result_ttl}"]
replies = [{ word = "OK", means = "stored", when = {} }]

[[release.call]]
command = ["DEL", "{record}"]
replies = [{ integer = 1, means = "released", when = { record = "present" } }, { integer = 0, means = "refused" }]
"#;

fn with_schema() -> Server {
    let server = Server::start();
    server.describe("lambda", &[("schema.toml", TOML)]);
    server
}

/// A lock that its Redis key keeps for an hour, and that ends in so many milliseconds by what it holds.
fn lock(server: &Server, key: &str, ends_in_ms: i64) {
    let now = i64::try_from(backup::now_ms(server)).unwrap();
    let (expires, ends) = (now / 1_000 + 3_600, now + ends_in_ms);
    let value = format!(
        r#"{{"status": "INPROGRESS", "expiration": {expires}, "in_progress_expiration": {ends}}}"#
    );
    server.set(&format!("payments-prod.handler#{key}"), value, 3_600_000);
}

fn inspected(server: &Server, key: &str) -> Value {
    server.idemctl(&["inspect", key, "--schema", "lambda", "-o", "json"]).exits(0).json()["records"]
        [0]
    .clone()
}

#[test]
fn the_file_is_sound() {
    with_schema()
        .idemctl(&["schema", "check", ".config/idemctl/schemas/lambda"])
        .exits(0)
        .shows("lambda: ok");
}

#[test]
fn a_lock_ends_by_what_it_holds() {
    let server = with_schema();
    lock(&server, "live", 600_000);
    lock(&server, "dead", -600_000);
    let (live, dead) = (inspected(&server, "live"), inspected(&server, "dead"));
    assert_eq!(
        (&live["next_request"]["answer"], &live["own_expiry"]["is_past"]),
        (&"conflict".into(), &false.into())
    );
    let until = live["next_request"]["until_ms"].as_u64().unwrap();
    assert!((500_000..=600_000).contains(&until), "{until}");
    assert_eq!(
        (&dead["next_request"]["answer"], &dead["own_expiry"]["is_past"]),
        (&"execute".into(), &true.into())
    );
    assert_eq!(
        (&dead["state"], &dead["own_expiry"]["clock"]),
        (&"in-progress".into(), &"client".into())
    );
    for record in [&live, &dead] {
        assert_eq!(record["findings"], serde_json::json!([]), "the Redis key's TTL is no lock's");
    }
    let page = server.idemctl(&["inspect", "dead", "--schema", "lambda"]).exits(0);
    page.shows(
        "the next request may take the key over (/in_progress_expiration; by the clients' clock, \
        compared here with the server's)",
    );
    page.shows("executes the operation, because the stored value has passed its own expiry");
}

/// Rule: the TTL of the Redis key does not decide when such a lock ends, so that it is not extended.
#[test]
fn a_lock_that_ends_by_what_it_holds_is_not_extended() {
    let server = with_schema();
    lock(&server, "live", 600_000);
    let extend = ["extend", "live", "--schema", "lambda", "--for", "2h", "--yes"];
    server.idemctl(&extend).exits(2).says("its value contains its own expiry");
    let left = server.send::<i64>(&[b"PTTL", b"payments-prod.handler#live"]);
    assert!(left <= 3_600_000, "{left}");
}

/// Rule: without the field the lock is held until its Redis key ends.
#[test]
fn a_lock_without_the_field_is_held_until_its_ttl_ends() {
    let server = with_schema();
    server.set(
        "payments-prod.handler#plain",
        r#"{"status": "INPROGRESS", "expiration": 1}"#,
        3_600_000,
    );
    let plain = inspected(&server, "plain");
    assert_eq!(
        (&plain["next_request"]["answer"], &plain["own_expiry"]),
        (&"conflict".into(), &Value::Null)
    );
}

#[test]
fn a_result_past_its_expiry_is_replayed_no_more() {
    let server = with_schema();
    for (key, expires) in [("old", 1), ("new", 4_000_000_000_u64)] {
        let value =
            format!(r#"{{"data": "{{}}", "status": "COMPLETED", "expiration": {expires}}}"#);
        server.set(&format!("payments-prod.handler#{key}"), value, 3_600_000);
    }
    let answer = |key: &str| inspected(&server, key)["next_request"]["answer"].clone();
    assert_eq!((answer("old"), answer("new")), ("execute".into(), "replay".into()));
}

/// Rule: a lock that ends by itself is no orphan, and is not stuck without a TTL.
#[test]
fn a_lock_without_ttl_that_ends_by_what_it_holds_is_no_orphan() {
    let server = with_schema();
    lock(&server, "dead", -600_000);
    server.send::<()>(&[b"PERSIST", b"payments-prod.handler#dead"]);
    assert_eq!(inspected(&server, "dead")["findings"], serde_json::json!([]));
    server.idemctl(&["check", "--schema", "lambda"]).exits(0);
}

#[test]
fn begin_takes_over_what_has_lapsed_and_writes_when_the_lock_ends() {
    let server = with_schema();
    lock(&server, "live", 600_000);
    lock(&server, "dead", -600_000);
    let begin = |key: &str, exit: i32| {
        let run = server
            .idemctl(&["begin", key, "--schema", "lambda", "--yes", "-o", "json"])
            .exits(exit)
            .json();
        (run["step"]["foretold"].clone(), run["outcome"].clone())
    };
    assert_eq!(begin("live", 1), ("conflict".into(), "conflict".into()));
    assert_eq!(begin("dead", 0), ("acquired".into(), "acquired".into()));
    let taken = inspected(&server, "dead");
    assert_eq!(taken["own_expiry"]["is_past"], false);
    let value: Value =
        serde_json::from_slice(&server.get("payments-prod.handler#dead").unwrap()).unwrap();
    let (ends, expires) = (&value["in_progress_expiration"], &value["expiration"]);
    let now = backup::now_ms(&server);
    assert!((now..now + 60_001).contains(&ends.as_u64().unwrap()), "{value}");
    assert!(
        (now / 1_000 + 3_000..now / 1_000 + 3_601).contains(&expires.as_u64().unwrap()),
        "{value}"
    );
}

#[test]
fn races_and_simulations_go_by_it() {
    let server = with_schema();
    let race = [
        "race",
        "--schema",
        "lambda",
        "--strategy",
        "schema",
        "--rounds",
        "9",
        "--concurrency",
        "8",
        "--overlap",
    ];
    let run =
        server.idemctl(&[&race[..], &["--fail-every", "3", "-o", "json"]].concat()).exits(0).json();
    assert_eq!(run["runs"][0]["verdict"], "atomic");
    let words = [
        "simulate",
        "first-then-retry",
        "crash-before-complete",
        "--schema",
        "lambda",
        "-o",
        "json",
    ];
    let cells = server.idemctl(&words).json()["cells"].clone();
    assert_eq!((&cells[0]["verdict"], &cells[1]["verdict"]), (&"safe".into(), &"blocked".into()));
    assert_eq!(cells[1]["blocked_ms"], 60_000);
    let explored = server
        .idemctl(&["explore", "lambda", "--sandbox", "--workers", "2", "-o", "json"])
        .exits(1)
        .json();
    let harms = explored["schemas"][0]["harms"].as_array().unwrap();
    let broken: Vec<_> = harms.iter().map(|harm| harm["invariant"].as_str().unwrap()).collect();
    assert!(broken.contains(&"one-effect") && !broken.contains(&"true-replay"), "{broken:?}");
}

/// Rule: what is read back after a step is read by the clock of then, however long the operator thought
/// at the question. Revert: with the clock of the first read, the lock holds for 1m 2s.
#[test]
fn a_lock_that_is_taken_after_a_long_thought_holds_no_longer() {
    let server = with_schema();
    let words = ["begin", "k", "--schema", "lambda"];
    let mut session = on_terminal(server.command(), &words);
    session.exp_string("Begin with this key?").unwrap();
    thread::sleep(Duration::from_secs(2));
    press(&mut session, "[y/N]", "y\r");
    let ran = ends(session).exits(0);
    assert!(ran.all().contains("for another 1m, until the lock expires"), "{}", ran.all());
}

/// Rule: whether a value has passed its own expiry is unknown without the server's time, and so is
/// the answer. A value with a time in it still expires. Revert: without `depends_on_time`, a lock
/// that the next request takes over is shown as one that rejects it, even indefinitely.
#[test]
fn without_the_servers_time_the_answer_is_unknown() {
    let server = with_schema();
    server.add_user("untimed", "~* +@all -time");
    let untimed = |words: &[&str]| {
        let mut command = server.command();
        command.env("REDISCLI_AUTH", "pw").args(["--user", "untimed"]).args(words);
        command.args(["--schema", "lambda"]).run()
    };
    lock(&server, "live", 600_000);
    lock(&server, "dead", -600_000);
    lock(&server, "stays", 600_000);
    server.send::<()>(&[b"PERSIST", b"payments-prod.handler#stays"]);
    let done = r#"{"data": "{}", "status": "COMPLETED", "expiration": 1}"#;
    server.put("payments-prod.handler#done", done);
    let plain = r#"{"status": "INPROGRESS", "expiration": 1}"#;
    server.set("payments-prod.handler#plain", plain, 3_600_000);

    for key in ["live", "dead", "stays", "done"] {
        let page = untimed(&["inspect", key]).exits(0);
        page.shows("unknown, because the value contains an expiry").shows("(+time)");
        assert!(!page.text().contains("indefinitely"), "{}", page.all());
        let json = untimed(&["inspect", key, "-o", "json"]).exits(0).json();
        let next = &json["records"][0]["next_request"];
        assert_eq!((&next["answer"], &next["until_ms"]), (&"unknown".into(), &Value::Null));
        assert!(next["unknown_because"].as_str().unwrap().contains("+time"), "{next}");
    }
    // Without the field, only the TTL of the Redis key counts.
    untimed(&["inspect", "plain"]).exits(0).shows("conflict").shows("for another 59m");
    let listed = untimed(&["list", "-o", "jsonl"]).exits(0).json_lines();
    let unknown = listed.iter().filter(|record| record["next_request"]["answer"] == "unknown");
    assert_eq!((listed.len(), unknown.count()), (5, 4));

    // The free key is certain, whatever the time is.
    untimed(&["inspect", "none"]).exits(1);
    untimed(&["begin", "dead", "--yes"]).exits(4).says("+time");
    let complete = ["complete", "live", "--body", "{}", "--yes"];
    untimed(&complete).exits(4).says("+time");
    // `release` sends no time. Redis 6.2 has no PEXPIRETIME, so a change needs TIME there.
    let released = untimed(&["release", "dead", "--yes"]);
    let is_refused = released.code == 4 && released.all().contains("+time");
    assert!(released.code == 0 || is_refused, "{}", released.all());

    // A time in the value ends the lock, so that it is no orphan, and nothing is left out.
    let checked = untimed(&["check"]).exits(0);
    assert!(!checked.all().contains("Skipped"), "{}", checked.all());
    untimed(&["sweep", "--orphaned", "--yes"]).exits(0).says("no stuck locks");
    let endless = untimed(&["list", "--no-expiry"]).exits(0);
    assert!(!endless.all().contains("Skipped"), "{}", endless.all());
    untimed(&["list", "--ttl-below", "1h"]).exits(3).says("of unknown expiry");
}
