//! When what comes back expires: at the moment at which it was to expire.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::command::restore;
use crate::support::Server;
use crate::support::{PENDING, backup, fault};

/// Milliseconds by which time and TTL, read in one script, may differ from the expiry.
const READ_WITHIN: i64 = 2;

/// The moment at which a Redis key expires, as the server has it.
fn expires_at(server: &Server, redis_key: &str) -> i64 {
    let script = b"local now = redis.call('TIME')
        return now[1] * 1000 + math.floor(now[2] / 1000) + redis.call('PTTL', KEYS[1])";
    server.send(&[b"EVAL", script, b"1", redis_key.as_bytes()])
}

/// A lock that was removed: its backup, and the moment that it says.
fn removed(server: &Server) -> (PathBuf, i64) {
    server.set("idempotency:k", PENDING, 60_000);
    server.idemctl(&["force-unlock", "k", "--schema", "go-middleware", "--yes"]).exits(0);
    let file = backup::only(server);
    let text = fs::read_to_string(&file).unwrap();
    let line: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
    (file, line["keys"][0]["expires_at_ms"].as_i64().unwrap())
}

/// The rule: what is put back expires when it was to, not so long after now. A lock that lives longer than it was to would
/// block the next request for no reason.
#[test]
fn the_expiry_is_the_moment_of_the_backup_whatever_time_went_by() {
    let server = Server::start();
    let (file, at) = removed(&server);
    std::thread::sleep(std::time::Duration::from_millis(700));
    restore(&server, &file, &[]).exits(0);
    let now_at = expires_at(&server, "idempotency:k");
    assert!((now_at - at).abs() <= READ_WITHIN, "{at}, and now {now_at}");
}

/// The rule: between the question for the time and the change any time may go by, and neither may move the expiry. The
/// server's TIME here is 30 s behind: a TTL that is counted from it would be 30 s too long.
#[test]
fn a_time_that_is_told_late_moves_no_expiry() {
    let server = Server::start();
    let (file, at) = removed(&server);
    let (port, _) = fault::way(&server, fault::misled(-30_000));
    server.at(port, &["restore", file.to_str().unwrap(), "--yes"]).exits(0);
    let now_at = expires_at(&server, "idempotency:k");
    assert!((now_at - at).abs() <= READ_WITHIN, "{at}, and now {now_at}");
}

/// The rule: what is over by the server's clock stays away, also where only the server itself notices.
#[test]
fn what_is_over_when_it_arrives_is_said_to_have_expired() {
    let server = Server::holding(&[("idempotency:k", PENDING, 60_000)]);
    let mut line = backup::line(&server, "idempotency:k");
    server.send::<()>(&[b"DEL", b"idempotency:k"]);
    line["keys"][0]["expires_at_ms"] = (backup::now_ms(&server) - 5_000).into();
    let file = backup::write(&server, &[line]);
    let (port, _) = fault::way(&server, fault::misled(-30_000));
    let words = ["restore", file.to_str().unwrap(), "--yes", "-o", "json"];
    for run in [server.at(port, &words), server.idemctl(&words)].map(|run| run.exits(0)) {
        assert_eq!(
            (&run.json()["expired"], &run.json()["restored"]),
            (&1.into(), &0.into()),
            "{}",
            run.all()
        );
        assert_eq!(server.send::<i64>(&[b"EXISTS", b"idempotency:k"]), 0);
    }
}
