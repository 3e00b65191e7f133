//! What an operation removed comes back as `restore` brings it back.

use super::{DONE, PENDING, pttl};
use crate::support::{FOREVER, Server, backup};

/// The values of all keys, and when they expire, to the second.
fn contents(server: &Server) -> Vec<(String, Option<Vec<u8>>)> {
    server.keys().into_iter().map(|key| (key.clone(), server.get(&key))).collect()
}

#[test]
fn what_was_purged_comes_back_and_the_undo_is_taken_back_too() {
    let server =
        Server::holding(&[("idempotency:a", DONE, 50_000), ("idempotency:b", DONE, FOREVER)]);
    let before = contents(&server);
    server.idemctl(&["purge", "--all", "--yes", "--reason", "INC-1"]).exits(0);
    assert!(server.keys().is_empty());
    let run = server.idemctl(&["undo", "--yes", "--reason", "too many"]).exits(0);
    run.shows("would-restore").says("Took back 2 of 2 Redis keys.");
    assert_eq!(contents(&server), before);
    assert!(
        (1..=50_000).contains(&pttl(&server, "idempotency:a"))
            && pttl(&server, "idempotency:b") == -1
    );
    server
        .idemctl(&["undo", "--yes"])
        .exits(0)
        .shows("would-remove")
        .says("Took back 2 of 2 Redis keys.");
    assert!(server.keys().is_empty());
    server.idemctl(&["undo", "--yes"]).exits(0);
    assert_eq!(contents(&server), before);
    let log = server.idemctl(&["log", "-o", "jsonl"]).exits(0).json_lines();
    let commands: Vec<_> =
        log.iter().map(|operation| operation["command"].as_str().unwrap()).collect();
    assert_eq!(commands, ["purge", "undo", "undo", "undo"]);
    assert_eq!((&log[0]["undone_by"], &log[1]["undoes"]), (&log[1]["op"], &log[0]["op"]));
    assert_eq!(log[1]["reason"], "too many");
}

#[test]
fn an_operation_is_named_by_its_first_letters() {
    let server =
        Server::holding(&[("idempotency:a", PENDING, 50_000), ("idempotency:b", PENDING, 50_000)]);
    server.idemctl(&["force-unlock", "a", "--yes"]).exits(0);
    server.idemctl(&["force-unlock", "b", "--yes"]).exits(0);
    let first = server.audited()[0]["op"].as_str().unwrap().to_owned();
    server.idemctl(&["undo", &first[..6], "--yes"]).exits(0);
    assert_eq!(server.keys(), ["idempotency:a"]);
    server.idemctl(&["undo", "zz", "--yes"]).exits(1).says("has no operation zz");
    server.idemctl(&["undo", "", "--yes"]).exits(2).says("several operations");
}

/// Rule: an undo keeps the rules of a restore: no value is overwritten, and no result comes back beside a lock.
#[test]
fn what_stands_there_by_now_stays_and_a_lock_keeps_its_result_away() {
    let server = Server::holding(&[("idem:result:a", r#"{"statusCode":201,"body":"x"}"#, 50_000)]);
    server.set("idem:result:b", r#"{"statusCode":201,"body":"x"}"#, 50_000);
    server.idemctl(&["purge", "--schema", "event-driven", "--all", "--yes"]).exits(0);
    server.set("idem:started:a", "worker-2", 20_000);
    server.set("idem:result:b", "taken anew", 70_000);
    let run = server.idemctl(&["undo", "--yes", "-o", "json"]).exits(3);
    let counts =
        ["locked", "present", "restored", "removed"].map(|name| run.json()[name].as_u64().unwrap());
    assert_eq!(counts, [1, 1, 0, 0], "{}", run.all());
    assert_eq!(server.get("idem:result:a"), None);
    assert_eq!(server.get("idem:result:b").unwrap(), b"taken anew");
    server.idemctl(&["undo", "--yes", "--replace-locked", "--only", "a"]).exits(0);
    assert!(server.get("idem:result:a").is_some() && server.get("idem:started:a").is_some());
}

#[test]
fn what_no_backup_holds_is_named_and_left() {
    let server = Server::holding(&[("idempotency:a", DONE, 50_000)]);
    server.idemctl(&["purge", "--all", "--yes", "--no-backup"]).exits(0);
    server.idemctl(&["undo", "--yes"]).exits(3).says("no backup holds them").shows("untold");
    assert!(server.keys().is_empty());
    server.set("idempotency:b", DONE, 50_000);
    server.idemctl(&["purge", "--all", "--yes"]).exits(0);
    std::fs::remove_file(backup::only(&server)).unwrap();
    server.idemctl(&["undo", "--yes"]).exits(2).says("cannot read the backup");
}

/// Puts what idemctl 0.2 wrote of its changes into the log: no line at the beginning and the end of an operation, and a shorter name.
fn log_of_an_older_version(server: &Server, op: &str) {
    let log = server.state("audit.jsonl");
    std::fs::create_dir_all(log.parent().unwrap()).unwrap();
    let line = serde_json::json!({
        "at": "2026-11-23T00:00:00.000Z", "who": "ana", "host": "h", "server": "s", "command": "purge", "schema": "express",
        "key": "k", "redis_key": "idem:k", "what": "purged", "reason": null, "backup": "/b.jsonl", "op": op,
    });
    let before = std::fs::read_to_string(&log).unwrap_or_default();
    std::fs::write(log, format!("{before}{line}\n")).unwrap();
}

/// Rule: an operation of an older version is left to that version, and never passed over for one before it.
#[test]
fn an_operation_of_an_older_version_is_refused_and_counted() {
    let server = Server::holding(&[("idempotency:a", DONE, 50_000)]);
    log_of_an_older_version(&server, "0a1b2c3d");
    server
        .idemctl(&["undo", "--yes"])
        .exits(2)
        .says("no operation on this server but those of idemctl 0.2");
    server.idemctl(&["log", "show"]).exits(2).says("only operations of idemctl 0.2");
    server.idemctl(&["purge", "--all", "--yes"]).exits(0);
    for op in ["0a1b2c3d", "0a1b"] {
        server
            .idemctl(&["undo", op, "--yes"])
            .exits(2)
            .says("operation 0a1b2c3d was done by idemctl 0.2");
        server.idemctl(&["log", "show", op]).exits(2).says("was done by idemctl 0.2");
    }
    let log = server.idemctl(&["log", "-o", "jsonl"]).exits(0);
    log.says("1 operation of idemctl 0.2 in ").says("use idemctl 0.2 to show and undo them");
    assert_eq!(log.json_lines().len(), 1, "{}", log.all());
    let records = server.idemctl(&["log", "--records", "-o", "jsonl"]).exits(0);
    records.says("1 operation of idemctl 0.2");
    assert_eq!(records.json_lines().len(), 1, "{}", records.all());
    server.idemctl(&["undo", "--dry-run"]).exits(0).says("Would take back 1 of 1");
    // Somebody goes on with the older version.
    log_of_an_older_version(&server, "4e5f6a7b");
    let run = server.idemctl(&["undo", "--yes"]).exits(2);
    run.says("idemctl 0.2 made changes that this version cannot undo").says("nothing was changed");
    assert!(server.keys().is_empty());
    let op = log.json_lines()[0]["op"].as_str().unwrap().to_owned();
    server.idemctl(&["undo", &op, "--yes"]).exits(0).says("Took back 1 of 1");
}

#[test]
fn a_log_without_operations_has_nothing_to_take_back() {
    let server = Server::start();
    server.idemctl(&["undo", "--yes"]).exits(1).says("nothing was changed yet");
}
