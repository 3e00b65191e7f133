//! A record that is touched between the look and the change.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crate::support::fault::{self, Hook, says};
use crate::support::proxy::sends_at;
use crate::support::{FOREVER, PENDING, Running, Runs, Server, at_once, until};

pub(super) const LOCK: &str = r#"{"status":"IN_PROGRESS"}"#;

const MINUTES: u64 = 600_000;

/// Releases a lock and takes it anew, with the same bytes and the TTL of its service.
fn retake(server: &Server, key: &str, value: &str, ttl_ms: u64) {
    server.send::<()>(&[b"DEL", key.as_bytes()]);
    server.set(key, value, ttl_ms);
}

/// Does something to the server right before idemctl's request that says this word gets there, once.
pub(super) fn right_before(
    server: &Server,
    word: &'static str,
    act: impl FnOnce() + Send + 'static,
) -> u16 {
    let act = Mutex::new(Some(act));
    fault::hooked(server, move |sent| {
        if says(sent, word)
            && let Some(act) = act.lock().unwrap().take()
        {
            act();
        }
        Hook::Pass
    })
}

/// What is done to a record between the look and the change.
type Touch = fn(&mut redis::Connection, &str, &str);

pub(super) fn query(connection: &mut redis::Connection, words: &[&str]) {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]).query::<redis::Value>(connection).unwrap();
}

/// Everything that makes another record of one, the bytes left as they are; the TTL was ten minutes.
const TOUCHES: [(&str, Touch); 6] = [
    ("renewed", |connection, key, _| query(connection, &["PEXPIRE", key, "600000"])),
    ("retaken", |connection, key, value| query(connection, &["SET", key, value, "PX", "600000"])),
    ("retaken for less", |connection, key, value| {
        query(connection, &["SET", key, value, "PX", "30000"])
    }),
    ("given a little less", |connection, key, _| query(connection, &["PEXPIRE", key, "590000"])),
    ("persisted", |connection, key, _| query(connection, &["PERSIST", key])),
    ("of another type", |connection, key, _| {
        query(connection, &["DEL", key]);
        query(connection, &["RPUSH", key, "x"]);
        query(connection, &["PEXPIRE", key, "600000"]);
    }),
];

/// Rule: a change compares the absolute expiry of what it changes with what was shown.
#[test]
fn no_change_hits_a_record_that_was_touched_between_the_look_and_the_change() {
    let commands: [(&[&str], &str, &str); 5] = [
        (&["force-unlock", "k", "--schema", "express", "--yes"], "UNLINK", LOCK),
        (&["purge", "--state", "in-progress", "--schema", "express", "--yes"], "UNLINK", LOCK),
        (
            &[
                "sweep",
                "--include",
                "excess-ttl",
                "--schema",
                "express",
                "--lock-ttl",
                "30s",
                "--yes",
                "--grace",
                "0",
            ],
            "UNLINK",
            LOCK,
        ),
        (&["release", "k", "--schema", "express", "--yes"], "MULTI", LOCK),
        (
            &["complete", "k", "--schema", "express", "--yes", "--status", "201", "--body", "{}"],
            "MULTI",
            LOCK,
        ),
    ];
    at_once(commands, |(words, word, value)| {
        for (what, touch) in TOUCHES {
            let server = Server::holding(&[("idem:k", value, MINUTES)]);
            // The clock of the server moves on, so that a renewal is another moment.
            thread::sleep(Duration::from_millis(20));
            let mut connection = server.connect();
            let port = right_before(&server, word, move || touch(&mut connection, "idem:k", value));
            let run = server.at(port, words);
            let there: String = server.send(&[b"TYPE", b"idem:k"]);
            assert_ne!(there, "none", "{words:?}, {what}: {}", run.all());
            assert!(
                run.code == 8 || run.stderr.contains("eft unchanged"),
                "{words:?}, {what}: {}",
                run.all()
            );
            if what != "of another type" {
                assert_eq!(server.get("idem:k").unwrap(), value.as_bytes(), "{words:?}, {what}");
            }
        }
    });
}

