//! `idemctl extend` from the outside.

use std::time::SystemTime;

use crate::support::proxy::{Hook, hooked_socket, sends_at};
use crate::support::{DONE, FOREVER, PENDING, Server};

fn seeded() -> Server {
    Server::holding(&[
        ("idempotency:a", PENDING, 20_000),
        ("idempotency:b", PENDING, 20_000),
        ("idempotency:long", PENDING, 7_200_000),
        ("idempotency:stuck", PENDING, FOREVER),
        ("idempotency:done", DONE, 20_000),
        ("idempotency:stranger", r#"{"status":"PENDING","owner":"somebody else"}"#, 20_000),
    ])
}

fn pttl(server: &Server, key: &str) -> i64 {
    server.send(&[b"PTTL", format!("idempotency:{key}").as_bytes()])
}

#[test]
fn a_lock_lives_as_long_as_is_said_from_now_on_and_the_change_is_noted() {
    let server = seeded();
    server
        .idemctl(&["extend", "a", "--for", "1h", "--yes", "--reason", "INC-9"])
        .exits(0)
        .says("Extended 1 lock");
    assert!((3_500_000..=3_600_000).contains(&pttl(&server, "a")), "{}", pttl(&server, "a"));
    assert_eq!(server.get("idempotency:a").unwrap(), PENDING.as_bytes());
    assert!(pttl(&server, "b") <= 20_000);
    let entry = server.audited().remove(0);
    let noted = ["command", "action", "key", "reason"]
        .map(|field| entry[field].as_str().unwrap_or_default());
    assert_eq!((noted[0], noted[2], noted[3]), ("extend", "a", "INC-9"), "{entry}");
}

/// Rule: an extension never takes time from a lock, and changes nothing but locks.
#[test]
fn what_is_no_lock_or_lives_longer_stays_as_it_is() {
    let server = seeded();
    server.idemctl(&["extend", "long", "--for", "1h", "--yes"]).exits(0);
    assert!(pttl(&server, "long") > 7_000_000);
    for (key, code, says) in [
        ("stuck", 2, "it never expires"),
        ("done", 2, "it is completed"),
        ("stranger", 2, "unrecognised: not a value of go-middleware"),
        ("nowhere", 1, "no record"),
    ] {
        let before = pttl(&server, key);
        server.idemctl(&["extend", key, "--for", "1h", "--yes"]).exits(code).says(says);
        assert!(pttl(&server, key) <= before, "{key}");
    }
    assert!(server.audited().is_empty());
}

/// Rule: only the server that holds a lock says when the lock ends. Another clock, such as that of another node of the
/// cluster, neither takes time from the lock nor ends it.
#[test]
fn a_clock_that_differs_takes_no_time_from_a_lock() {
    for by in [120, -120] {
        let server = Server::holding(&[("idempotency:a", PENDING, 50_000)]);
        let socket = hooked_socket(&server, move |sent| {
            let is_asked = sent == b"*1\r\n$4\r\nTIME\r\n";
            let seconds =
                i64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs()).unwrap() + by;
            let told = format!("*2\r\n$10\r\n{seconds}\r\n$1\r\n0\r\n").into_bytes();
            if is_asked { Hook::Replace(told) } else { Hook::Pass }
        });
        server
            .through(&socket, &["extend", "a", "--for", "60s", "--yes"])
            .exits(0)
            .says("Extended 1 lock");
        assert!((50_001..=60_000).contains(&pttl(&server, "a")), "{by}: {}", pttl(&server, "a"));
    }
}

/// Rule: a lock that an operator gave more time is not in excess, as long as the lock has that time.
#[test]
fn an_extended_lock_is_in_excess_once_somebody_else_moved_its_expiry() {
    let server = seeded();
    let stated = ["--schema", "go-middleware", "--lock-ttl", "300s"];
    let sweep =
        [&["sweep", "--include", "excess-ttl", "--yes", "--grace", "1ms"], &stated[..]].concat();
    server.idemctl(&["extend", "a", "--for", "1h", "--yes"]).exits(0);
    let listed =
        server.idemctl(&[&["list", "--finding", "excess-ttl", "-o", "name"], &stated[..]].concat());
    assert_eq!(listed.exits(0).text(), "go-middleware/\"long\"\n");
    // Nor does it contradict a default.
    let told = server.idemctl(&["list", "--match", "a*"]).exits(0).all();
    assert!(!told.contains("default lock TTL"), "{told}");
    server.idemctl(&sweep).exits(0);
    assert_eq!(
        (server.get("idempotency:a").is_some(), server.get("idempotency:long")),
        (true, None)
    );
    server.send::<i64>(&[b"PEXPIRE", b"idempotency:a", b"3000000"]);
    server.idemctl(&sweep).exits(0);
    assert_eq!(server.get("idempotency:a"), None);
}

