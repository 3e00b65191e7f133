//! What is known, stated or estimated of a record, and what a change may rely on, from the outside.

use crate::support::{FOREVER, LOCK, Server};
use serde_json::json;

const RESULT: &str = r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":"ok"}"#;
const NOW: [&str; 3] = ["--yes", "--grace", "0"];

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

fn holding(count: usize, value: &str, ttl_ms: u64) -> Server {
    Server::filled((0..count).map(|index| (format!("idem:k{index}"), value)), ttl_ms)
}

/// Rule: a lock that ends by itself is no orphan, whatever this deployment's lock TTL is.
#[test]
fn fresh_locks_of_a_deployment_with_a_longer_ttl_stay() {
    let server = holding(20, LOCK, 10 * MINUTE);
    let cron = ["sweep", "--orphaned", "--yes", "--reason", "cron", "--grace", "0"];
    let run = server.idemctl(&cron).exits(0);
    assert_eq!(server.size(), 20);
    // A lock without expiry needs no lock TTL, so that the sweep does not speak of one. `check` does.
    assert!(!run.stderr.contains("lock TTL"), "{}", run.all());
    let check = server.idemctl(&["check"]).exits(0);
    check.shows("\nlocks of express may outlast the default lock TTL (set lock_ttl)\n");
    assert_eq!(check.stderr, "", "the line says it already");
    // What is stated may select: nothing is in excess of this deployment's TTL.
    let stated = ["sweep", "--include", "excess-ttl", "--schema", "express", "--lock-ttl"];
    server.idemctl(&[&stated[..], &["10m"], &NOW].concat()).exits(0);
    assert_eq!(server.size(), 20);
    server.idemctl(&[&stated[..], &["5m"], &NOW].concat()).exits(0);
    assert_eq!(server.size(), 0);
}

/// Rule: a schema's default result TTL tells no age that a purge may rely on.
#[test]
fn fresh_results_of_a_deployment_with_a_shorter_ttl_stay() {
    let server = holding(5, RESULT, HOUR);
    for more in [&[][..], &["--schema", "express"]] {
        let words = [&["purge", "--older-than", "12h", "--yes"], more].concat();
        server.idemctl(&words).exits(3).says("Skipped 5 records (express 5)").says("--result-ttl");
        let json = server.idemctl(&[&words[..], &["-o", "json"]].concat()).exits(3).json();
        assert_eq!(json["unproven"]["result_ttl"], 5);
        assert_eq!(
            (&json["unproven"]["lock_ttl"], &json["unproven"]["age"]),
            (&0.into(), &0.into())
        );
        assert_eq!((&json["total"], server.size()), (&0.into(), 5));
    }
    let stated = ["purge", "--yes", "--schema", "express", "--result-ttl", "1h", "--older-than"];
    server.idemctl(&[&stated[..], &["12h"]].concat()).exits(0);
    assert_eq!(server.size(), 5);
    server.fill((0..5).map(|index| (format!("idem:k{index}"), RESULT)), HOUR / 2);
    server.idemctl(&[&stated[..], &["20m"]].concat()).exits(0);
    assert_eq!(server.size(), 0);
}

/// Rule: a schema's default lock TTL tells no age that a sweep may rely on.
#[test]
fn a_lock_just_taken_under_a_shorter_ttl_is_not_old() {
    let server = holding(1, LOCK, 10 * SECOND);
    let old = ["sweep", "--older-than", "15s", "--owner-alive", "false"];
    let json = server.idemctl(&[&old[..], &NOW, &["-o", "json"]].concat()).exits(3).json();
    assert_eq!(
        (&json["total"], &json["unproven"]["lock_ttl"], server.size()),
        (&0.into(), &1.into(), 1),
        "{json}"
    );
    let json = server.idemctl(&["list", "-o", "json"]).exits(0).json();
    assert_eq!(json["records"][0]["age_evidence"], "estimated");
}

