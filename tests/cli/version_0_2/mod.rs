//! What idemctl 0.2.0 wrote, the oldest version that anybody has: an audit log and two backups, as its binary left them.

use std::fs;
use std::path::PathBuf;

use crate::support::{LOCK, Server};

const LOG: &str = include_str!("audit.jsonl");
const PURGE: &str = include_str!("backups/2026-11-25T032011.821Z-purge-29421.jsonl");
const UNLOCK: &str = include_str!("backups/2026-11-25T032011.846Z-force-unlock-29424.jsonl");

/// The home of that version.
const HOME: &str = "/tmp/idemctl-0.2.0/.local";

const DONE: &str = r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":"paid"}"#;
const RESULT: &str = r#"{"statusCode":201,"body":"x"}"#;

/// When results that expire do so, and the extended lock before it was extended.
const END: i64 = 4_102_444_800_000;

/// When the extended lock expires.
const EXTENDED: i64 = 4_387_576_811_853;

/// A server whose state folder is that of 0.2.0, and which holds what 0.2.0 left there.
fn server() -> Server {
    let server = Server::start();
    fs::create_dir_all(server.state("backups")).unwrap();
    let home = server.folder().join(".local").display().to_string();
    fs::write(server.state("audit.jsonl"), LOG.replace(HOME, &home)).unwrap();
    fs::write(backup(&server, PURGE), PURGE).unwrap();
    fs::write(backup(&server, UNLOCK), UNLOCK).unwrap();
    let end = END.to_string();
    let extended = EXTENDED.to_string();
    for (redis_key, value, at) in
        [("idem:result:pay", RESULT, &end), ("idem:held", LOCK, &extended)]
    {
        let words = ["SET", redis_key, value, "PXAT", at];
        server.send::<()>(&words.map(str::as_bytes));
    }
    server
}

/// The file of a backup in the server's state folder.
fn backup(server: &Server, text: &str) -> PathBuf {
    let name = if text == PURGE {
        "2026-11-25T032011.821Z-purge-29421.jsonl"
    } else {
        "2026-11-25T032011.846Z-force-unlock-29424.jsonl"
    };
    server.state("backups").join(name)
}

/// When a Redis key expires, to the second; the oldest servers do not tell it to the millisecond.
fn expires_at(server: &Server, redis_key: &str) -> i64 {
    let (seconds, _): (i64, i64) = server.send(&[b"TIME"]);
    let left: i64 = server.send(&[b"TTL", redis_key.as_bytes()]);
    seconds + left
}

fn is_at(server: &Server, redis_key: &str, at_ms: i64) -> bool {
    (expires_at(server, redis_key) - at_ms / 1_000).abs() < 5
}

#[test]
fn its_operations_are_listed_and_shown() {
    let server = server();
    let log = server.idemctl(&["log", "-o", "jsonl"]).exits(0);
    assert!(!log.stderr.contains("damaged"), "{}", log.all());
    let operations = log.json_lines();
    let names: Vec<_> =
        operations.iter().map(|operation| operation["op"].as_str().unwrap()).collect();
    assert_eq!(names, ["28c59cc7", "07535377", "a571fe7a"]);
    for operation in &operations {
        // Nothing says how its operations ended.
        assert!(operation["state"].is_null(), "{operation}");
        assert_eq!(operation["says_what_was_left"], true, "{operation}");
    }
    assert_eq!(
        (&operations[0]["redis_keys"], &operations[0]["reason"]),
        (&3.into(), &"INC-1".into())
    );
    server.idemctl(&["log", "show", "28c5"]).exits(0).shows("purge").shows("order-2");
    server.idemctl(&["log", "show"]).exits(0).shows("extend");
    assert_eq!(server.audited().len(), 5);
}

