//! What an operation left goes back to what was before.

use super::{DONE, PENDING, pttl, rewrite_log};
use crate::support::{FOREVER, Server};

const STORED: &str = r#"{"charged":10}"#;

#[test]
fn an_extended_lock_gets_its_former_expiry() {
    let server = Server::holding(&[("idempotency:a", PENDING, 50_000)]);
    server.idemctl(&["extend", "a", "--for", "1h", "--yes"]).exits(0);
    let run = server.idemctl(&["undo", "--dry-run", "-o", "json"]).exits(0);
    assert_eq!(run.json()["redis_keys"][0]["outcome"], "would-restore");
    assert!(pttl(&server, "idempotency:a") > 3_000_000);
    server.idemctl(&["undo", "--yes"]).exits(0).says("Reverted 1 of 1 Redis key.");
    assert!(
        (1..=50_000).contains(&pttl(&server, "idempotency:a")),
        "{}",
        pttl(&server, "idempotency:a")
    );
    assert_eq!(server.get("idempotency:a").unwrap(), PENDING.as_bytes());
    server.idemctl(&["undo", "--yes"]).exits(0);
    assert!(pttl(&server, "idempotency:a") > 3_000_000);
}

/// What was to be expired soon by a sweep has no expiry again.
#[test]
fn a_lock_that_a_sweep_lets_expire_has_no_expiry_again() {
    let server = Server::holding(&[("idempotency:a", PENDING, FOREVER)]);
    let sweep = ["sweep", "--orphaned", "--action", "expire", "--grace", "0s", "--yes"];
    let stated = ["--schema", "go-middleware", "--lock-ttl", "5m"];
    server.idemctl(&[&sweep[..], &stated].concat()).exits(0);
    assert!(pttl(&server, "idempotency:a") > 0);
    server.idemctl(&["undo", "--yes"]).exits(0);
    assert_eq!(pttl(&server, "idempotency:a"), -1);
}

#[test]
fn a_completed_key_is_the_lock_again_that_it_was() {
    let server = Server::holding(&[("idempotency:a", PENDING, 50_000)]);
    let complete = [
        "complete",
        "a",
        "--schema",
        "go-middleware",
        "--status",
        "201",
        "--body",
        STORED,
        "--yes",
    ];
    server.idemctl(&complete).exits(0);
    let stored = server.get("idempotency:a").unwrap();
    server.idemctl(&["undo", "--yes"]).exits(0);
    assert_eq!(server.get("idempotency:a").unwrap(), PENDING.as_bytes());
    assert!((1..=50_000).contains(&pttl(&server, "idempotency:a")));
    server.idemctl(&["undo", "--yes"]).exits(0);
    assert_eq!(server.get("idempotency:a").unwrap(), stored);
}

#[test]
fn the_two_keys_of_a_completed_record_go_back_in_one_step() {
    let server = Server::holding(&[("idem:started:a", "worker-7", 50_000)]);
    let step =
        ["complete", "a", "--schema", "event-driven", "--owner", "worker-7", "--status", "201"];
    server.idemctl(&[&step[..], &["--body", STORED, "--yes"]].concat()).exits(0);
    let after = server.keys();
    assert!(after.contains(&"idem:result:a".to_owned()));
    server.idemctl(&["undo", "--yes"]).exits(0);
    assert_eq!(server.keys(), ["idem:started:a"]);
    assert_eq!(server.get("idem:started:a").unwrap(), b"worker-7");
    server.idemctl(&["undo", "--yes"]).exits(0);
    assert_eq!(server.keys(), after);
}