/// Rule: a worker that was told that there is no result may take the lock after the result came.
#[test]
fn a_lock_beside_a_result_stays_where_a_live_worker_may_hold_it() {
    let server = Server::start();
    for (key, ttl) in [("short", 20 * SECOND), ("long", HOUR)] {
        server.set(&format!("idem:lock:{key}"), "1", ttl);
        server.set(&format!("idem:done:{key}"), "1", 20 * HOUR);
    }
    let words =
        [&["sweep", "--orphaned", "--include", "leftover-lock", "-o", "json"][..], &NOW].concat();
    let json = server.idemctl(&words).exits(0).json();
    assert_eq!(
        (&json["done"], &json["left_to_expire"], server.size()),
        (&0.into(), &2.into(), 4),
        "{json}"
    );
    server.put("idem:lock:short", "1");
    let json = server.idemctl(&words).exits(0).json();
    assert_eq!(
        (&json["done"], &json["found"]["no-expiry"]["count"]),
        (&1.into(), &1.into()),
        "{json}"
    );
    assert_eq!(server.size(), 3);
}

/// Rule: only a lock TTL that is stated tells that a lock stays longer than its worker meant.
#[test]
fn an_old_lock_that_ends_by_itself_stays_under_a_longer_ttl_than_the_default() {
    let lock = r#"{"state":"in-progress","owner":"w","fingerprint":"","created_at":1000}"#;
    let server = Server::holding(&[("idemkey:k", lock, 9 * MINUTE)]);
    let words = [&["sweep", "--older-than", "10s", "-o", "json"][..], &NOW].concat();
    let json = server.idemctl(&words).exits(0).json();
    assert_eq!(
        (&json["total"], &json["left_to_expire"], server.size()),
        (&1.into(), &1.into(), 1),
        "{json}"
    );
    let stated = ["--schema", "reference", "--lock-ttl", "30s"];
    server.idemctl(&[&words[..], &stated].concat()).exits(0);
    assert_eq!(server.size(), 0);
}

/// Rule: what is stated of one schema is stated of one.
#[test]
fn a_ttl_or_prefix_needs_exactly_one_schema() {
    let server = holding(1, RESULT, HOUR);
    for option in [["--lock-ttl", "5m"], ["--result-ttl", "5m"], ["--prefix", "shop:"]] {
        for schemas in [&[][..], &["--schema", "express,go-chi"]] {
            let run = server.idemctl(&[&["list"], &option[..], schemas].concat()).exits(2);
            run.says(format!("{} needs exactly one --schema", option[0]));
        }
    }
    server.idemctl(&["list", "--schema", "go-chi", "--result-ttl", "express=1h"]).exits(2);
    let run = server.idemctl(&["list", "-o", "json", "--result-ttl", "express=1h"]).exits(0);
    assert_eq!(run.json()["records"][0]["age_evidence"], "stated", "a TTL may name its schema");
    server.states(&[("express", "result_ttl = \"1h\"")]);
    let run = server.idemctl(&["list", "-o", "json"]).exits(0);
    assert_eq!(
        run.json()["records"][0]["age_evidence"],
        "stated",
        "a context states the TTLs of each"
    );
}

#[test]
fn an_estimate_is_marked_wherever_it_is_shown() {
    let server = holding(1, LOCK, HOUR);
    server.set("idem:done", RESULT, HOUR);
    server.set(
        "idemkey:k",
        r#"{"state":"in-progress","owner":"w","fingerprint":"","created_at":1000}"#,
        MINUTE,
    );
    let table = server.idemctl(&["list"]).exits(0).text();
    assert!(table.contains("~23h") && table.contains("~excess-ttl"), "{table}");
    let json = server.idemctl(&["list", "-o", "json"]).exits(0).json();
    let of = |key: &str| {
        let found = json["records"].as_array().unwrap().iter().find(|record| record["key"] == key);
        found.unwrap_or_else(|| panic!("{key}: {json}")).clone()
    };
    assert_eq!(
        (&of("done")["age_evidence"], &of("k")["age_evidence"]),
        (&"estimated".into(), &"known".into())
    );
    assert_eq!(of("k0")["findings"][0]["evidence"], "estimated");
    assert_eq!(of("k0")["age_evidence"], serde_json::Value::Null);
    let contradicted: Vec<_> = json["contradicted_defaults"].as_array().unwrap().iter().collect();
    let of_express = contradicted.iter().find(|found| found["schema"] == "express").unwrap();
    assert_eq!(
        (&of_express["ttl"], &of_express["records"], contradicted.len()),
        (&"lock".into(), &1.into(), 2),
        "{json}"
    );
    let shown = server.idemctl(&["inspect", "done"]).exits(0).text();
    assert!(
        shown.contains("~23h") && shown.contains("estimated: the schema's default result TTL"),
        "{shown}"
    );
    let stated = server
        .idemctl(&["inspect", "done", "--schema", "express", "--result-ttl", "2h"])
        .exits(0)
        .text();
    assert!(
        stated.contains("this deployment's result TTL minus the time left")
            && !stated.contains('~'),
        "{stated}"
    );
}