#[test]
fn several_locks_are_extended_with_one_question_and_the_others_are_named() {
    let server = seeded();
    let keys = "a\nb\nnowhere\nlong\na\n";
    let words = ["extend", "--key-file", "-", "--for", "1h", "-o", "json", "--yes"];
    let run = server.idemctl_fed(&words, keys.as_bytes()).exits(3);
    run.says("1 of 4 locks were not extended");
    let locks = run.json()["locks"].as_array().unwrap().clone();
    let outcomes: Vec<_> = locks
        .iter()
        .map(|lock| ["key", "outcome"].map(|field| lock[field].as_str().unwrap()))
        .collect();
    assert_eq!(
        outcomes,
        [["a", "extended"], ["b", "extended"], ["nowhere", "not-found"], ["long", "enough"]]
    );
    assert!(pttl(&server, "a") > 3_000_000 && pttl(&server, "b") > 3_000_000);
}

#[test]
fn a_dry_run_changes_nothing_and_without_leave_nothing_changes() {
    let server = seeded();
    let run = server.idemctl(&["extend", "a", "stuck", "--for", "1h", "--dry-run"]).exits(3);
    run.says("dry run: nothing was changed").shows("it never expires");
    server
        .idemctl(&["extend", "a", "--for", "1h"])
        .exits(2)
        .says("cannot prompt without a terminal");
    server.idemctl(&["extend", "--for", "1h", "--yes"]).exits(2).says("no KEY was given");
    server.idemctl(&["extend", "a", "--for", "0", "--yes"]).exits(2);
    assert!(pttl(&server, "a") <= 20_000 && server.audited().is_empty());
}

/// Rule: only the lock that was shown gets more time.
#[test]
fn a_lock_that_was_taken_anew_since_it_was_shown_gets_no_more_time() {
    let server = seeded();
    let anew = ["SET", "idempotency:a", PENDING, "PX", "15000"];
    let way = sends_at(&server, "idempotency:a\r\n$20\r\n{\"status\"", &anew);
    server
        .through(&way, &["extend", "a", "--for", "1h", "--yes"])
        .exits(8)
        .says("changed since it was shown");
    assert!(pttl(&server, "a") <= 15_000);
}

/// Rule: a command line is never part of a table, whose cells fold: it would lose its server.
#[test]
fn what_is_done_about_a_lock_without_expiry_is_a_hint_with_the_server() {
    let server = seeded();
    let run = server.idemctl(&["extend", "stuck", "--for", "1h", "--dry-run"]).exits(2);
    assert!(!run.text().contains("idemctl"), "{}", run.all());
    run.says("use `idemctl -s ").says(" force-unlock KEY`");
}

/// Rule: the TTL shows no age of a lock whose expiry an operator set, in any command. Revert: with
/// `note_extension` empty, `check` is OK and `list --newer-than` shows the lock.
#[test]
fn a_lock_that_got_its_expiry_from_an_operator_has_no_age() {
    let in_progress = r#"{"status":"IN_PROGRESS"}"#;
    let server = Server::holding(&[("idem:k", in_progress, 15_000)]);
    let of = |words: &[&str]| {
        server.idemctl(&[words, &["--schema", "express", "--lock-ttl", "30s"]].concat())
    };
    of(&["check", "--overdue", "10s"]).exits(1).shows("1 overdue lock");
    server.idemctl(&["extend", "k", "--schema", "express", "--for", "28s", "--yes"]).exits(0);
    let why = "1 lock of unknown age: set lock_ttl in the context";
    of(&["check", "--overdue", "10s"]).exits(3).shows(why);
    assert_eq!(of(&["inspect", "k", "-o", "json"]).json()["created_at"], serde_json::Value::Null);
    for words in [["list", "--newer-than", "10s"], ["stats", "--older-than", "1s"]] {
        of(&words).says("Skipped 1 record (express 1) of unknown age");
    }
    let purge = ["purge", "--state", "in-progress", "--newer-than", "10s", "--dry-run"];
    of(&purge).says("Skipped 1 record (express 1) of unknown age");
    // All commands agree that it may stay so long.
    server.idemctl(&["extend", "k", "--schema", "express", "--for", "1h", "--yes"]).exits(0);
    of(&["check"]).exits(0).shows("OK");
    of(&["list", "--finding", "excess-ttl"]).says("no such records");
    of(&["sweep", "--include", "excess-ttl", "--dry-run"]).exits(0).says("no locks were selected");
    let filtered = of(&["sweep", "--orphaned", "--match", "x*", "--dry-run"]).exits(0);
    filtered.says("no locks were selected");
    // A lock that `sweep` gave an expiry is not as old as that expiry makes it seem.
    server.send::<()>(&[b"SET", b"idem:endless", in_progress.as_bytes()]);
    let expire = ["sweep", "--orphaned", "--action", "expire", "--grace", "0s", "--yes"];
    of(&expire).exits(0).says("1 of 1 lock done");
    let inspected = of(&["inspect", "endless", "-o", "json"]).json();
    assert_eq!(inspected["created_at"], serde_json::Value::Null, "{inspected}");
}