#[test]
fn a_lock_that_was_taken_goes_and_one_that_was_released_comes_back() {
    let server = Server::start();
    server.idemctl(&["begin", "a", "--schema", "express", "--yes"]).exits(0);
    let lock = server.get("idem:a").unwrap();
    server.idemctl(&["undo", "--yes"]).exits(0);
    assert_eq!(server.get("idem:a"), None);
    server.idemctl(&["undo", "--yes"]).exits(0);
    assert_eq!(server.get("idem:a").unwrap(), lock);
    server.idemctl(&["release", "a", "--schema", "express", "--yes"]).exits(0);
    assert_eq!(server.get("idem:a"), None);
    server.idemctl(&["undo", "--yes"]).exits(0);
    assert_eq!(server.get("idem:a").unwrap(), lock);
}

#[test]
fn what_was_restored_goes_and_what_was_there_already_stays() {
    let server = Server::start();
    let keys: Vec<_> = (0..250).map(|index| format!("idempotency:{index}")).collect();
    server.fill(keys.iter().map(|key| (key, DONE)), 500_000);
    server.idemctl(&["purge", "--all", "--yes", "--backup", "b"]).exits(0);
    server.set("idempotency:7", DONE, 500_000);
    let file = server.folder().join("b").display().to_string();
    server.idemctl(&["restore", &file, "--yes"]).exits(3);
    server
        .idemctl(&["undo", "--yes"])
        .exits(0)
        .says("Reverted 249 of 249 Redis keys.")
        .says("… and 149 more.");
    assert_eq!(server.keys(), ["idempotency:7"]);
}

/// Rule: what was there before and has expired since is nothing by now.
#[test]
fn what_has_expired_since_stays_away() {
    let server = Server::holding(&[("idempotency:a", PENDING, 50_000)]);
    server.idemctl(&["extend", "a", "--for", "1h", "--yes"]).exits(0);
    rewrite_log(&server, |line| line["before"]["expires_at_ms"] = 1_000.into());
    // Its log has no end, so that its details may lack some of its changes.
    server.idemctl(&["undo", "--yes"]).exits(3).shows("remove ");
    assert_eq!(server.get("idempotency:a"), None);
}

#[test]
fn keys_of_any_bytes_go_back() {
    let server = Server::start();
    let key = b"idempotency:\xff\\x41\n".as_slice();
    server.send::<()>(&[b"SET", key, PENDING.as_bytes(), b"PX", b"50000"]);
    let name = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(
        &key[b"idempotency:".len()..],
    );
    let run = crate::support::Runs::run(
        server.command().args(["extend", "--for", "1h", "--yes"]).arg(name),
    );
    run.exits(0);
    server.idemctl(&["undo", "--yes"]).exits(0);
    assert!(server.send::<i64>(&[b"PTTL", key]) <= 50_000);
}

/// Rule: a preview shows what comes back, and warns of a lock that only a person ends.
#[test]
fn a_preview_shows_the_state_of_what_comes_back() {
    let server = Server::holding(&[("idempotency:a", PENDING, FOREVER)]);
    let complete = [
        "complete",
        "a",
        "--schema",
        "go-middleware",
        "--status",
        "201",
        "--body",
        STORED,
        "--yes",
    ];
    server.idemctl(&complete).exits(0);
    let run = server.idemctl(&["undo", "--dry-run"]).exits(0);
    run.shows("restore    never    in-progress  go-middleware");
    run.says("warning: 1 lock without expiry and without a result");
    server
        .idemctl(&["undo", "--yes"])
        .exits(0)
        .says("warning: 1 lock without expiry and without a result");
    // Undoing the undo brings the result back.
    let run = server
        .idemctl(&["undo", "--dry-run"])
        .exits(0)
        .shows("restore    23h 59m  completed")
        .all();
    assert!(!run.contains("without expiry"), "{run}");
    server.idemctl(&["force-unlock", "a", "--yes"]).exits(0);
    server
        .idemctl(&["undo", "--dry-run"])
        .exits(0)
        .says("warning: 1 lock without expiry and without a result");
}