/// Rule: a filter by age selects the same records in every command, and each counts the same as left out.
#[test]
fn a_filter_by_age_selects_the_same_in_list_stats_sweep_and_purge() {
    let server = Server::start();
    // By the default lock TTL of 30 s the first is old, and the second young. The third has no age.
    server.set("idem:old", LOCK, 10 * SECOND);
    server.set("idem:young", LOCK, 29 * SECOND);
    server.put("idem:stuck", LOCK);
    let proven = r#"{"state":"in-progress","owner":"w","fingerprint":"","created_at":1000}"#;
    server.set("idemkey:proven", proven, MINUTE);
    let purge = ["purge", "--state", "in-progress", "--dry-run"];
    let list = ["list", "--state", "in-progress"];
    let stats = ["stats", "--state", "in-progress"];
    for age in [&["--older-than", "15s"][..], &["--newer-than", "15s"]] {
        let is_old = age[0] == "--older-than";
        let json = |words: &[&str], code| {
            server.idemctl(&[words, age, &["-o", "json"]].concat()).exits(code).json()
        };
        let listed = json(&list, 3);
        let names: Vec<_> = listed["records"].as_array().unwrap().iter().collect();
        assert_eq!(names.len(), usize::from(is_old), "{listed}");
        assert!(names.iter().all(|record| record["key"] == "proven"), "{listed}");
        let left_out = json!({
            "lock_ttl": 2, "result_ttl": 0, "age": 1,
            "owner": 0, "fingerprint": 0, "status": 0, "time": 0, "format": 0, "whole_format": 0,
            "expiry": 0,
        });
        assert_eq!(listed["unproven"], left_out, "{age:?}");
        let purged = json(&purge, 3);
        assert_eq!((&purged["total"], &purged["unproven"]), (&names.len().into(), &left_out));
        assert_eq!(json(&stats, 3)["unproven"], left_out, "{age:?}");
        if is_old {
            let swept = json(&["sweep", "--dry-run"], 3);
            assert_eq!((&swept["total"], &swept["unproven"]), (&1.into(), &left_out));
        }
    }
    // Each command prints the command line with the TTL.
    let old = ["--older-than", "15s"];
    for words in [[&list[..], &old].concat(), [&["sweep", "--dry-run"][..], &old].concat()] {
        let run = server.idemctl(&words);
        run.says(
            "Skipped 2 records (express 2): the age is only estimated, because the lock TTL of this \
            deployment is not configured",
        );
        run.says("if your service sets 30s: ").says("--schema express --lock-ttl 30s");
    }
    let stated = ["--older-than", "15s", "--schema", "express", "--lock-ttl", "30s"];
    server.idemctl(&[&list[..], &stated].concat()).exits(3).shows("old").says("1 record among");
}

/// Rule: "no such records" is said only of what was judged.
#[test]
fn records_of_unknown_age_are_counted() {
    let server = Server::holding(&[("idem:stuck", LOCK, FOREVER)]);
    let words = ["list", "--state", "in-progress", "--older-than", "10m"];
    server.idemctl(&words).exits(3).says("Skipped 1 record (express 1) of unknown age");
    let json = server.idemctl(&[&words[..], &["-o", "json"]].concat()).exits(3).json();
    assert_eq!(json["unproven"]["age"], 1);
    let run = server.idemctl(&[&["sweep", "--older-than", "10m"][..], &NOW].concat()).exits(3);
    run.says("Skipped 1 record (express 1) of unknown age");
}

