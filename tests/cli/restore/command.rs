//! What comes back, what does not, and what is said of it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::backup;
use crate::support::{Run, Runs, Server};

/// Restores without being asked.
pub(super) fn restore(server: &Server, file: &Path, more: &[&str]) -> Run {
    server.idemctl(&[&["restore", file.to_str().unwrap(), "--yes"], more].concat())
}

/// Two lines for two Redis keys, which are gone then.
fn two(server: &Server) -> [Value; 2] {
    server.set("idem:a", "value a", 60_000);
    server.put("idem:b", "value b");
    let lines = [backup::line(server, "idem:a"), backup::line(server, "idem:b")];
    server.send::<()>(&[b"DEL", b"idem:a", b"idem:b"]);
    lines
}

#[test]
fn a_record_that_was_unlocked_comes_back_identical_to_the_byte() {
    let (server, began) = (Server::start(), Instant::now());
    let key = OsStr::from_bytes(b"k\xff\x01\"\n");
    let redis_key = [b"idem:started:", key.as_bytes()].concat();
    let every_byte: Vec<u8> = (0..=255).collect();
    server.send::<()>(&[b"SET", &redis_key, &every_byte, b"PX", b"25000"]);
    let run = |words: &[&str]| server.command().args(words).arg("--").arg(key).run().exits(0);
    let inspect =
        || run(&["inspect", "--schema", "event-driven", "-o", "json"]).json()["records"][0].clone();
    let (before, dump): (_, Vec<u8>) = (inspect(), server.send(&[b"DUMP", &redis_key]));
    run(&["force-unlock", "--yes", "--schema", "event-driven"]);
    assert_eq!(server.send::<i64>(&[b"EXISTS", &redis_key]), 0);
    restore(&server, &backup::only(&server), &[]).exits(0);
    let after = inspect();
    assert_eq!(server.send::<Vec<u8>>(&[b"DUMP", &redis_key]), dump);
    let ttl = |record: &Value| record["lock_ttl_ms"].as_i64().unwrap();
    let passed = i64::try_from(began.elapsed().as_millis()).unwrap();
    assert!((0..=passed).contains(&(ttl(&before) - ttl(&after))), "{before} {after}");
    let timeless = |mut record: Value| {
        for field in [
            "lock_ttl_ms",
            "age_ms",
            "created_at",
            "idle_seconds",
            "memory_bytes",
            "next_request",
            "findings",
        ] {
            record[field].take();
        }
        record
    };
    assert_eq!(timeless(before), timeless(after));
}

#[test]
fn brings_back_all_with_the_time_they_have_left_and_notes_it() {
    let server = Server::start();
    let file = backup::write(&server, &two(&server));
    std::thread::sleep(std::time::Duration::from_millis(300));
    let run = restore(&server, &file, &["--reason", "INC-9"]).exits(0);
    run.says("Restored 2 of 2 Redis keys.");
    assert!(run.text().starts_with("OUTCOME"), "{}", run.all());
    let left: i64 = server.send(&[b"PTTL", b"idem:a"]);
    assert!(left > 30_000 && left <= 59_700, "{left}");
    assert_eq!(server.send::<i64>(&[b"PTTL", b"idem:b"]), -1);
    assert_eq!(server.get("idem:a").unwrap(), b"value a");
    let audit = server.audited();
    assert_eq!(audit.len(), 2);
    let entry = &audit[0];
    assert_eq!([&entry["command"], &entry["what"], &entry["key"]], ["restore", "restored", "a"]);
    assert_eq!([&entry["redis_key"], &entry["reason"]], ["idem:a", "INC-9"]);
    assert_eq!(entry["backup"], file.to_str().unwrap());
}

#[test]
fn never_writes_over_what_is_there() {
    let server = Server::start();
    let file = backup::write(&server, &two(&server));
    server.set("idem:b", "taken anew", 70_000);
    let run = restore(&server, &file, &["-o", "json"]).exits(3).json();
    assert_eq!(
        (&run["restored"], &run["present"], &run["complete"]),
        (&1.into(), &1.into(), &true.into())
    );
    assert_eq!(run["redis_keys"][1]["outcome"], "present");
    assert_eq!(server.get("idem:b").unwrap(), b"taken anew");
    restore(&server, &file, &[]).exits(3);
    assert_eq!(server.audited().len(), 1);
}

#[test]
fn what_has_expired_since_stays_away() {
    let server = Server::start();
    let mut lines = two(&server);
    lines[0]["keys"][0]["expires_at_ms"] = (backup::now_ms(&server) - 1).into();
    let run = restore(&server, &backup::write(&server, &lines), &["-o", "jsonl"]).exits(0);
    run.says("Restored 1 of 2 Redis keys; 1 expired since.");
    assert_eq!(run.json_lines()[0]["outcome"], "expired");
    assert_eq!(server.get("idem:a"), None);
}

