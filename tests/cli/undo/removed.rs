//! What an operation removed comes back as `restore` brings it back.

use serde_json::Value;

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
    run.shows("restore ").says("Reverted 2 of 2 Redis keys.");
    assert_eq!(contents(&server), before);
    assert!(
        (1..=50_000).contains(&pttl(&server, "idempotency:a"))
            && pttl(&server, "idempotency:b") == -1
    );
    server
        .idemctl(&["undo", "--yes"])
        .exits(0)
        .shows("remove ")
        .says("Reverted 2 of 2 Redis keys.");
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
    server.idemctl(&["undo", "--yes"]).exits(3).says("no backup contains them").shows("untold");
    assert!(server.keys().is_empty());
    server.set("idempotency:b", DONE, 50_000);
    server.idemctl(&["purge", "--all", "--yes"]).exits(0);
    std::fs::remove_file(backup::only(&server)).unwrap();
    server.idemctl(&["undo", "--yes"]).exits(2).says("cannot read the backup");
}

#[test]
fn a_log_without_operations_has_nothing_to_take_back() {
    let server = Server::start();
    server.idemctl(&["undo", "--yes"]).exits(1).says("the audit log has no operation");
}

/// Rule: what comes back expires at the very moment, also if the moment is beyond the numbers of Lua.
#[test]
fn what_expires_in_a_distant_year_comes_back_to_the_millisecond() {
    let long = format!(
        r#"{{"status":"COMPLETED","code":200,"headers":{{}},"body":"{}"}}"#,
        "x".repeat(9_000)
    );
    for at in [9_007_199_254_740_993_i64, 18_014_398_509_481_987] {
        for (value, words) in [
            (DONE, &["purge", "a", "--yes"][..]),
            (&long, &["purge", "a", "--yes"]),
            (PENDING, &["force-unlock", "a", "--yes"]),
            (
                PENDING,
                &[
                    "complete",
                    "a",
                    "--schema",
                    "go-middleware",
                    "--status",
                    "201",
                    "--body",
                    "1",
                    "--yes",
                ],
            ),
        ] {
            let server = Server::start();
            let set = ["SET", "idempotency:a", value, "PXAT", &at.to_string()];
            server.send::<()>(&set.map(str::as_bytes));
            server.idemctl(words).exits(0);
            assert_ne!(server.get("idempotency:a").as_deref(), Some(value.as_bytes()));
            server.idemctl(&["undo", "--yes"]).exits(0).says("Reverted 1 of 1");
            assert_eq!(server.get("idempotency:a").unwrap(), value.as_bytes());
            let told =
                redis::cmd("PEXPIRETIME").arg("idempotency:a").query::<i64>(&mut server.connect());
            match told {
                Ok(told) => assert_eq!(told, at, "{words:?}"),
                // The oldest servers do not tell it.
                Err(_) => assert!(pttl(&server, "idempotency:a") > at - 4_000_000_000_000),
            }
        }
    }
}

/// Rule: records come back in calls of up to a hundred, and one that cannot come back keeps no other one away.
#[test]
fn a_thousand_come_back_in_few_calls_but_for_those_that_cannot() {
    let keys: Vec<_> = (0..1_000).map(|index| format!("idempotency:{index}")).collect();
    let server = Server::filled(keys.iter().map(|key| (key, DONE)), 600_000);
    server.idemctl(&["purge", "--all", "--yes", "--backup", "b"]).exits(0);
    let file = server.folder().join("b");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.retain(|line| line.get("end").is_none());
    for line in &mut lines {
        line.as_object_mut().unwrap().remove("crc64");
        if line["key"] == "500" {
            let dump = backup::of_later_version(&line["keys"][0]["dump_base64"]);
            line["keys"][0]["dump_base64"] = dump.into();
        } else if line["key"] == "600" {
            line["keys"][0]["expires_at_ms"] = 1.into();
        }
    }
    backup::write_to(&file, &lines);
    server.set("idempotency:700", PENDING, 600_000);
    server.send::<()>(&[b"CONFIG", b"RESETSTAT"]);
    let run = server.idemctl(&["undo", "--yes", "-o", "json"]).exits(3);
    run.says("idempotency:500: ").says("DUMP payload version");
    let counts = ["restored", "present", "expired", "refused"]
        .map(|name| run.json()[name].as_u64().unwrap());
    assert_eq!(counts, [997, 1, 1, 1], "{}", run.all());
    assert_eq!(server.get("idempotency:700").unwrap(), PENDING.as_bytes());
    assert_eq!((server.get("idempotency:500"), server.size()), (None, 998));
    // One call restores a hundred, and two read the clock for the preview.
    let calls = server.calls("eval") + server.calls("eval_ro");
    assert!((10..15).contains(&calls), "{calls}");
    // What was refused may come back later, so the next undo continues this one.
    server.idemctl(&["undo", "--yes"]).exits(3).says("998 already present");
}
