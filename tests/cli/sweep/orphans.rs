//! Which locks are swept, and what is told of them.

use std::fs;
use std::thread;
use std::time::Duration;

use crate::support::{DONE, FOREVER, LOCK, Run, Running, Runs, Server, Signal};

pub(super) const PENDING: &str = r#"{"status":"PENDING"}"#;

pub(super) const WITHOUT_GRACE: [&str; 4] = ["--orphaned", "--yes", "--grace", "0"];

/// One lock of each finding, beside sound records.
fn seeded() -> Server {
    Server::holding(&[
        ("idempotency:stuck", PENDING, FOREVER),
        ("idempotency:long", PENDING, 80_000_000),
        ("idempotency:slow", PENDING, 100_000),
        ("idempotency:fresh", PENDING, 299_000),
        ("idempotency:broken", "{garbage", 100_000),
        ("idempotency:done", DONE, FOREVER),
        ("idem:started:left", "worker-1", 20_000),
        ("idem:result:left", r#"{"statusCode":200,"body":""}"#, 80_000_000),
        ("idem:started:beside", "worker-2", FOREVER),
        ("idem:result:beside", r#"{"statusCode":200,"body":""}"#, 80_000_000),
        ("idem:result:broken", "{", FOREVER),
    ])
}

pub(super) fn sweep(server: &Server, words: &[&str]) -> Run {
    server.idemctl(&[&["sweep"], words].concat())
}

/// The Redis keys that a sweep removes.
fn removed(words: &[&str]) -> Vec<String> {
    let server = seeded();
    let before = server.keys();
    let run = sweep(&server, words);
    assert_eq!(run.code, if run.stderr.contains("Skipped ") { 3 } else { 0 }, "{}", run.all());
    server.gone(&before)
}

#[test]
fn each_selector_removes_its_locks_and_never_a_result() {
    let with = |words: &[&str]| removed(&[words, &["--yes", "--grace", "0"]].concat());
    assert_eq!(with(&["--orphaned"]), ["idem:started:beside", "idempotency:stuck"]);
    assert_eq!(with(&["--include", "leftover-lock"]), ["idem:started:beside", "idem:started:left"]);
    let excess = ["--include", "excess-ttl", "--schema", "go-middleware", "--lock-ttl", "300s"];
    assert_eq!(with(&excess), ["idempotency:long"]);
    assert_eq!(with(&["--older-than", "150s"]), [""; 0], "nothing tells an age for certain");
    let old = ["--older-than", "150s", "--schema", "go-middleware", "--lock-ttl", "300s"];
    assert_eq!(with(&old), [""; 0], "a lock that ends by itself is no orphan on age");
    let one = ["--schema", "go-middleware", "--match", "b*"];
    assert_eq!(with(&[&one[..], &["--include", "unreadable"]].concat()), ["idempotency:broken"]);
    assert_eq!(with(&["--orphaned", "--match", "b*"]), ["idem:started:beside"]);
    assert_eq!(with(&["--orphaned", "--schema", "event-driven"]), ["idem:started:beside"]);
    assert_eq!(with(&["--orphaned", "--schema", "express"]), [""; 0]);
    assert_eq!(
        with(&[&["--orphaned"][..], &excess, &old[..2]].concat()),
        ["idempotency:long", "idempotency:stuck"]
    );
}

/// Rule: a lock that ends by itself is an orphan only on word of its owner's death.
#[test]
fn a_lock_that_ends_by_itself_stays_and_is_counted() {
    // A worker that was told that there is no result may take the lock after the result came.
    let server = Server::holding(&[
        ("idem:lock:passed", "1", 20_000),
        ("idem:done:passed", "1", 80_000_000),
    ]);
    server.fill(["alive", "dead"].map(|owner| (format!("idem:started:{owner}"), owner)), 10_000);
    server.states(&[("event-driven", "lock_ttl = \"30s\"")]);
    let words = [
        "--include",
        "leftover-lock",
        "--older-than",
        "15s",
        "--yes",
        "--grace",
        "0",
        "-o",
        "json",
    ];
    let json = sweep(&server, &words).exits(0).json();
    assert_eq!(
        (&json["total"], &json["done"], &json["left_to_expire"]),
        (&3.into(), &0.into(), &3.into()),
        "{json}"
    );
    sweep(&server, &words[..words.len() - 2]).exits(0).says("Left to expire: 3 locks");
    let ask = ["--owner-alive", "[ \"$1\" = alive ]"];
    let json = sweep(&server, &[&words[..], &ask].concat()).exits(0).json();
    assert_eq!(
        (&json["done"], &json["skipped_alive"], &json["left_to_expire"]),
        (&1.into(), &1.into(), &1.into())
    );
    assert_eq!(server.keys(), ["idem:done:passed", "idem:lock:passed", "idem:started:alive"]);
}

/// Rule: whether a lock ends by itself is judged on the look right before the change.
#[test]
fn a_lock_that_comes_to_end_by_itself_during_the_grace_stays() {
    let lock =
        r#"{"state":"in-progress","owner":"a","fingerprint":"f","created_at":1735689600123}"#;
    // A second and a half more than the lock TTL.
    let server = Server::holding(&[("idemkey:k", lock, 31_500)]);
    let run =
        sweep(&server, &["--older-than", "10m", "--yes", "--grace", "3s", "-o", "json"]).exits(0);
    let json = run.json();
    assert_eq!(
        (&json["total"], &json["done"], &json["left_to_expire"]),
        (&1.into(), &0.into(), &1.into()),
        "{json}"
    );
    assert_eq!(server.keys(), ["idemkey:k"]);
}

/// Rule: a lock that the rule no longer chooses at the look right before the change stays, though nobody touched that lock.
#[test]
fn a_lock_that_is_no_longer_in_excess_after_the_grace_stays() {
    // A second and a half more than counts as in excess of the lock TTL.
    let server = Server::holding(&[("idem:k", LOCK, 32_500)]);
    let stated = ["--include", "excess-ttl", "--schema", "express", "--lock-ttl", "30s"];
    let json = sweep(&server, &[&stated[..], &["--yes", "--grace", "3s", "-o", "json"]].concat())
        .exits(0)
        .json();
    assert_eq!(
        (&json["total"], &json["done"], &json["changed"]),
        (&1.into(), &0.into(), &1.into()),
        "{json}"
    );
    assert_eq!(server.keys(), ["idem:k"]);
}

#[test]
fn a_selector_is_needed_and_has_to_make_sense() {
    let server = seeded();
    let before = server.keys();
    for words in [
        &["--yes"][..],
        &["--orphaned", "oversized", "--yes"],
        &["--include", "oversized", "--yes"],
        &["--include", "excess-ttl", "--yes"],
        &["--include", "excess-ttl", "--lock-ttl", "5m", "--yes"],
        &["--orphaned", "--action", "expire", "--yes"],
        &["--older-than", "soon", "--yes"],
        &["--include", "completed", "--yes"],
        &["--include", "unreadable", "--yes"],
        &["--include", "unreadable", "--schema", "go-middleware", "--yes"],
        &["--include", "unreadable", "--schema", "go-middleware", "--match", "?*", "--yes"],
        &["--include", "unreadable", "--match", "b*", "--yes"],
        &["--orphaned", "--schema", "go-chi", "--yes"],
        &["--orphaned", "--schema", "go-chi", "--prefix", "", "--yes"],
        &["--orphaned", "--match", "a[", "--yes"],
        &["--orphaned", "--grace", "-1s", "--yes"],
        &["--orphaned", "--action", "delete", "--yes"],
        &["--orphaned", "--schema", "nosuch", "--yes"],
        &["--orphaned"],
    ] {
        sweep(&server, words).exits(2);
    }
    assert_eq!(server.keys(), before);
}

#[test]
fn each_finding_that_is_sought_is_counted() {
    let server = seeded();
    let stated = ["--schema", "go-middleware", "--lock-ttl", "300s"];
    let sought = [
        "--orphaned",
        "--include",
        "excess-ttl,leftover-lock",
        "--older-than",
        "150s",
        "--dry-run",
    ];
    let run = sweep(&server, &[&sought[..], &stated, &["-o", "jsonl"]].concat()).exits(0);
    let found = run.json_lines()[0]["found"].clone();
    for (code, count) in [("no-expiry", 1), ("excess-ttl", 1), ("leftover-lock", 0), ("overdue", 1)]
    {
        assert_eq!(found[code]["count"], count, "{code}: {}", run.all());
    }
    let sound = sweep(&server, &["--orphaned", "--schema", "express", "--dry-run"]).exits(0);
    sound.says("no stuck locks; none of the 11 Redis keys of ");
}

#[test]
fn a_dry_run_shows_and_changes_nothing() {
    let server = seeded();
    let before = server.keys();
    let run = sweep(&server, &["--orphaned", "--yes", "--dry-run"]).exits(0);
    run.shows("no-expiry").shows("stuck (go-middleware)").says("nothing was changed");
    let json = sweep(&server, &["--orphaned", "--dry-run", "-o", "json"]).exits(0).json();
    assert_eq!(
        (&json["format"], &json["outcome"], &json["total"]),
        (&1.into(), &"shown".into(), &2.into())
    );
    assert_eq!(server.keys(), before);
    assert!(!server.folder().join(".local/state/idemctl").exists());
}

#[test]
fn reports_backs_up_and_audits() {
    let server = seeded();
    let run = sweep(&server, &[&WITHOUT_GRACE[..], &["-o", "json", "--reason", "INC-9"]].concat())
        .exits(0);
    let json = run.json();
    assert_eq!(
        (&json["outcome"], &json["done"], &json["changed"]),
        (&"done".into(), &2.into(), &0.into())
    );
    let sample = json["found"]["no-expiry"]["sample"].as_array().unwrap();
    assert!(
        sample.contains(&serde_json::json!({ "schema": "event-driven", "key": "beside" })),
        "{json}"
    );
    assert_eq!(json["found"]["no-expiry"]["oldest_ms"], serde_json::Value::Null);
    let backup = fs::read_to_string(json["backup"].as_str().unwrap()).unwrap();
    assert_eq!(backup.lines().filter(|line| line.contains("redis_key_base64\":\"")).count(), 2);
    let entries = server.audited();
    assert_eq!(entries.len(), 2);
    for entry in entries {
        assert_eq!((&entry["command"], &entry["what"]), (&"sweep".into(), &"swept".into()));
        assert_eq!((&entry["reason"], &entry["backup"]), (&"INC-9".into(), &json["backup"]));
    }
}

#[test]
fn expire_gives_the_schemas_lock_ttl_but_never_more_time() {
    let server = seeded();
    server.states(&[("go-middleware", "lock_ttl = \"300s\"")]);
    let sought = ["--orphaned", "--include", "excess-ttl,leftover-lock", "--older-than", "150s"];
    let words =
        [&sought[..], &["--action", "expire", "--yes", "--grace", "0", "-o", "json"]].concat();
    let json = sweep(&server, &words).exits(3).json();
    assert_eq!(
        (&json["done"], &json["left_to_expire"], &json["backup"]),
        (&2.into(), &1.into(), &().into())
    );
    assert_eq!(json["unproven"]["lock_ttl"], 2, "event-driven states none");
    let left = |key: &str| server.send::<i64>(&[b"PTTL", key.as_bytes()]);
    for key in ["idempotency:stuck", "idempotency:long"] {
        assert!((295_000..=300_000).contains(&left(key)), "{key}: {}", left(key));
    }
    assert!((90_000..=100_000).contains(&left("idempotency:slow")));
    assert!((1..=20_000).contains(&left("idem:started:left")));
}

#[test]
fn what_changed_or_was_renewed_between_the_looks_stays() {
    let server = Server::start();
    for key in ["renewed", "gained", "completed", "retaken", "gone", "stuck"] {
        server.set(&format!("idempotency:{key}"), PENDING, 80_000_000);
    }
    server.put("idempotency:gained", PENDING);
    server.set("idem:started:retaken", "worker-1", 80_000_000);
    server.states(&[
        ("go-middleware", "lock_ttl = \"300s\""),
        ("event-driven", "lock_ttl = \"30s\""),
    ]);
    let words =
        ["sweep", "--orphaned", "--include", "excess-ttl", "--yes", "--grace", "5s", "-o", "json"];
    let running = server.command().args(words).start();
    thread::sleep(Duration::from_millis(2_000));
    server.set("idempotency:renewed", PENDING, 86_000_000);
    server.set("idempotency:gained", PENDING, 300_000);
    server.set("idempotency:completed", DONE, 80_000_000);
    server.set("idempotency:retaken", "in-progress", 300_000);
    server.set("idem:started:retaken", "worker-2", 30_000);
    server.send::<()>(&[b"DEL", b"idempotency:gone"]);
    let json = running.ends().exits(0).json();
    assert_eq!((&json["total"], &json["done"]), (&7.into(), &1.into()), "{json}");
    assert_eq!((&json["renewed"], &json["changed"]), (&2.into(), &4.into()), "{json}");
    assert_eq!(server.get("idempotency:stuck"), None);
    assert_eq!(server.size(), 5);
}

#[test]
fn nothing_is_removed_when_it_cannot_be_backed_up_or_logged() {
    let server = seeded();
    let before = server.keys();
    let existing = server.folder().join("exists");
    fs::write(&existing, "mine").unwrap();
    for backup in [existing.to_str().unwrap(), "/proc/backup", "/dev/full/backup"] {
        sweep(&server, &[&WITHOUT_GRACE[..], &["--backup", backup]].concat()).exits(2);
    }
    server
        .command()
        .args(["sweep"])
        .args(WITHOUT_GRACE)
        .env("XDG_STATE_HOME", "/proc")
        .run()
        .exits(2);
    assert_eq!(server.keys(), before);
}

#[test]
fn a_large_value_that_does_not_decode_goes_and_comes_back_whole() {
    let large = "{garbage".repeat(100_000);
    let server = Server::holding(&[("idempotency:large", &large, 100_000)]);
    let one = ["--schema", "go-middleware", "--match", "large"];
    let words = ["--include", "unreadable", "--yes", "--grace", "0", "-o", "json"];
    let json = sweep(&server, &[&one[..], &words].concat()).exits(0).json();
    assert_eq!((&json["done"], server.get("idempotency:large")), (&1.into(), None));
    server.idemctl(&["restore", json["backup"].as_str().unwrap(), "--yes"]).exits(0);
    assert_eq!(server.get("idempotency:large").unwrap(), large.as_bytes());
}

/// Rule: a lock of which too much is unread to tell whose it is stays, and both the dry run and the exit status say so.
#[test]
fn a_lock_beyond_what_is_read_is_left_alone_and_said_to_be() {
    let server = Server::holding(&[("idem:small", LOCK, FOREVER)]);
    server.put("idem:big", format!("{{\"status\":\"IN_PROGRESS\"{}}}", " ".repeat(17 << 20)));
    let words = ["--orphaned", "--schema", "express", "--grace", "0"];
    let dry = sweep(&server, &[&words[..], &["--dry-run"]].concat()).exits(0);
    dry.says("Skipped, because a value is larger than 16 MiB: 1 record");
    let json = sweep(&server, &[&words[..], &["--yes", "-o", "json"]].concat()).exits(3).json();
    assert_eq!((&json["done"], &json["left_too_large"]), (&1.into(), &1.into()), "{json}");
    assert_eq!(server.keys(), ["idem:big"]);
}

#[test]
fn ctrl_c_during_the_grace_changes_nothing() {
    let server = seeded();
    let before = server.keys();
    let child = server.command().args(["sweep", "--orphaned", "--yes", "--grace", "1m"]).start();
    thread::sleep(Duration::from_millis(2_000));
    child.signal(Signal::INT);
    child.ends().exits(130).says("0 of 2 locks done").says("again");
    assert_eq!(server.keys(), before);
}

#[test]
fn what_the_user_may_not_do_is_said_and_nothing_is_lost() {
    let server = seeded();
    let before = server.keys();
    server.add_reader();
    sweep(&server, &[&["--user", "reader", "-a", "pw"], &WITHOUT_GRACE[..]].concat()).exits(4);
    assert_eq!(server.keys(), before);
}

#[test]
fn more_locks_than_are_acted_on_at_a_time_all_go() {
    let server =
        Server::filled((0..10_050).map(|index| (format!("idempotency:k{index}"), PENDING)), 0);
    let json = sweep(&server, &[&WITHOUT_GRACE[..], &["-o", "jsonl"]].concat()).exits(0).json();
    assert_eq!((&json["total"], &json["done"]), (&10_050.into(), &10_050.into()));
    assert_eq!(server.size(), 0);
}

/// Rule: what a dry run can never show is refused, and not told as nothing to sweep.
#[test]
fn unreadable_values_want_a_schema_and_a_narrow_choice_in_a_dry_run_too() {
    let server = Server::holding(&[("idem:odd", "{odd", FOREVER)]);
    let run = server.idemctl(&["sweep", "--include", "unreadable", "--dry-run"]).exits(2);
    run.says("an unreadable value may belong to any program").says("hint: pass --schema");
    let narrow = ["--schema", "express", "--match", "odd"];
    server
        .idemctl(&[&["sweep", "--include", "unreadable", "--dry-run"], &narrow[..]].concat())
        .exits(0)
        .shows("unreadable");
}

/// Rule: a sweep of locks without expiry reads the values of no other key, which would touch it.
#[test]
fn only_keys_without_an_expiry_are_read() {
    let server = Server::holding(&[("idem:held", LOCK, 20_000), ("idem:done", DONE, 50_000_000)]);
    server.put("idem:stuck", LOCK);
    let run = sweep(&server, &["--orphaned", "--dry-run", "-o", "json"]).exits(0);
    assert_eq!(run.json()["total"], 1);
    assert_eq!(server.calls("getrange"), 1, "{}", run.all());
}
