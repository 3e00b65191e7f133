//! What is chosen, what is refused, and what is told of both.

use std::fs;

use serde_json::Value;

use crate::support::{PENDING, Run, Runs, Server, bounded};

pub(super) const DONE: &str = r#"{"status":"COMPLETED","code":201,"headers":{},"body":""}"#;

const RESULT: &str = r#"{"statusCode":200,"body":"ok"}"#;

pub(super) const DAY: u64 = 86_400_000;

const HOUR: u64 = 3_600_000;

pub(super) fn seeded() -> Server {
    let server =
        Server::holding(&[("idempotency:old", DONE, HOUR), ("idempotency:new", DONE, DAY)]);
    server.put("idempotency:kept", DONE);
    server.set("idempotency:held", PENDING, 200_000);
    server.set("idempotency:broken", "{garbage", 200_000);
    server.send::<()>(&[b"HSET", b"idempotency:hash", b"f", b"v"]);
    server.set("idem:started:both", "worker-1", 20_000);
    server.set("idem:result:both", RESULT, HOUR);
    server.set("idem:result:one", RESULT, DAY);
    server.set("idem:started:one-held", "worker-1", 20_000);
    server.set("bare", r#"{"status":1,"response":{"StatusCode":201,"Header":{},"Body":""}}"#, HOUR);
    server.set("unrelated", "x", HOUR);
    let result = "result_ttl = \"24h\"";
    server.states(&[
        ("go-middleware", &format!("lock_ttl = \"5m\"\n{result}")),
        ("event-driven", result),
    ]);
    server
}

pub(super) fn purge(server: &Server, words: &[&str]) -> Run {
    server.idemctl(&[&["purge"], words].concat())
}

/// The same, where nothing ends by itself.
fn lasting() -> Server {
    let server = seeded();
    for key in server.keys() {
        server.send::<()>(&[b"PERSIST", key.as_bytes()]);
    }
    server
}

/// The Redis keys that a purge removes.
fn removed(words: &[&str], stdin: &[u8]) -> Vec<String> {
    let server = seeded();
    let before = server.keys();
    let run = server.idemctl_fed(&[&["purge", "--yes"], words].concat(), stdin);
    // What the operator's own filters leave out is what was asked for.
    let filters = words.iter().any(|word| ["--state", "--older-than", "--finding"].contains(word));
    let is_left =
        |line: &str| line.starts_with("unchanged: ") && !(filters && line.contains("not selected"));
    let is_part = ["not found: ", "Skipped "].iter().any(|told| run.stderr.contains(told))
        || run.stderr.lines().any(is_left);
    assert_eq!(run.code, if is_part { 3 } else { 0 }, "{}", run.all());
    server.gone(&before)
}

pub(super) fn many(server: &Server, count: usize) {
    server.fill((0..count).map(|index| (format!("idempotency:k{index}"), DONE)), 80_000_000);
}

#[test]
fn each_selector_removes_what_it_says_and_no_lock_unless_asked() {
    let both = ["idem:result:both", "idem:started:both"];
    assert_eq!(
        removed(&["--all"], b""),
        [
            &both[..1],
            &["idem:result:one"],
            &both[1..],
            &["idempotency:kept", "idempotency:new", "idempotency:old"]
        ]
        .concat()
    );
    assert_eq!(removed(&["--match", "*", "--all", "--schema", "event-driven"], b"").len(), 3);
    assert_eq!(removed(&["--older-than", "20h"], b""), [&both[..], &["idempotency:old"]].concat());
    assert_eq!(removed(&["--match", "o*"], b""), ["idem:result:one", "idempotency:old"]);
    assert_eq!(removed(&["--schema", "event-driven", "--older-than", "20h"], b""), both);
    assert_eq!(removed(&["--schema", "go-chi", "--match", "b*"], b""), ["bare"]);
    assert_eq!(removed(&["--schema", "go-chi", "--key-file", "-"], b"bare\nunrelated\n"), ["bare"]);
    assert_eq!(removed(&["--finding", "leftover-lock"], b""), both);
    assert_eq!(removed(&["--finding", "result-no-expiry"], b""), ["idempotency:kept"]);
    let one = ["--schema", "go-middleware", "--match", "b*"];
    assert_eq!(
        removed(&[&one[..], &["--finding", "unreadable"]].concat(), b""),
        ["idempotency:broken"]
    );
    assert_eq!(
        removed(&[&one[..], &["--state", "unreadable"]].concat(), b""),
        ["idempotency:broken"]
    );
    assert_eq!(
        removed(&["--state", "in-progress"], b""),
        ["idem:started:one-held", "idempotency:held"]
    );
    assert_eq!(
        removed(&["--state", "in-progress", "--finding", "overdue", "--overdue", "60s"], b""),
        ["idempotency:held"]
    );
    assert_eq!(
        removed(&["--key-file", "-"], b"old\nheld\nnowhere\n\nidem:result:one\n"),
        ["idem:result:one", "idempotency:old"]
    );
    assert_eq!(
        removed(&["--key-file", "-", "-0", "--state", "in-progress"], b"old\0held\0"),
        ["idempotency:held"]
    );
    assert_eq!(removed(&["--key-file", "-"], b"bare\nunrelated\nbroken\nhash\n"), [""; 0]);
    assert_eq!(
        removed(&["--key-file", "-", "--older-than", "20h"], b"old\nnew\nold\n"),
        ["idempotency:old"]
    );
    assert_eq!(
        removed(&["--key-file", "-"], b"old\nnew\n"),
        ["idempotency:new", "idempotency:old"]
    );
    assert_eq!(
        removed(&["old", "idem:result:one", "old"], b""),
        ["idem:result:one", "idempotency:old"]
    );
    assert_eq!(removed(&["-"], b"old\n"), ["idempotency:old"]);
    assert_eq!(removed(&["held"], b""), [""; 0]);
    assert_eq!(removed(&["held", "--state", "in-progress"], b""), ["idempotency:held"]);
}

#[test]
fn bad_input_is_refused_and_loses_nothing() {
    let server = lasting();
    let before = server.keys();
    let folder = server.folder().to_str().unwrap().to_owned();
    for words in [
        &[][..],
        &["--match", "*"],
        &["--schema", "go-chi"],
        &["--schema", "go-chi", "--match", "[a-z]*"],
        &["--schema", "go-chi,express", "--all"],
        &["--state", "unreadable"],
        &["--state", "unreadable", "--schema", "go-middleware"],
        &["--finding", "unreadable", "--match", "b*"],
        &["--match", "***"],
        &["--match", "old[", "--all"],
        &["--match", "", "--all"],
        &["--match", "old\\", "--all"],
        &["--older-than", "soon"],
        &["--older-than", "-1h"],
        &["--max", "-1", "--all"],
        &["--max", "many", "--all"],
        &["--max-percent", "-1", "--all"],
        &["--max-percent", "101", "--all"],
        &["--max-percent", "NaN", "--all"],
        &["--max-percent", "5", "--key-file", "-"],
        &["--rate", "0", "--all"],
        &["--rate", "-5", "--all"],
        &["--rate", "5/m", "--all"],
        &["--state", "absent"],
        &["--finding", "nosuch"],
        &["--finding", "no-expiry"],
        &["--finding", "overdue", "--overdue", "1s"],
        &["--finding", "wrong-type"],
        &["--key-file", "missing"],
        &["--key-file", &folder],
        &["-0", "--all"],
        &["--schema", "nosuch"],
        &["--all", "--backup", "/proc/backup"],
        &["--all", "--backup", "/dev/full/backup"],
        &["--all", "--confirm", "elsewhere:6379/0"],
    ] {
        let run = purge(&server, &[&["--yes"], words].concat()).exits(2);
        assert!(run.stderr.contains("error:"), "{words:?}: {}", run.all());
    }
    server
        .command()
        .args(["purge", "--all", "--yes"])
        .env("XDG_STATE_HOME", "/proc")
        .run()
        .exits(2);
    purge(&server, &["--all"]).exits(2).says("without a terminal").says("--confirm");
    assert_eq!(server.keys(), before);
}

#[test]
fn a_disk_that_is_full_or_read_only_loses_nothing() {
    let server = seeded();
    let before = server.keys();
    let backups = server.state("backups");
    fs::create_dir_all(backups.parent().unwrap()).unwrap();
    fs::write(&backups, "a file where the folder should be").unwrap();
    purge(&server, &["--all", "--yes"]).exits(2);
    // Writing beyond the limit fails as on a full disk.
    let words = ["purge", "--all", "--yes", "--backup", "backup"];
    bounded(server.command().args(words), "ulimit -f 0; trap '' XFSZ")
        .exits(2)
        .says("cannot write");
    assert_eq!(server.keys(), before);
}

#[test]
fn limits_refuse_and_are_never_passed() {
    let server = Server::start();
    many(&server, 20);
    server.set("idempotency:held", PENDING, 200_000);
    let left = || server.size();
    purge(&server, &["--all", "--yes", "--max", "19"])
        .exits(2)
        .says("20 records are selected, but --max allows 19");
    purge(&server, &["--match", "k1*", "--yes", "--max-percent", "50"]).exits(2);
    purge(&server, &["--all", "--yes", "--max", "0"]).exits(2);
    assert_eq!(left(), 21);
    purge(&server, &["--match", "k1*", "--yes", "--max-percent", "53%", "--max", "20"]).exits(0);
    assert_eq!(left(), 10);
    purge(&server, &["--all", "--yes", "--max", "9"]).exits(0);
    assert_eq!(left(), 1);
}

#[test]
fn a_dry_run_counts_and_changes_nothing() {
    let server = seeded();
    let before = server.keys();
    let run = purge(&server, &["--all", "--dry-run"]).exits(0);
    run.shows("go-middleware").shows("completed");
    let json = purge(&server, &["--all", "--dry-run", "-o", "json"]).exits(0).json();
    assert_eq!(
        (&json["format"], &json["outcome"], &json["total"]),
        (&1.into(), &"shown".into(), &5.into())
    );
    let group = &json["found"][0];
    assert_eq!((&group["schema"], &group["state"]), (&"event-driven".into(), &"completed".into()));
    assert_eq!(group["count"], 2);
    assert!(group["oldest_ms"].as_u64().unwrap() >= DAY - HOUR);
    assert_eq!(server.keys(), before);
    assert!(!server.folder().join(".local/state/idemctl").exists());
}

#[test]
fn the_name_is_asked_for_and_may_be_given() {
    let server = seeded();
    let name = format!("{}/0", server.socket().display());
    purge(&server, &["--match", "old", "--confirm", &name]).exits(0);
    assert_eq!(server.get("idempotency:old"), None);
}

#[test]
fn large_values_are_compared_whole_and_every_removal_is_logged() {
    let server = Server::start();
    let large = |fill: &str| {
        format!(
            r#"{{"status":"COMPLETED","code":201,"headers":{{}},"body":"{}"}}"#,
            fill.repeat(100_000)
        )
    };
    server.fill((0..40).map(|index| (format!("idempotency:large{index}"), large("QUFB"))), HOUR);
    let json =
        purge(&server, &["--all", "--yes", "-o", "json", "--reason", "GDPR"]).exits(0).json();
    assert_eq!((&json["done"], &json["outcome"]), (&40.into(), &"done".into()));
    assert_eq!(server.size(), 0);
    let audit = server.audited();
    assert_eq!(audit.len(), 40);
    let noted = |entry: &Value| ["command", "what", "reason"].map(|field| entry[field].clone());
    assert!(audit.iter().all(|entry| noted(entry) == ["purge", "purged", "GDPR"]), "{audit:?}");
}

#[test]
fn a_number_that_makes_no_sense_is_explained() {
    let server = Server::start();
    let says = |words: &[&str], why: &str| {
        purge(&server, words).exits(2).says(why);
    };
    says(&["--all", "--max", "-1"], "a number of records must be a whole number, and 0 or more");
    says(&["--older-than", "-1h"], "write 90s, 10m or 24h");
    says(&["--key-file", "/nowhere"], "nothing was changed");
}

#[test]
fn records_are_walked_once_whether_somebody_is_asked_or_not() {
    let server = Server::start();
    let scans = |words: &[&str]| {
        many(&server, 200);
        server.send::<()>(&[b"CONFIG", b"RESETSTAT"]);
        let run = purge(&server, words).exits(0);
        run.says("200 of 200 records purged");
        assert!(
            String::from_utf8_lossy(&run.stdout).contains("completed    200 "),
            "{}",
            run.all()
        );
        server.calls("scan")
    };
    let one = scans(&["--all", "--yes"]);
    assert_eq!(scans(&["--all", "--yes", "--max", "200"]), one);
    assert_eq!(scans(&["--all", "--yes", "--max-percent", "100"]), one);
    assert_eq!(scans(&["--all", "--confirm", &format!("{}/0", server.socket().display())]), one);
    let run = purge(&server, &["--all", "--yes"]).exits(0);
    assert!(
        run.stderr.contains("no such records among 0 keys") && !run.stderr.contains("purged"),
        "{}",
        run.all()
    );
}

#[test]
fn what_the_user_may_not_do_is_said_and_nothing_is_lost() {
    let server = seeded();
    let before = server.keys();
    server.add_reader();
    purge(&server, &["--user", "reader", "-a", "pw", "--all", "--yes"]).exits(4);
    assert_eq!(server.keys(), before);
}

/// Rule: what a record is, is told by as much of its value as that takes, also at the look right before the change.
#[test]
fn a_value_whose_end_tells_what_it_is_goes() {
    let server = Server::start();
    let body = "x".repeat(10_000);
    let value =
        format!(r#"{{"body":"{body}","headers":{{}},"statusCode":201,"status":"COMPLETED"}}"#);
    for more in [&[][..], &["--rate", "100/s"]] {
        server.set("idem:long", &value, HOUR);
        let words = [&["--schema", "express", "--all", "--yes", "-o", "json"], more].concat();
        let json = purge(&server, &words).exits(0).json();
        assert_eq!((&json["total"], &json["done"]), (&1.into(), &1.into()), "{json}");
        assert_eq!(server.get("idem:long"), None);
    }
}