/// Rule: what a deployment states of its TTLs holds as what a schema says: where there are none, what never ends is as it should be.
#[test]
fn a_deployment_can_state_that_there_are_no_ttls() {
    let server = Server::holding(&[("idem:lock", LOCK, FOREVER), ("idem:result", RESULT, FOREVER)]);
    let findings = |words: &[&str]| {
        let listed = server
            .idemctl(&[&["list", "--schema", "express", "-o", "jsonl"], words].concat())
            .exits(0);
        let codes = listed
            .json_lines()
            .into_iter()
            .flat_map(|line| line["findings"].as_array().unwrap().clone());
        let mut codes: Vec<_> =
            codes.map(|finding| finding["code"].as_str().unwrap().to_owned()).collect();
        codes.sort();
        codes
    };
    assert_eq!(findings(&[]), ["no-expiry", "result-no-expiry"]);
    assert_eq!(findings(&["--lock-ttl", "none"]), ["result-no-expiry"]);
    assert_eq!(findings(&["--result-ttl", "none"]), ["no-expiry"]);
    let sweep = ["sweep", "--schema", "express", "--yes", "--grace", "0"];
    server.idemctl(&[&sweep[..], &["--orphaned", "--lock-ttl", "none"]].concat()).exits(0);
    // No lock is in excess of no TTL, and none can be given.
    for more in [&["--include", "excess-ttl"][..], &["--orphaned", "--action", "expire"]] {
        let run = server.idemctl(&[&sweep[..], more, &["--lock-ttl", "none"]].concat()).exits(2);
        run.says("but none is configured");
    }
    assert_eq!(server.size(), 2);

    server.states(&[("express", "lock_ttl = \"none\"\nresult_ttl = \"none\"")]);
    assert_eq!(findings(&[]), [""; 0]);
    let shown = server.unnamed(&["config", "show"]).exits(0);
    shown.shows("express.lock_ttl    none").shows("express.result_ttl  none");
    let schema =
        server.unnamed(&["schema", "show", "express", "-o", "json"]).exits(0).json()["schemas"][0]
            .clone();
    assert_eq!((&schema["lock_ttl_ms"], &schema["result_ttl_ms"]), (&json!(null), &json!(null)));
    server.idemctl(&["check", "--schema", "express"]).exits(0);
    server.idemctl(&["sweep", "--orphaned", "--yes", "--grace", "0"]).exits(0);
    assert_eq!(server.size(), 2);
}

/// Rule: no step sends a TTL that there is none of; the steps that send none of that kind go on.
#[test]
fn a_step_that_sends_a_ttl_is_refused_where_there_is_none() {
    let server = Server::holding(&[("idem:k", LOCK, FOREVER)]);
    let on = |words: &[&str]| server.idemctl(&[words, &["--schema", "express"]].concat());
    let complete = ["complete", "k", "--status", "200", "--body", "ok", "--yes"];
    for words in [
        &["begin", "new", "--yes", "--lock-ttl", "none"][..],
        &[&complete[..], &["--result-ttl", "none"]].concat(),
    ] {
        on(words).exits(2).says("it sends or writes a").says("but this deployment has");
    }
    assert_eq!(server.get("idem:k").as_deref(), Some(LOCK.as_bytes()));
    on(&["explore", "--lock-ttl", "none"]).exits(2).says("it sends or writes a lock TTL");
    on(&["race", "--lock-ttl", "none", "--rounds", "1"])
        .exits(2)
        .says("it sends or writes a lock TTL");
    on(&[&complete[..], &["--lock-ttl", "none"]].concat()).exits(0);
    let create = [
        "complete",
        "gone",
        "--create",
        "--status",
        "200",
        "--body",
        "ok",
        "--yes",
        "--lock-ttl",
        "none",
    ];
    on(&create).exits(0);
    on(&["inspect", "gone", "--result-ttl", "none"]).exits(0).shows("completed");
    server
        .idemctl(&["begin", "new", "--schema", "express", "--lock-ttl", "nonsense"])
        .exits(2)
        .says("or none for no TTL");
    server
        .idemctl(&["list", "--schema", "express", "--lock-ttl", "0s"])
        .exits(2)
        .says("write none for no TTL");
}
