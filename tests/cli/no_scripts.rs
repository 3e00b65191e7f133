//! A Redis user who may not run scripts: the same changes by transactions, with the same reports, and the same records left
//! alone. The scripts themselves are the oracle: a second user may run them.

use std::time::Duration;

use serde_json::Value;

use crate::support::backup;
use crate::support::{LOCK, Run, Server, proxy};

/// Hashes as records.
const HASHES: &str = r#"format = 2
name = "hashes"
keys = { record = "hash:{key}" }
ttl = { lock = "30s", result = "24h" }

[[value]]
name = "done"
type = "hash"
where = { "/status" = "done" }
state = "completed"
"#;

/// A result of express.
const DONE: &str = r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":""}"#;

/// The result of an event-driven record.
const RESULT: &str = r#"{"statusCode":201,"body":"x"}"#;

/// Removes the locks of a schema.
const PURGE: &[&str] =
    &["purge", "--all", "--state", "in-progress", "--schema", "express", "--yes"];

/// A server with two users: one may do all, the other all but run scripts.
fn server() -> Server {
    let server = Server::start();
    server.add_user("all", "~* +@all");
    server.add_user("op", "~* +@all -@scripting");
    server
}

fn as_user(server: &Server, user: &str, words: &[&str]) -> Run {
    server.idemctl(&[&["--user", user, "-a", "pw"], words].concat())
}

fn through(server: &Server, socket: &std::path::Path, words: &[&str]) -> Run {
    server.through(socket, &[&["--user", "op", "-a", "pw"], words].concat())
}

/// What a run says, without what differs from run to run: numbers, and the order of a scan.
fn report(server: &Server, user: &str, run: &Run) -> Vec<String> {
    let text = run.stable(server).replace(&format!("--user {user}"), "--user USER");
    let mut lines = Vec::new();
    for line in text.lines() {
        // An operation has another ID in each run.
        if line.contains("scripts are not allowed") || line.starts_with("Undo of ") {
            continue;
        }
        lines.push(line.replace(|c: char| c.is_ascii_digit(), ""));
    }
    lines.sort();
    lines
}

/// The values and the TTLs in minutes of all Redis keys.
fn contents(server: &Server) -> Vec<(String, Vec<u8>, i64)> {
    let mut contents = Vec::new();
    for key in server.keys() {
        let dump = server.send(&[b"DUMP", key.as_bytes()]);
        let left: i64 = server.send(&[b"PTTL", key.as_bytes()]);
        contents.push((key, dump, left / 60_000));
    }
    contents.sort();
    contents
}

