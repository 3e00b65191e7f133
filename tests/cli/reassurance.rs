//! "No such records", "no stuck locks", "OK" and exit code 0 are said only of what was read.

use crate::support::backup::now_ms;
use crate::support::{LOCK, PENDING, Run, Runs, Server};

const HOUR: u64 = 3_600_000;

/// Four results of which the JSON is cut off at these lengths, so that each retry gets an error.
fn torn() -> Server {
    let server = Server::start();
    for length in [900, 5_000, 9_000, 70_000] {
        let body = "x".repeat(length);
        let value = format!(r#"{{"status":"COMPLETED","statusCode":201,"body":{{"p":"{body}"#);
        server.set(&format!("idem:torn{length}"), &value, HOUR);
    }
    server
}

/// Rule: whether a value can be decoded is judged by its end. Revert: without `ValueField::End`, the check is OK, exit 0.
#[test]
fn a_value_that_is_cut_off_is_found_however_long_it_is() {
    let server = torn();
    server.idemctl(&["check", "--include", "unreadable=CRITICAL"]).exits(2).shows("4 ");
    let listed = server.idemctl(&["list", "--finding", "unreadable", "-o", "jsonl"]).exits(0);
    assert_eq!(listed.json_lines().len(), 4, "{}", listed.all());
    let words = ["purge", "--schema", "express", "--match", "torn*", "--state", "unreadable"];
    server.idemctl(&[&words[..], &["--yes"]].concat()).exits(0).says("4 of 4 records purged");
}

/// Rule: a value that a scan does not read to its end makes the answer unknown, and not OK.
#[test]
fn a_value_that_is_too_long_to_read_makes_the_answer_unknown() {
    let server = Server::start();
    let body = "x".repeat(2 << 20);
    let value = format!(r#"{{"status":"COMPLETED","statusCode":201,"headers":{{}},"body":"{body}"#);
    server.set("idem:long", &value, HOUR);
    server
        .idemctl(&["check", "--include", "unreadable=CRITICAL"])
        .exits(3)
        .shows("UNKNOWN")
        .shows("1 value: only the beginning was read");
    server.idemctl(&["list", "--finding", "unreadable"]).exits(3).says("not everything was read");
}

/// The binary as a user who may read these Redis keys, but for these commands.
fn limited(server: &Server, rules: &str, words: &[&str]) -> Run {
    server.add_user("some", &format!("resetkeys +@all {rules}"));
    server.command().env("REDISCLI_AUTH", "pw").args(["--user", "some"]).args(words).run()
}

/// Rule: who may not read a value is not told that there is none: exit code 4 if nothing could be read, else 3.
#[test]
fn who_may_not_read_is_not_told_that_there_is_nothing() {
    let server = Server::start();
    for key in ["idem:1", "idem:2", "idem:3"] {
        server.put(key, LOCK);
    }
    let blind = "~* -get -getrange -@scripting";
    for (rules, code) in [(blind, 4), ("~idem:1", 3)] {
        // A deadline says of a lock that expires all that a sweep asks.
        server.set("idem:1", LOCK, 20_000);
        for words in [
            &["sweep", "--orphaned", "--yes", "--grace", "0s"][..],
            &["sweep", "--orphaned", "--dry-run"],
            &["list", "--finding", "no-expiry"],
            &["stats", "--finding", "no-expiry"],
            &["purge", "--state", "completed", "--yes"],
        ] {
            let run = limited(&server, rules, &[words, &["--schema", "express"]].concat());
            let code = if words[0] == "sweep" { 3 } else { code };
            assert_eq!(run.code, code, "{words:?} as {rules}: {}", run.all());
            let all = run.all();
            assert!(!all.contains("no orphaned") && !all.contains("no such"), "{words:?}: {all}");
            assert!(all.contains("denied permission"), "{words:?}: {all}");
        }
        limited(&server, rules, &["check", "--schema", "express"]).exits(3).shows("UNKNOWN");
        server.put("idem:1", LOCK);
    }
    assert_eq!(server.size(), 3);
}

/// Rule: a lock that its worker renews is not foretold to end, and no execution after it.
#[test]
fn a_lock_that_can_be_renewed_is_not_foretold_to_end() {
    let server = Server::start();
    server.set("idempotency:plain", PENDING, 20_000);
    let plain = server.idemctl(&["inspect", "plain"]).exits(0);
    plain.shows("then it executes");
    server.idemctl(&["begin", "led", "--schema", "reference", "--yes"]).exits(0);
    let led = server.idemctl(&["inspect", "led", "--schema", "reference"]).exits(0);
    led.shows("unless its worker renews the lock");
    assert!(!led.text().contains("then it executes"), "{}", led.all());
    let json = server.idemctl(&["inspect", "led", "--schema", "reference", "-o", "json"]).json();
    assert_eq!(json["records"][0]["next_request"]["renewable"], true, "{json}");
}

/// What a command answers at each kind of gap: its exit code. No such answer may hold one of [`REASSURANCES`].
const AT_A_GAP: [(&str, &[(&str, i32)]); 5] = [
    (
        "schema",
        &[
            ("check", 3),
            ("list --finding no-expiry", 3),
            ("stats --finding no-expiry", 3),
            ("sweep --orphaned --yes", 3),
            ("purge --state in-progress --match zz --yes", 3),
            ("inspect zz", 3),
            ("inspect --find zz", 3),
            ("force-unlock zz --yes", 3),
            ("extend zz --for 1h --yes", 3),
            ("duplicates --same /id", 3),
            ("diff SNAPSHOT", 3),
        ],
    ),
    (
        "permission",
        &[
            ("check", 3),
            ("list --finding no-expiry", 4),
            ("stats --finding no-expiry", 4),
            ("sweep --orphaned --yes", 3),
            ("purge --status 5xx --yes", 4),
            ("inspect zz", 4),
            ("force-unlock zz --yes", 4),
            ("extend zz --for 1h --yes", 4),
            ("duplicates --same /id", 4),
            ("context test", 4),
            ("diff SNAPSHOT", 4),
        ],
    ),
    (
        "cut value",
        &[
            ("check --include unreadable=CRITICAL", 3),
            ("list --finding unreadable", 3),
            ("stats --finding unreadable", 3),
            ("duplicates --same /id", 3),
        ],
    ),
    (
        "filter",
        &[
            ("list --status 5xx --since 1h", 3),
            ("stats --status 5xx --since 1h", 3),
            ("purge --status 5xx --since 1h --yes", 3),
            ("duplicates --within 15m", 3),
        ],
    ),
    (
        "database",
        &[
            ("check", 3),
            ("list", 3),
            ("stats", 3),
            ("sweep --orphaned --yes", 3),
            ("purge --state completed --yes", 3),
            ("duplicates --same /id", 3),
        ],
    ),
];

const REASSURANCES: [&str; 5] =
    ["no orphaned", "no such records", "no record on", ": no record\n", "IDEMCTL OK"];

/// Makes one kind of gap, on a server where everything that can be read is in order.
fn at_a_gap(gap: &str, server: &Server) {
    let long = |body: &str| format!(r#"{{"status":"COMPLETED","statusCode":500,"body":"{body}"#);
    match gap {
        "schema" => {
            server.set("idempotency:a", PENDING, 60_000);
            server.describe("pay", &[("schema.toml", "format = 2\nname = \"pay\"\nstate = 1\n")]);
        }
        "permission" => {
            server.put("idem:1", LOCK);
            let denied = "-get -getrange -@scripting";
            server.add_user("some", &format!("resetkeys +@all ~* {denied}"));
        }
        "cut value" => server.set("idem:1", long(&"x".repeat(2 << 20)), HOUR),
        "filter" => server.set("idem:1", long("x") + "\"}", HOUR),
        "database" => server.send::<()>(&[b"MOVE", b"idem:1", b"1"]),
        _ => unreachable!("{gap}"),
    }
}

/// Rule: no command says that nothing is there, or that all is well, if a part of what this covers was not read.
/// Reverts: `force-unlock` without `uncovered` says "no record", exit 1; `diff` without `is_complete` of the report exits with 1.
#[test]
fn no_command_reassures_at_a_gap() {
    for (gap, commands) in AT_A_GAP {
        let server = Server::start();
        let snapshot = server.folder().join("snapshot");
        if gap == "database" {
            server.put("idem:1", LOCK);
        }
        let listed = server.idemctl(&["list", "--full", "-o", "json"]).exits(0).stdout;
        std::fs::write(&snapshot, listed).unwrap();
        at_a_gap(gap, &server);
        for (line, code) in commands {
            let mut command = server.command();
            if gap == "permission" {
                command.env("REDISCLI_AUTH", "pw").args(["--user", "some"]);
            }
            for word in line.split(' ') {
                let word = if word == "SNAPSHOT" { snapshot.to_str().unwrap() } else { word };
                command.arg(word);
            }
            let run = command.run();
            let all = run.all();
            assert_eq!(run.code, *code, "{gap}: {line}: {all}");
            let found = REASSURANCES.iter().find(|text| all.contains(*text));
            assert_eq!(found, None, "{gap}: {line}: {all}");
        }
    }
}

/// Rule: a figure, a state that is waited for, and a schema that fits no record are answers, too.
#[test]
fn what_was_not_read_is_neither_absent_nor_counted_as_read() {
    let server = Server::start();
    at_a_gap("schema", &server);
    let wait = ["--until", "absent", "--within", "1s", "--watch"];
    server.idemctl(&[&["inspect", "zz"], &wait[..]].concat()).exits(3);
    let list = server.idemctl(&[&["list", "--finding", "no-expiry"], &wait[..]].concat());
    assert_ne!(list.code, 0, "{}", list.all());
    server.idemctl(&["stats", "--prometheus", "-"]).exits(3).shows("idemctl_up{").shows("} 0\n");
    // Every record that was read is in progress, and those of the broken schema were not.
    let wait = ["list", "--until", "in-progress", "--within", "1s"];
    assert_ne!(server.idemctl(&wait).code, 0);
    let server = Server::holding(&[("idem:1", LOCK, HOUR)]);
    at_a_gap("database", &server);
    let list = server.idemctl(&["list", "--full", "-o", "json"]).exits(3);
    assert_eq!(list.json()["complete"], false, "{}", list.all());
    let server = Server::start();
    server.set("shop.pay#not-an-md5", LOCK, HOUR);
    let check = ["check", "--schema", "powertools-python", "--prefix", "shop."];
    server.idemctl(&check).exits(3).shows("UNKNOWN");
}

/// Rule: a lock whose value says how long it lives has excess by that time.
#[test]
fn a_lock_with_an_end_of_its_own_has_excess_by_that() {
    let server = Server::start();
    let now = now_ms(&server) / 1_000;
    for (number, seconds) in [(1, 60), (2, 360_000)] {
        let value = format!(r#"{{"status":"INPROGRESS","expiration":{}}}"#, now + seconds);
        server.put(&format!("fn#{number:032x}"), &value);
    }
    let words = ["--schema", "powertools-python", "--lock-ttl", "15m", "-o", "json"];
    let found = server.idemctl(&[&["list", "--finding", "excess-ttl"], &words[..]].concat());
    assert_eq!(found.json()["records"].as_array().unwrap().len(), 1, "{}", found.all());
    server.idemctl(&["check", "--schema", "powertools-python", "--lock-ttl", "15m"]).exits(1);
}

/// Rule: a KEY that may be ambiguous is not changed, because another record of it may exist where a
/// schema or a Redis key was not read; its name and its full Redis key are. Revert: without
/// `LookupResult::may_name_another`, the lock of express goes.
#[test]
fn a_key_that_may_name_an_unread_record_is_not_changed() {
    let event = "idem:started:a-9";
    let changes = [
        &["force-unlock", "a-9"][..],
        &["extend", "a-9", "--for", "1h"],
        &["purge", "a-9", "--state", "in-progress"],
        &["release", "a-9", "--owner", "w"],
        &["reconcile", "a-9", "--older-than", "0s", "--ask", "true"],
    ];
    let server = Server::holding(&[("idem:a-9", LOCK, 300_000), (event, "w1", 300_000)]);
    let broken = Server::holding(&[("idem:a-9", LOCK, 300_000)]);
    at_a_gap("schema", &broken);
    for words in changes {
        let words = [words, &["--yes"]].concat();
        let run = limited(&server, "~idem:a-*", &words);
        assert_ne!(run.code, 0, "{words:?}: {}", run.all());
        broken.idemctl(&words).exits(3);
        assert!(server.get(event).is_some());
        for server in [&server, &broken] {
            assert_eq!(server.get("idem:a-9").unwrap(), LOCK.as_bytes(), "{words:?}");
            let left: i64 = server.send(&[b"PTTL", b"idem:a-9"]);
            assert!(left <= 300_000, "{words:?}");
        }
    }
    broken.idemctl(&["force-unlock", "express/a-9", "--yes"]).exits(0);
    limited(&server, "~idem:a-*", &["force-unlock", "idem:a-9", "--yes"]).exits(0);
}

/// Rule: of the schemas that are named, those without any key are told beside those that have keys, because their prefix may be another one.
#[test]
fn a_named_schema_without_a_key_is_told_beside_others_that_have_keys() {
    let server = Server::start();
    server.set("shop:idem:1", LOCK, HOUR);
    server.set("idempotency:1", PENDING, HOUR);
    let named = ["--schema", "express", "--schema", "go-middleware"];
    for words in [&["sweep", "--orphaned", "--dry-run"][..], &["list"], &["stats"], &["check"]] {
        let run = server.idemctl(&[words, &named].concat()).exits(0);
        assert!(run.all().contains("schema express has no key under idem:"), "{}", run.all());
        let unnamed = server.idemctl(words).exits(0);
        assert!(!unnamed.all().contains("has no key"), "{}", unnamed.all());
    }
    // So it is where only one schema is named, and where the context sets its prefix.
    let alone = Server::start();
    alone.set("shop:idem:1", LOCK, HOUR);
    let json = alone.idemctl(&["check", "--schema", "express", "-o", "json"]).exits(0).json();
    assert_eq!(json["without_keys"], serde_json::json!(["express"]));
    alone.set("idempotency:1", PENDING, HOUR);
    alone.states(&[("express", "prefix = \"old:\"")]);
    let check = alone.idemctl(&["check"]).exits(0);
    check.shows("schema express has no key under old:idem:");
    server.set("idem:1", LOCK, HOUR);
    // A list that ends at its limit has not seen all keys.
    let many = Server::filled((0..20_000).map(|number| (format!("idem:{number}"), LOCK)), HOUR);
    many.set("idempotency:1", PENDING, HOUR);
    let limited = many.idemctl(&[&["list", "--limit", "1"][..], &named].concat());
    assert!(!limited.all().contains("has no key"), "{}", limited.all());
    // A filter leaves keys out, and does not make them absent.
    let filtered = server.idemctl(&[&["list", "--match", "none*"][..], &named].concat()).exits(0);
    assert!(!filtered.all().contains("has no key"), "{}", filtered.all());
}

/// Rule: a record whose age is not proven may be overdue, or as old as a filter asks, so that its absence from an answer is no proof.
#[test]
fn a_lock_of_unknown_age_makes_an_answer_about_ages_unknown() {
    let server = Server::start();
    server.put("idem:endless", LOCK);
    server.idemctl(&["check", "--newer-than", "1h"]).exits(3).shows("UNKNOWN");
    for words in [["list"], ["stats"]] {
        let overdue = ["--finding", "overdue", "--overdue", "1m"];
        let run = server.idemctl(&[&words[..], &overdue].concat()).exits(3);
        run.says("not everything was read");
        server.idemctl(&[&words[..], &overdue[..2]].concat()).exits(2).says("--overdue DURATION");
    }
}

/// Rule: where no key is a schema's, nothing is said of the others.
#[test]
fn keys_without_a_name_of_the_schemas_are_told_as_such() {
    let server = Server::start();
    for key in ["session:1", "session:2"] {
        server.set(key, "x", HOUR);
    }
    let named = ["--schema", "express", "--schema", "event-driven"];
    for words in [&["sweep", "--orphaned", "--dry-run"][..], &["list"], &["stats"]] {
        let run = server.idemctl(&[words, &named].concat());
        run.says("none of the 2 Redis keys of");
    }
}