#[test]
fn what_was_taken_back_is_not_restored() {
    let server = Server::start();
    let [a, b] = two(&server);
    let lines = [a.clone(), b.clone(), backup::void(&["idem:a"]), a, b, backup::void(&["idem:b"])];
    let run = restore(&server, &backup::write(&server, &lines[..3]), &["--dry-run", "-o", "jsonl"])
        .exits(0);
    assert_eq!(run.json_lines().len(), 1);
    // Removed, taken anew, and left alone then: the first line counts.
    let run = restore(&server, &backup::write(&server, &lines), &["-o", "jsonl"]).exits(0);
    let keys: Vec<_> = run.json_lines().iter().map(|line| line["redis_key"].clone()).collect();
    assert_eq!(keys, ["idem:b", "idem:a"]);
}

#[test]
fn only_the_keys_asked_for() {
    let server = Server::start();
    let file = backup::write(&server, &two(&server));
    assert!(
        restore(&server, &file, &["--only", "nowhere"])
            .exits(1)
            .stderr
            .contains("holds no such key")
    );
    restore(&server, &file, &["--only", "b", "--only", "nowhere"])
        .exits(3)
        .says("nowhere: ")
        .says("holds no such key");
    assert_eq!(server.get("idem:a"), None);
    restore(&server, &file, &["--only", "idem:a"]).exits(0);
    assert_eq!(server.size(), 2);
}

#[test]
fn a_dry_run_tells_and_changes_nothing() {
    let server = Server::start();
    let file = backup::write(&server, &two(&server));
    server.set("idem:b", "taken anew", 70_000);
    let run = restore(&server, &file, &["--dry-run"]).exits(3);
    run.says("Would restore 1 of 2").says("nothing was changed").shows("restore ").shows("present");
    assert_eq!(server.size(), 1);
    assert!(server.audited().is_empty());
}

#[test]
fn asks_first() {
    let server = Server::start();
    let file = backup::write(&server, &two(&server));
    let file = file.to_str().unwrap();
    server.idemctl(&["restore", file]).exits(2);
    assert_eq!(server.size(), 0);
}

#[test]
fn a_backup_that_a_crash_cut_short_gives_back_what_it_holds() {
    let server = Server::start();
    let [a, b] = two(&server).map(|line| backup::sealed(&line) + "\n");
    let file = server.folder().join("backup.jsonl");
    let both = format!("{a}{b}");
    for cut in [a.len() + 1, a.len() + 12, a.len() + 40, both.len() - 2] {
        fs::write(&file, &both[..cut]).unwrap();
        server.send::<()>(&[b"DEL", b"idem:a"]);
        // Nothing tells what the lost end held.
        let run = restore(&server, &file, &[]).exits(3);
        run.says("truncated").says("has no closing line").says("Restored 1 of 1");
        assert!(server.get("idem:a").is_some() && server.get("idem:b").is_none(), "{cut}");
    }
    // Only the line feed of the last line is missing: the line is whole.
    fs::write(&file, both.trim_end()).unwrap();
    assert!(!restore(&server, &file, &[]).exits(3).stderr.contains("the line is truncated"));
    assert!(server.get("idem:b").is_some());
    fs::write(&file, "").unwrap();
    restore(&server, &file, &[]).exits(2).says("contains no lines of a backup");
}

#[test]
fn foreign_damaged_and_newer_files_are_refused_before_anything_is_restored() {
    let server = Server::start();
    let [a, b] = two(&server);
    let with = |field: &str, value: Value| {
        let mut line = b.clone();
        line[field] = value;
        backup::sealed(&line)
    };
    let with_key = |field: &str, value: Value| {
        let mut line = b.clone();
        line["keys"][0][field] = value;
        backup::sealed(&line)
    };
    let mut dump = b["keys"][0]["dump_base64"].as_str().unwrap().to_owned();
    dump.replace_range(2..3, if &dump[2..3] == "A" { "B" } else { "A" });
    let file = server.folder().join("backup.jsonl");
    let first = backup::sealed(&a);
    for (second, says) in [
        ("hello".to_owned(), "not a line of an idemctl backup"),
        (json!({"at": "2026", "who": "me"}).to_string(), "not a line of an idemctl backup"),
        ("[1]".to_owned(), "not a line of an idemctl backup"),
        (with("format", 3.into()), "format 3"),
        (with("keys", json!([])), "`keys` is missing"),
        (with_key("dump_base64", dump.into()), "checksum"),
        (with_key("dump_base64", "###".into()), "not base64"),
        (with_key("dump_base64", Value::Null), "missing"),
        (with_key("redis_key_base64", 7.into()), "damaged"),
        (with_key("ttl_ms", 5.into()), "`expires_at_ms` is missing"),
        (b.to_string(), "its checksum is wrong"),
        (b.to_string()[..60].to_owned(), "truncated"),
        (String::new(), "empty"),
    ] {
        fs::write(&file, format!("{first}\n{second}\n{first}\n")).unwrap();
        let run = restore(&server, &file, &[]).exits(2);
        assert!(
            run.stderr.contains("backup.jsonl:2: ") && run.stderr.contains(says),
            "{second}: {}",
            run.all()
        );
        run.says("nothing was restored");
    }
    for foreign in [&b"hello"[..], b"\x7fELF\x00\x00", b"null"] {
        fs::write(&file, foreign).unwrap();
        restore(&server, &file, &[]).exits(2);
    }
    restore(&server, Path::new("/nowhere/backup"), &[])
        .exits(2)
        .says("cannot read the backup /nowhere/backup");
    restore(&server, server.folder(), &[]).exits(2);
    assert_eq!(server.size(), 0);
}

