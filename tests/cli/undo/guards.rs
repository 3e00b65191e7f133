//! What an undo compares and refuses.

use super::{DONE, PENDING, pttl, rewrite_log};
use crate::support::Server;
use crate::support::proxy::sends_at;

/// A server with a lock that was extended.
fn extended() -> Server {
    let server = Server::holding(&[("idempotency:a", PENDING, 50_000)]);
    server.idemctl(&["extend", "a", "--for", "1h", "--yes"]).exits(0);
    server
}

/// Rule: only what still is what the operation left goes back, the moment of expiry included.
#[test]
fn a_lock_that_was_renewed_or_taken_anew_since_stays() {
    for (value, ttl) in
        [(PENDING, 7_200_000), (r#"{"status":"PENDING" }"#, 3_590_000), (DONE, 3_590_000)]
    {
        let server = extended();
        server.set("idempotency:a", value, ttl);
        let run = server.idemctl(&["undo", "--yes"]).exits(3);
        run.says("1 changed since the operation").shows("changed").says("Nothing was changed.");
        assert!(pttl(&server, "idempotency:a") > 3_500_000);
        assert_eq!(server.get("idempotency:a").unwrap(), value.as_bytes());
    }
}

/// Rule: another value that expires at the very same moment is another one.
#[test]
fn a_result_that_was_overwritten_since_stays() {
    let server = Server::holding(&[("idempotency:a", PENDING, 50_000)]);
    let complete =
        ["complete", "a", "--schema", "go-middleware", "--status", "201", "--body", "1", "--yes"];
    server.idemctl(&complete).exits(0);
    server.send::<()>(&[b"SET", b"idempotency:a", DONE.as_bytes(), b"KEEPTTL"]);
    server.idemctl(&["undo", "--yes"]).exits(3).shows("changed");
    assert_eq!(server.get("idempotency:a").unwrap(), DONE.as_bytes());
}

/// Rule: what a restore brought back is known by all of its value, of which the log holds a checksum.
#[test]
fn what_was_restored_and_overwritten_since_stays() {
    let server = Server::holding(&[("idempotency:a", DONE, 500_000)]);
    server.idemctl(&["purge", "--all", "--yes", "--backup", "b"]).exits(0);
    let file = server.folder().join("b").display().to_string();
    server.idemctl(&["restore", &file, "--yes"]).exits(0);
    let other = DONE.replace("201", "202");
    server.send::<()>(&[b"SET", b"idempotency:a", other.as_bytes(), b"KEEPTTL"]);
    server.idemctl(&["undo", "--yes"]).exits(3).shows("changed");
    assert_eq!(server.get("idempotency:a").unwrap(), other.as_bytes());
}

/// Rule: what waited between the look and the change is compared once more, in the step that changes.
#[test]
fn what_changes_right_before_its_turn_stays() {
    let anew = ["SET", "idempotency:a", PENDING, "PX", "9000000"];
    for word in ["WATCH", "EXEC"] {
        let server = extended();
        let way = sends_at(&server, word, &anew);
        let run = server.through(&way, &["undo", "--yes", "--elsewhere"]).exits(3);
        run.shows("restore ").says("Reverted 0 of 1 Redis key; 1 changed since the operation");
        assert!(pttl(&server, "idempotency:a") > 8_000_000, "{word}");
    }
    let server = Server::start();
    server.idemctl(&["begin", "a", "--schema", "go-middleware", "--yes"]).exits(0);
    let way = sends_at(&server, "UNLINK", &anew);
    server.through(&way, &["undo", "--yes", "--elsewhere"]).exits(3);
    assert!(pttl(&server, "idempotency:a") > 8_000_000);
}

/// Rule: an undo goes back to the server on which the operation was done, unless another one is meant.
#[test]
fn another_server_is_refused_unless_it_is_meant() {
    let (server, other) = (extended(), Server::start());
    let at: i64 = server.audited()[0]["after"]["expires_at_ms"].as_i64().unwrap();
    // The very lock that the log speaks of, elsewhere.
    other.send::<()>(&[
        b"SET",
        b"idempotency:a",
        PENDING.as_bytes(),
        b"PXAT",
        at.to_string().as_bytes(),
    ]);
    let there = other.socket().display().to_string();
    for more in [&["--yes"][..], &["--dry-run"]] {
        let run = server.unnamed(&[&["-s", &there, "undo"], more].concat()).exits(1);
        run.says("has no operation on this server");
        let op = server.audited()[0]["op"].as_str().unwrap().to_owned();
        let named = [&["-s", &there, "undo", &op], more].concat();
        server.unnamed(&named).exits(2).says("is from").says("--elsewhere");
        assert!(pttl(&other, "idempotency:a") > 3_000_000);
    }
    server.unnamed(&["-s", &there, "undo", "--yes", "--elsewhere"]).exits(0);
    assert!(pttl(&other, "idempotency:a") <= 50_000);
    // What comes from a backup goes by what the backup says of its place.
    server.idemctl(&["force-unlock", "a", "--yes"]).exits(0);
    let op = server.audited().last().unwrap()["op"].as_str().unwrap().to_owned();
    server
        .unnamed(&["-s", &there, "undo", &op, "--yes", "--only", "a"])
        .exits(2)
        .says("--elsewhere");
}

#[test]
fn without_leave_nothing_is_taken_back() {
    let server = extended();
    server.idemctl(&["undo"]).exits(2).says("cannot prompt without a terminal").shows("restore ");
    assert!(pttl(&server, "idempotency:a") > 3_000_000);
    assert_eq!(server.audited().len(), 1);
}

/// Rule: where nobody knows what a change left, nothing is done.
#[test]
fn an_unknown_outcome_is_named_and_left() {
    let server = extended();
    rewrite_log(&server, |line| {
        line["what"] = "outcome-unknown".into();
        line.as_object_mut().unwrap().remove("after");
    });
    server.idemctl(&["undo", "--yes"]).exits(2).says("the audit log does not record");
    assert!(pttl(&server, "idempotency:a") > 3_000_000);
}

#[test]
fn an_empty_log_has_no_operation() {
    let server = Server::start();
    let log = server.audit().join("log.jsonl");
    std::fs::create_dir_all(log.parent().unwrap()).unwrap();
    std::fs::write(&log, "").unwrap();
    server.idemctl(&["undo", "--yes"]).exits(1).says("the audit log has no operation");
    server.idemctl(&["undo", "abc", "--yes"]).exits(1).says("the audit log has no operation abc");
}