/// Rule: the expiry of every Redis key of a record is part of its identity, not of the one to change alone.
#[test]
fn a_leftover_lock_stays_when_its_result_was_written_anew() {
    let result = r#"{"statusCode":200,"body":""}"#;
    let server = Server::holding(&[("idem:started:k", "worker", 20_000)]);
    server.set("idem:result:k", result, MINUTES);
    let way = sends_at(&server, "UNLINK", &["SET", "idem:result:k", result, "PX", "500000"]);
    server.through(&way, &["force-unlock", "k", "--schema", "event-driven", "--yes"]).exits(8);
    assert!(server.get("idem:started:k").is_some());
}

/// Rule: of a value that is read in part, a change compares the checksum of all of the value.
#[test]
fn a_large_result_that_differs_behind_what_was_read_stays() {
    let value = |end: &str| {
        let body = "a".repeat(10_000);
        format!(r#"{{"status":"COMPLETED","statusCode":201,"headers":{{}},"body":"{body}{end}"}}"#)
    };
    for words in [
        &["purge", "--all", "--schema", "express", "--yes"][..],
        &["purge", "--key-file", "keys", "--yes"],
    ] {
        let server = Server::holding(&[("idem:k", value("x"), MINUTES)]);
        std::fs::write(server.folder().join("keys"), "k\n").unwrap();
        let way = sends_at(&server, "UNLINK", &["SET", "idem:k", &value("y"), "KEEPTTL"]);
        let run = server.through(&way, words);
        assert_eq!(server.get("idem:k"), Some(value("y").into_bytes()), "{}", run.all());
        run.says("Left unchanged: ");
    }
}

/// Rule: a lock whose expiry lies within its TTL is no orphan on age, however it is renewed.
#[test]
fn sweeps_on_age_take_no_lock_that_workers_renew() {
    let server = Server::start();
    let record = |at: u64| {
        format!(r#"{{"state":"in-progress","owner":"w","fingerprint":"","created_at":{at}}}"#)
    };
    server.fill((0..60).map(|index| (format!("idemkey:k{index}"), record(1_000))), 30_000);
    let child = server
        .command()
        .args(["sweep", "--older-than", "5s", "--grace", "2s", "--yes", "-o", "json"])
        .start();
    let mut connection = server.connect();
    for _ in 0..4 {
        thread::sleep(Duration::from_millis(700));
        for index in 0..60 {
            query(&mut connection, &["PEXPIRE", &format!("idemkey:k{index}"), "30000"]);
        }
    }
    let json = child.ends().exits(0).json();
    assert_eq!((&json["done"], server.size()), (&0.into(), 60), "{json}");
    assert_eq!((&json["total"], &json["left_to_expire"]), (&60.into(), &60.into()), "{json}");
}

/// Rule: what waited for an owner check is looked at again, and no lock that is live by then goes.
#[test]
fn a_lock_that_is_retaken_while_owners_are_asked_stays() {
    let server = Server::holding(&[
        ("idem:started:slow", "dead", FOREVER),
        ("idempotency:beside", PENDING, FOREVER),
    ]);
    let ask = "sleep 4; exit 1";
    let child = server
        .command()
        .args(["sweep", "--orphaned", "--grace", "0", "--yes", "--owner-alive", ask, "-o", "json"])
        .start();
    thread::sleep(Duration::from_millis(2_000));
    retake(&server, "idempotency:beside", PENDING, 300_000);
    retake(&server, "idem:started:slow", "dead", 30_000);
    let json = child.ends().exits(0).json();
    assert_eq!((&json["done"], &json["renewed"]), (&0.into(), &2.into()), "{json}");
    assert_eq!(server.size(), 2);
}

/// Rule: whatever waited for its turn under --rate is looked at again right before the change.
#[test]
fn locks_that_are_retaken_while_a_purge_goes_slowly_stay() {
    let server = Server::filled((0..12).map(|index| (format!("idem:k{index}"), LOCK)), 28_800_000);
    let words = ["purge", "--state", "in-progress", "--yes", "--rate", "4/s", "-o", "json"];
    let child = server.command().args([&words[..], &["--schema", "express"]].concat()).start();
    until("the first is purged", || server.size() < 12);
    let left: Vec<String> = server.send(&[b"KEYS", b"*"]);
    left.iter().for_each(|key| retake(&server, key, LOCK, 30_000));
    let json = child.ends().exits(0).json();
    // The few that were in hand are among the removed.
    assert!(server.size() >= left.len() - 4, "{json}");
    assert!(json["changed"].as_u64().unwrap() >= left.len() as u64 - 4, "{json}");
}

/// Rule: a value is compared whole, up to 4 KiB, and a longer one by its checksum, whatever its length and beginning.
#[test]
fn results_that_are_written_anew_while_they_are_queued_stay() {
    for (length, long) in [(300, false), (20_000, true)] {
        let server = Server::start();
        let result = |end: &str| {
            let body = "QQ==".repeat(length) + end;
            format!(r#"{{"status":"COMPLETED","code":201,"headers":{{}},"body":"{body}"}}"#)
        };
        server.fill(
            (0..12).map(|index| (format!("idempotency:k{index}"), result("QQ=="))),
            80_000_000,
        );
        let words =
            ["purge", "--all", "--yes", "--rate", "4/s", "-o", "json", "--schema", "go-middleware"];
        let child = server.command().args(words).start();
        let mut connection = server.connect();
        until("the first is purged", || server.size() < 12);
        let left: Vec<String> = server.send(&[b"KEYS", b"*"]);
        for key in &left {
            query(&mut connection, &["SET", key, &result("Qg=="), "XX", "KEEPTTL"]);
        }
        let json = child.ends().exits(0).json();
        assert!(server.size() >= left.len() - 4, "{long}: {json}");
        assert!(json["changed"].as_u64().unwrap() >= left.len() as u64 - 4, "{long}: {json}");
    }
}

/// Rule: what is put back has the expiry it had, not one counted anew.
#[test]
fn a_restored_record_is_the_one_that_was_removed() {
    let server = Server::holding(&[("idempotency:k", PENDING, MINUTES)]);
    let (is_exact, before) = deadline(&server, "idempotency:k");
    server
        .idemctl(&["force-unlock", "k", "--schema", "go-middleware", "--yes", "--backup", "b"])
        .exits(0);
    thread::sleep(Duration::from_millis(30));
    server.idemctl(&["restore", "b", "--yes"]).exits(0);
    let apart = (deadline(&server, "idempotency:k").1 - before).abs();
    assert!(apart <= if is_exact { 0 } else { 2 }, "{apart} ms");
}

/// When a Redis key expires, milliseconds since the epoch, and before it whether the server tells that exactly.
fn deadline(server: &Server, key: &str) -> (bool, i64) {
    let mut connection = server.connect();
    if let Ok(at) = redis::cmd("PEXPIRETIME").arg(key).query::<i64>(&mut connection) {
        return (true, at);
    }
    let mut pipeline = redis::pipe();
    pipeline.atomic().cmd("TIME").cmd("PTTL").arg(key);
    let ((seconds, micros), left): ((i64, i64), i64) = pipeline.query(&mut connection).unwrap();
    (false, seconds * 1_000 + micros / 1_000 + left)
}

/// Rule: a token names one lock, and no other that holds the same bytes.
#[test]
fn a_token_is_of_the_lock_that_was_printed() {
    let server = Server::holding(&[("idem:k", LOCK, MINUTES)]);
    let token = |server: &Server| {
        let run =
            server.idemctl(&["force-unlock", "k", "--schema", "express", "--dry-run"]).exits(0);
        let (_, token) = run.stderr.split_once(" --expect ").unwrap();
        token.split_whitespace().next().unwrap().to_owned()
    };
    let unlock = |expect: &str| {
        server.idemctl(&["force-unlock", "k", "--schema", "express", "--yes", "--expect", expect])
    };
    let first = token(&server);
    thread::sleep(Duration::from_millis(10));
    retake(&server, "idem:k", LOCK, MINUTES);
    unlock(&first).exits(8);
    let (hash, _) = first.split_once('@').unwrap();
    unlock(&format!("{hash}@none")).exits(8);
    let second = token(&server);
    assert_ne!(first, second);
    unlock(&second).exits(0);
    server.put("idem:k", LOCK);
    assert!(token(&server).ends_with("@none"));
    unlock(&second).exits(8);
    // The bytes alone would pass any lock with the same value.
    unlock(hash).exits(2).says("the token has no expiry; print it again with --dry-run");
    assert!(server.get("idem:k").is_some());
}