/// A DUMP of a version no server knows yet, its checksum right.
#[test]
fn a_server_that_does_not_know_the_format_says_so() {
    let server = Server::start();
    let mut line = two(&server)[0].clone();
    line["keys"][0]["dump_base64"] = "AAF4//8BAgMEBQYHCA==".into();
    let file = server.folder().join("damaged.jsonl");
    fs::write(&file, backup::sealed(&line)).unwrap();
    restore(&server, &file, &[]).exits(2).says("checksum");
    // "\0\x01x", version 0xfff0, and the checksum of that.
    line["keys"][0]["dump_base64"] = NEWER.into();
    restore(&server, &backup::write(&server, &[line]), &[])
        .exits(3)
        .says("cannot read the format")
        .says("newer");
}

const NEWER: &str = "AAF48P/hToiCRzESUA==";

#[test]
fn a_log_that_cannot_be_written_stops_it_before_anything_is_restored() {
    let server = Server::start();
    let file = backup::write(&server, &two(&server));
    let state = server.folder().join(".local/state/idemctl");
    fs::create_dir_all(state.join("audit/log.jsonl")).unwrap();
    restore(&server, &file, &[]).exits(2).says("idemctl/audit: it is a folder");
    assert_eq!(server.size(), 0);
}

#[test]
fn many_go_in_batches() {
    let server = Server::start();
    let keys: Vec<_> = (0..350).map(|index| format!("idem:{index}")).collect();
    server.fill(keys.iter().map(|key| (key, key)), 60_000);
    let lines: Vec<_> = keys.iter().map(|key| backup::line(&server, key)).collect();
    let file = backup::write(&server, &lines);
    server.send::<()>(&[b"FLUSHALL"]);
    server.send::<()>(&[b"CONFIG", b"RESETSTAT"]);
    let run = restore(&server, &file, &["-o", "json"]).exits(0).json();
    // The first one finds out whether scripts work.
    assert_eq!((&run["restored"], server.calls("eval")), (&350.into(), 5));
    assert!(keys.iter().all(|key| server.get(key).unwrap() == key.as_bytes()));
    assert_eq!(server.audited().len(), 350);
}

/// Rule: a call restores at most 4 MiB of values, or a single larger record.
#[test]
fn large_values_do_not_share_a_call() {
    let server = Server::start();
    let mut lines = Vec::new();
    for (index, size) in [3_000_usize, 3_000, 1_000, 5_000, 1_000].into_iter().enumerate() {
        // Bytes that DUMP cannot compress.
        let mut state = index as u32 + 1;
        let value: Vec<u8> = (0..size << 10)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.to_be_bytes()[0]
            })
            .collect();
        server.put(&format!("idem:{index}"), value);
        lines.push(backup::line(&server, &format!("idem:{index}")));
    }
    let file = backup::write(&server, &lines);
    server.send::<()>(&[b"FLUSHALL"]);
    server.send::<()>(&[b"CONFIG", b"RESETSTAT"]);
    restore(&server, &file, &[]).exits(0);
    assert_eq!((server.size(), server.calls("eval")), (5, 5));
}

#[test]
fn nothing_from_a_backup_reaches_a_terminal_as_it_is() {
    let server = Server::start();
    let mut line = two(&server)[0].clone();
    for field in ["schema", "state", "key"] {
        line[field] = "a\u{1b}[31m\u{202e}".into();
    }
    let file = backup::write(&server, &[line]);
    for output in ["table", "json", "jsonl"] {
        let run = restore(&server, &file, &["--dry-run", "-o", output]).exits(0);
        assert!(!run.text().contains(['\u{1b}', '\u{202e}']), "{}", run.all());
    }
}