/// Rule: whatever is done with scripts is done without them, and told in the same words.
#[test]
fn changes_without_scripts_are_reported_as_with_scripts() {
    let long = DONE.replace(r#""body":"""#, &format!(r#""body":"{}""#, "x".repeat(9_000)));
    let both = ["all", "op"].map(|user| {
        let server = server();
        server.set("idem:short", DONE, 930_000);
        server.set("idem:long", &long, 930_000);
        server.put("idem:stuck", LOCK);
        server.set("idem:started:k", "worker-1", 630_000);
        server.set("idem:started:both", "worker-1", 630_000);
        server.set("idem:result:both", RESULT, 630_000);
        server.describe("hashes", &[("schema.toml", HASHES)]);
        server.send::<()>(&[b"HSET", b"hash:h", b"status", b"done", b"n", b"1"]);
        server.send::<()>(&[b"PEXPIRE", b"hash:h", b"930000"]);
        (server, user)
    });
    for (words, code) in [
        (&["force-unlock", "stuck", "--schema", "express", "--yes"][..], 0),
        (&["undo", "--yes"], 0),
        (&["sweep", "--orphaned", "--schema", "express", "--grace", "0s", "--yes"], 0),
        (&["undo", "--yes"], 0),
        (
            &[
                "sweep",
                "--orphaned",
                "--action",
                "expire",
                "--lock-ttl",
                "30s",
                "--schema",
                "express",
                "--grace",
                "0s",
                "--yes",
            ],
            0,
        ),
        (&["undo", "--yes"], 0),
        (&["extend", "k", "--schema", "event-driven", "--for", "1h", "--yes"], 0),
        (&["extend", "k", "--schema", "event-driven", "--for", "1m", "--yes"], 0),
        (&["purge", "--all", "--schema", "express", "--yes", "--backup", "b", "-o", "json"], 0),
        (&["restore", "b", "--yes"], 0),
        (&["restore", "b", "--yes"], 3),
        (&["purge", "both", "--schema", "event-driven", "--yes"], 0),
        (&["undo", "--yes"], 0),
        (&["purge", "--all", "--schema", "hashes", "--yes"], 0),
        (&["undo", "--yes"], 0),
    ] {
        let [with, without] = both.each_ref().map(|(server, user)| {
            let run = as_user(server, user, words).exits(code);
            let notes = run.stderr.matches("scripts are not allowed").count();
            assert!(notes <= usize::from(*user == "op"), "{}", run.all());
            report(server, user, &run)
        });
        assert_eq!(with, without, "{words:?}");
        assert_eq!(contents(&both[0].0), contents(&both[1].0), "{words:?}");
    }
    // The oracle did use scripts, and the other did not.
    assert!(both[0].0.calls("exec") <= 2 && both[1].0.calls("exec") > 9);
}

/// Rule: a record that changes before or after WATCH is left alone. Revert: without WATCH, those at EXEC are removed; without
/// the comparison of expiries, those that were only renewed before WATCH.
#[test]
fn a_record_that_changes_in_between_is_left_alone() {
    let replaced = &["SET", "idem:stuck", "other", "PX", "60000"][..];
    let renewed = &["PEXPIRE", "idem:stuck", "50000"][..];
    let persisted = &["PERSIST", "idem:stuck"][..];
    for (words, code, told) in [
        (&["force-unlock", "stuck", "--schema", "express", "--yes"][..], 8, "changed since"),
        (PURGE, 0, "1 record modified since"),
        (&["extend", "stuck", "--schema", "express", "--for", "1h", "--yes"], 8, "changed since"),
    ] {
        for moment in ["$5\r\nWATCH", "EXEC"] {
            for change in [replaced, renewed, persisted] {
                let server = server();
                server.set("idem:stuck", LOCK, 25_000);
                let socket = proxy::sends_at(&server, moment, change);
                let run = through(&server, &socket, words);
                assert_eq!(run.code, code, "{words:?} {moment:?} {change:?}: {}", run.all());
                run.says(told);
                assert!(server.get("idem:stuck").is_some(), "{moment:?} {change:?}");
                assert_eq!(server.audited().len(), 0);
            }
        }
    }
    let server = server();
    server.set("idem:stuck", LOCK, 4_000);
    let socket =
        proxy::acts_at(&server, "EXEC", || std::thread::sleep(Duration::from_millis(4_100)));
    let words = ["--timeout", "30s", "force-unlock", "stuck", "--schema", "express", "--yes"];
    through(&server, &socket, &words).exits(8);
}

/// Rule: a Redis key that is created while its record is restored stays.
#[test]
fn a_restore_never_replaces_what_came_in_between() {
    for moment in ["$5\r\nWATCH", "EXEC"] {
        let server = server();
        server.set("idem:started:k", "worker-1", 630_000);
        server.set("idem:result:k", RESULT, 630_000);
        let purge = ["purge", "k", "--schema", "event-driven", "--yes", "--backup", "b"];
        server.idemctl(&purge).exits(0);
        let socket = proxy::sends_at(&server, moment, &["SET", "idem:started:k", "new"]);
        let run = through(&server, &socket, &["restore", "b", "--yes"]).exits(3);
        run.shows("present").says("Restored 0 of 2 Redis keys");
        assert_eq!(server.get("idem:started:k").unwrap(), b"new");
        assert_eq!(server.get("idem:result:k"), None);
    }
}

/// Rule: a record comes back as a whole or not at all. Revert: without the trial, Redis restores the lock alone.
#[test]
fn a_record_of_which_one_value_is_refused_does_not_come_back_in_part() {
    let server = server();
    server.set("idem:started:k", "worker-1", 630_000);
    server.set("idem:result:k", RESULT, 630_000);
    let purge = ["purge", "k", "--schema", "event-driven", "--yes", "--backup", "b"];
    server.idemctl(&purge).exits(0);
    let file = server.folder().join("b");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.retain(|line| line.get("end").is_none());
    for line in &mut lines {
        line.as_object_mut().unwrap().remove("crc64");
        if let Some(key) = line.pointer_mut("/keys/1") {
            key["dump_base64"] = backup::of_later_version(&key["dump_base64"]).into();
        }
    }
    backup::write_to(&file, &lines);
    as_user(&server, "op", &["restore", "b", "--yes"]).exits(3).says("DUMP payload version");
    assert_eq!(server.size(), 0);
}

/// Rule: a lost reply of EXEC is read back; what reading back does not show is unknown.
#[test]
fn a_lost_reply_is_read_back_or_unknown() {
    let unlock = &["force-unlock", "stuck", "--schema", "express", "--yes"][..];
    let purge = PURGE;
    let restore = &["restore", "b", "--yes"][..];
    for words in [unlock, purge, restore] {
        for (moment, delivers, code) in
            [("EXEC", true, 0), ("EXEC", false, 7), ("$5\r\nWATCH", true, 5)]
        {
            let server = server();
            server.put("idem:stuck", LOCK);
            if words == restore {
                server.idemctl(&[unlock, &["--backup", "b"]].concat()).exits(0);
            }
            let before = contents(&server);
            let audited = server.audited().len();
            let socket = proxy::breaks_at(&server, moment, delivers);
            let run = through(&server, &socket, words);
            assert_eq!(run.code, code, "{words:?} {moment:?} {delivers}: {}", run.all());
            assert_eq!(contents(&server) != before, code == 0, "{words:?}: {}", run.all());
            let noted = server.audited().len() - audited;
            assert_eq!(noted, usize::from(code != 5), "{words:?}: {}", run.all());
            let told =
                ["reading back shows", "outcome unknown"].map(|told| run.stderr.contains(told));
            assert_eq!(told, [code == 0, code == 7], "{words:?}: {}", run.all());
        }
    }
}

/// Rule: a right that the change itself needs is asked for before anything is shown or done.
#[test]
fn a_missing_right_is_told_before_the_change() {
    let server = server();
    server.put("idem:stuck", LOCK);
    server
        .idemctl(&["force-unlock", "stuck", "--schema", "express", "--yes", "--backup", "b"])
        .exits(0);
    server.put("idem:other", LOCK);
    let before = contents(&server);
    let audited = server.audited().len();
    for (lacking, words) in [
        ("restore", &["undo", "--yes"][..]),
        ("restore", &["restore", "b", "--yes"]),
        ("unlink", PURGE),
        ("unlink", &["sweep", "--orphaned", "--yes"]),
        ("unlink", &["force-unlock", "other", "--schema", "express", "--yes"]),
        ("multi", PURGE),
        ("watch", PURGE),
        ("exec", PURGE),
    ] {
        server.add_user("op", &format!("reset on >pw ~idem* +@all -@scripting -{lacking}"));
        let run = as_user(&server, "op", words).exits(4);
        run.says(format!("the user needs +{lacking}"));
        if ["restore", "unlink"].contains(&lacking) && words[0] != "force-unlock" {
            assert!(run.stdout.is_empty(), "{}", run.all());
        }
        assert_eq!(
            (contents(&server), server.audited().len()),
            (before.clone(), audited),
            "{words:?}"
        );
    }
    // The rights that docs/connecting.md lists, without scripts.
    server.add_user("op", "reset on >pw ~idem* +@read +@connection +@transaction +unlink +pexpireat +time -@dangerous +role +restore");
    as_user(&server, "op", &["undo", "--yes"]).exits(0);
    as_user(&server, "op", PURGE).exits(0);
}

/// Rule: replicas are waited for on the connection that made the change.
#[test]
fn replicas_are_waited_for() {
    let server = server();
    server.put("idem:stuck", LOCK);
    let words = ["force-unlock", "stuck", "--schema", "express", "--yes", "--wait-replicas", "1"];
    let words = [&words[..], &["--wait-timeout", "100ms"]].concat();
    as_user(&server, "op", &words).exits(3).says("only 0 of 1 replicas");
    assert_eq!(server.get("idem:stuck"), None);
}