/// Rule: a lock to which the next request gives a TTL blocks nobody forever. Revert: without
/// `gives_ttl` in `locks_need_ttl`.
#[test]
fn a_lock_that_the_next_request_gives_a_ttl_is_not_warned_of() {
    let lock =
        r#"{"state":"in-progress","owner":"w1","fingerprint":"f","created_at":1795819018444}"#;
    let server = Server::holding(&[("idemkey:a", lock, FOREVER)]);
    server.idemctl(&["force-unlock", "a", "--schema", "reference", "--yes"]).exits(0);
    let run = server.idemctl(&["undo", "--yes"]).exits(0);
    assert!(!run.all().contains("without expiry"), "{}", run.all());
    assert_eq!(pttl(&server, "idemkey:a"), -1);
}

/// Rule: a failure belongs to the record in which it happened: a record that cannot be read keeps no other from going back.
#[test]
fn a_record_that_cannot_be_read_is_named_and_the_others_go_back() {
    let server =
        Server::holding(&[("idempotency:a", PENDING, 50_000), ("idempotency:b", PENDING, 50_000)]);
    server.idemctl(&["extend", "a", "b", "--for", "1h", "--yes"]).exits(0);
    server.add_user("half", "~idempotency:b +@all");
    server.add_user("none", "~other +@all");
    let undo = |user: &str, more: &[&str]| {
        server.idemctl(&[&["undo", "--user", user, "-a", "pw", "-o", "json"], more].concat())
    };
    // A user who may read nothing lacks a right: that is no matter of single records.
    undo("none", &["--yes"]).exits(4);
    undo("half", &["--dry-run"]).exits(3).says("Would revert 1 of 2 Redis keys");
    let run = undo("half", &["--yes"]).exits(3);
    run.says("idempotency:a: ").says("denied permission");
    run.says("Reverted 1 of 2 Redis keys; 1 not restored, because they could not be read");
    assert_eq!((&run.json()["restored"], &run.json()["unread"]), (&1.into(), &1.into()));
    assert!(pttl(&server, "idempotency:a") > 3_000_000 && pttl(&server, "idempotency:b") < 60_000);
    // The next undo restores the other record.
    server.idemctl(&["undo", "--yes"]).exits(3).says("Reverted 1 of 2");
    assert!(pttl(&server, "idempotency:a") < 60_000);
}

/// A begin step that takes its lock in a Redis key outside the record.
const OUTSIDE: &str = r#"format = 2
name = "outside"
keys = { result = "out:{key}" }
ttl = { result = "24h" }
[[value]]
name = "done"
opaque = true
state = "completed"
fields = { body = "" }
[[begin.call]]
command = ["SADD", "out-keys", "{key}"]
replies = [
  { integer = 1, means = "acquired", when = { result = "absent" } },
  { integer = 0, means = "conflict" },
]
"#;

/// Rule: a Redis key that existed neither before nor after is no part of an undo, which still says
/// that the step may have changed others.
#[test]
fn a_redis_key_that_never_existed_is_not_reverted() {
    let server = Server::start();
    server.describe("outside", &[("schema.toml", OUTSIDE)]);
    server.idemctl(&["begin", "a", "--schema", "outside", "--yes"]);
    let undo = server.idemctl(&["undo", "--yes"]).exits(0);
    undo.says("0 of 0 Redis keys").says("begin may also have changed out-keys");
    assert_eq!(server.keys(), ["out-keys"]);
}

/// Rule: the table of an undo has the states that the records have afterwards, also if no backup
/// contains them.
#[test]
fn the_state_is_the_one_after_the_undo() {
    let server = Server::holding(&[("idempotency:a", PENDING, 50_000)]);
    let complete =
        ["complete", "a", "--schema", "go-middleware", "--status", "201", "--body", "1", "--yes"];
    server.idemctl(&complete).exits(0);
    let undo = server.idemctl(&["undo", "--dry-run"]).exits(0);
    undo.shows("STATE AFTER").shows("in-progress  go-middleware");
    server.idemctl(&["begin", "b", "--schema", "express", "--yes"]).exits(0);
    let undo = server.idemctl(&["undo", "--dry-run"]).exits(0);
    undo.shows("remove     -        absent       express");
}