#[test]
fn its_backups_are_listed_and_restored() {
    let server = server();
    let list = server.idemctl(&["backup", "list", "-o", "json"]).exits(0);
    let backups = list.json()["backups"].as_array().unwrap().clone();
    let told: Vec<_> = backups
        .iter()
        .map(|backup| (backup["op"].as_str().unwrap(), backup["redis_keys"].as_u64().unwrap()))
        .collect();
    assert!(told.contains(&("28c59cc7", 3)) && told.contains(&("07535377", 1)), "{}", list.all());
    assert!(backups.iter().all(|backup| backup["state"] == "complete"), "{}", list.all());

    let file = backup(&server, PURGE).display().to_string();
    server.idemctl(&["restore", &file, "--yes"]).exits(2).says("--elsewhere");
    let run = server.idemctl(&["restore", &file, "--yes", "--elsewhere"]).exits(0);
    assert!(
        !run.says("Restored 3 of 3 Redis keys").stderr.contains("closing line"),
        "{}",
        run.all()
    );
    assert_eq!(server.get("idem:order-1").unwrap(), DONE.as_bytes());
    assert_eq!(server.send::<Vec<u8>>(&[b"GET", b"idem:\xff"]), DONE.as_bytes());
    assert_eq!(server.send::<i64>(&[b"PTTL", b"idem:order-1"]), -1);
    assert!(is_at(&server, "idem:order-2", END));
}

#[test]
fn its_operations_are_undone() {
    let server = server();
    // Without a name the last one: a lock gets its former expiry.
    server.idemctl(&["undo", "--yes"]).exits(1).says("no operation on this server");
    server.idemctl(&["undo", "--yes", "--elsewhere"]).exits(0).says("Reverted 1 of 1");
    assert!(is_at(&server, "idem:held", END));
    assert_eq!(server.get("idem:held").unwrap(), LOCK.as_bytes());
    // A lock comes back beside the result that was there.
    server.idemctl(&["undo", "0753", "--yes", "--elsewhere"]).exits(0).says("Reverted 1 of 1");
    assert!(server.get("idem:started:pay").is_some());
    server.idemctl(&["undo", "28c5", "--yes", "--elsewhere"]).exits(0).says("Reverted 3 of 3");
    assert_eq!(server.size(), 6);
    let log = server.idemctl(&["log", "-o", "jsonl"]).exits(0).json_lines();
    for (undone, undo) in [(0, 5), (1, 4), (2, 3)] {
        assert_eq!(log[undone]["undone_by"], log[undo]["op"], "{undone}");
        assert_eq!(log[undo]["undoes"], log[undone]["op"], "{undone}");
    }
}

/// Rule: whichever version wrote a backup, its missing records are named and never guessed.
#[test]
fn what_its_backups_lost_is_named() {
    let server = server();
    let file = backup(&server, PURGE);
    let path = file.display().to_string();
    let lines: Vec<_> = PURGE.lines().collect();
    // The end is gone: only the log knows that.
    fs::write(&file, lines[..3].join("\n") + "\n").unwrap();
    let undo = server.idemctl(&["undo", "28c5", "--yes", "--elsewhere", "--dry-run"]).exits(3);
    undo.says("Redis key is missing from").says("idem:order-2").says("Would revert 2 of 3");
    // A line is damaged, or lost its checksum, in the middle.
    let without = format!("{}}}", lines[2].rsplit_once(",\"crc64\"").unwrap().0);
    for damaged in [lines[2].replacen("aWRlbTpv", "aWRlbTpw", 1), without.clone()] {
        fs::write(&file, [lines[0], lines[1], &damaged, lines[3]].join("\n") + "\n").unwrap();
        let restore = ["restore", &path, "--yes", "--elsewhere"];
        server.idemctl(&restore).exits(2).says(":3: the line is damaged: its checksum is wrong");
        let skipping = [&restore[..], &["--skip-damaged", "--dry-run"]].concat();
        server.idemctl(&skipping).exits(3).says("Would restore 2 of");
    }
    // Builds before 0.2.0 wrote no checksums.
    fs::write(&file, without + "\n").unwrap();
    server
        .idemctl(&["restore", &path, "--yes", "--elsewhere"])
        .exits(2)
        .says("nothing was restored");
    assert_eq!(server.size(), 2);
}
