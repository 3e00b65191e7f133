//! One rule for the end of a record, in every command: its Redis key expires, or its value expires by
//! itself, whichever is first.

use std::fs;

use serde_json::Value;

use crate::support::{Server, backup};

const TOML: &str = r#"
format = 2
name = "own"
keys = { record = "own:{key}" }
ttl = { lock = "1h", result = "1h" }

[[value]]
name = "running"
where = { "/s" = "P" }
optional = ["/until"]
state = "in-progress"
expires_at = { field = "/until", unit = "ms", past = "reclaimable" }

[[value]]
name = "done"
where = { "/s" = "D" }
optional = ["/until", "/body"]
state = "completed"
fields = { body = "/body" }
expires_at = { field = "/until", unit = "ms", past = "reclaimable" }

[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { value = "done", means = "replay" },
  { value = "running", means = "conflict" },
  { nil = true, means = "acquired", when = [{ record = "absent" }, { record = "reclaimable" }] },
]
"#;

/// Locks and results that end by a TTL, by themselves, by both, or never.
fn records() -> Server {
    let server = Server::start();
    server.describe("own", &[("schema.toml", TOML)]);
    let now = backup::now_ms(&server);
    for (state, letter) in [("lock", "P"), ("done", "D")] {
        let plain = format!(r#"{{"s":"{letter}"}}"#);
        let until =
            |left: i64| format!(r#"{{"s":"{letter}","until":{}}}"#, now.cast_signed() + left);
        server.put(&format!("own:{state}-never"), plain.clone());
        server.put(&format!("own:{state}-own"), until(1_800_000));
        server.put(&format!("own:{state}-over"), until(-60_000));
        server.set(&format!("own:{state}-ttl"), plain, 3_000_000);
        server.set(&format!("own:{state}-first-own"), until(1_800_000), 3_000_000);
        server.set(&format!("own:{state}-first-ttl"), until(7_200_000), 3_000_000);
    }
    server
}

fn listed(server: &Server, more: &[&str]) -> Vec<String> {
    let words = [&["list", "--schema", "own", "-o", "json"], more].concat();
    let json = server.idemctl(&words).json();
    let mut keys: Vec<String> = Vec::new();
    for record in json["records"].as_array().unwrap() {
        keys.push(record["key"].as_str().unwrap().to_owned());
    }
    keys.sort();
    keys
}

fn inspected(server: &Server, key: &str) -> Value {
    let ran = server.idemctl(&["inspect", key, "--schema", "own", "-o", "json"]).exits(0);
    ran.json()["records"][0].clone()
}

/// About this many milliseconds.
fn is_about(left: &Value, expected: u64) -> bool {
    left.as_u64().is_some_and(|left| left <= expected && left + 60_000 > expected)
}

#[test]
fn list_stats_and_inspect_agree_on_the_end() {
    let server = records();
    for state in ["lock", "done"] {
        for (key, left) in [
            ("never", None),
            ("own", Some(1_800_000)),
            ("over", Some(0)),
            ("ttl", Some(3_000_000)),
            ("first-own", Some(1_800_000)),
            ("first-ttl", Some(3_000_000)),
        ] {
            let key = format!("{state}-{key}");
            let record = inspected(&server, &key);
            assert_eq!(record["no_expiry"], left.is_none(), "{record}");
            assert_eq!(record["expires_at"].is_null(), left.is_none(), "{record}");
            let columns = ["--match", &key, "--columns", "key,ttl,expires-at", "-o", "csv"];
            let row = server.idemctl(&[&["list", "--schema", "own"], &columns[..]].concat());
            let text = String::from_utf8(row.exits(0).stdout.clone()).unwrap();
            let cells: Vec<&str> = text.lines().nth(1).unwrap().split(',').collect();
            let shown = server.idemctl(&["list", "--schema", "own", "--match", &key]).exits(0);
            match left {
                None => {
                    assert_eq!(cells[1..], ["", ""], "{text}");
                    shown.shows("never");
                    assert!(record["ends_in_ms"].is_null());
                }
                Some(left) => {
                    let ttl: Value = cells[1].parse::<u64>().unwrap().into();
                    assert!(is_about(&ttl, left), "{text}");
                    assert_ne!(cells[2], "", "{text}");
                    assert_eq!(
                        record["ends_in_ms"].is_null(),
                        key == format!("{state}-ttl"),
                        "{record}"
                    );
                    let told = String::from_utf8(shown.stdout.clone()).unwrap();
                    assert!(!told.contains("never"), "{told}");
                }
            }
            // What `inspect` predicts ends then, too.
            if let Some(left) = left.filter(|left| *left > 0) {
                assert!(is_about(&record["next_request"]["until_ms"], left), "{record}");
            }
        }
    }
    let stats = server.idemctl(&["stats", "--schema", "own", "-o", "json"]).exits(0).json();
    let rows = stats["rows"].as_array().unwrap();
    let no_expiry: u64 = rows.iter().map(|row| row["no_expiry"].as_u64().unwrap()).sum();
    assert_eq!(no_expiry, 2, "{stats}");
    server.idemctl(&["stats", "--schema", "own"]).exits(0).shows("no expiry");
}

#[test]
fn selectors_go_by_the_end() {
    let server = records();
    let ends = |state: &str, keys: &[&str]| -> Vec<String> {
        keys.iter().map(|key| format!("{state}-{key}")).collect()
    };
    assert_eq!(listed(&server, &["--no-expiry"]), ["done-never", "lock-never"]);
    for (state, name) in [("in-progress", "lock"), ("completed", "done")] {
        let of = ["--state", state];
        let below = listed(&server, &[&of[..], &["--ttl-below", "40m"]].concat());
        assert_eq!(below, ends(name, &["first-own", "over", "own"]));
        let above = listed(&server, &[&of[..], &["--ttl-above", "40m"]].concat());
        assert_eq!(above, ends(name, &["first-ttl", "never", "ttl"]));
    }
    let sorted = ["list", "--schema", "own", "--sort", "ttl", "-o", "json"];
    let sorted = server.idemctl(&sorted).exits(0).json();
    let last = sorted["records"].as_array().unwrap().last().unwrap()["key"].as_str().unwrap();
    assert!(last.ends_with("-never"), "{sorted}");
}

/// Rule: a record that ends by itself is no orphan and no finding; one that never ends is.
#[test]
fn findings_and_sweep_go_by_the_end() {
    let server = records();
    assert_eq!(listed(&server, &["--finding", "no-expiry"]), ["lock-never"]);
    // Its memory is never freed, although the result ends.
    let kept = ["done-never", "done-over", "done-own"];
    assert_eq!(listed(&server, &["--finding", "result-no-expiry"]), kept);
    let check = server.idemctl(&["check", "--schema", "own"]).exits(2);
    check.shows("1 stuck lock").shows("no_expiry=1;");
    let swept = ["sweep", "--orphaned", "--schema", "own", "--grace", "0s", "--yes"];
    server.idemctl(&swept).exits(0);
    let left = listed(&server, &["--state", "in-progress"]);
    assert_eq!(left, ["lock-first-own", "lock-first-ttl", "lock-over", "lock-own", "lock-ttl"]);
    server.idemctl(&["check", "--schema", "own"]).exits(0);
}

/// Rule: an expiry that is not a time is not `never`. Such a record is selected by no end, but named.
#[test]
fn an_expiry_that_is_no_time_is_unknown() {
    let server = Server::start();
    server.describe("own", &[("schema.toml", TOML)]);
    let later = backup::now_ms(&server) + 1_800_000;
    server.put("own:fraction", format!(r#"{{"s":"P","until":{later}.5}}"#));
    for (key, until) in [("soon", "\"soon\""), ("before", "-5"), ("odd", "\"NaN\"")] {
        server.put(&format!("own:{key}"), format!(r#"{{"s":"P","until":{until}}}"#));
        let record = inspected(&server, key);
        assert_eq!(
            (&record["no_expiry"], record["findings"].as_array().unwrap().len()),
            (&false.into(), 0),
            "{record}"
        );
        assert_eq!(record["next_request"]["answer"], "unknown", "{record}");
        let page = server.idemctl(&["inspect", key, "--schema", "own"]).exits(0);
        page.shows("the value is unclear (`/until` is not a time)")
            .shows("never expires (the Redis key)");
    }
    assert!(is_about(&inspected(&server, "fraction")["ends_in_ms"], 1_800_000));
    for select in [&["--no-expiry"][..], &["--ttl-below", "1h", "--state", "completed"]] {
        let list = [&["list", "--schema", "own"], select].concat();
        let ran = server.idemctl(&list);
        if select.len() == 1 {
            ran.says("Skipped 3 records (own 3) of unknown expiry");
        }
    }
    server.idemctl(&["check", "--schema", "own"]).shows("orphaned=0;");
    let swept = ["sweep", "--orphaned", "--schema", "own", "--grace", "0s", "--yes"];
    server.idemctl(&swept).exits(3).says("of unknown expiry");
    for key in ["soon", "before", "odd", "fraction"] {
        assert!(server.get(&format!("own:{key}")).is_some(), "{key}");
    }
}

/// Rule: a snapshot is selected by the end that the records had when it was taken.
#[test]
fn a_snapshot_keeps_the_end() {
    let server = records();
    let file = server.folder().join("before.jsonl");
    let list = server.idemctl(&["list", "--schema", "own", "-o", "jsonl"]).exits(0);
    fs::write(&file, &list.stdout).unwrap();
    let file = file.to_str().unwrap();
    for select in [&["--no-expiry"][..], &["--ttl-above", "40m"], &["--ttl-below", "40m"]] {
        let diff = [&["diff", file, "--schema", "own"], select].concat();
        server.idemctl(&diff).exits(0);
    }
}

/// Rule: a lock beside a result may have a live worker until it ends by itself.
#[test]
fn a_leftover_lock_that_ends_by_itself_is_left() {
    let server = Server::start();
    let two = TOML
        .replace(r#"record = "own:{key}""#, r#"lock = "own:l:{key}", result = "own:{key}""#)
        .replace("name = \"running\"", "name = \"running\"\nat = \"lock\"")
        .replace("name = \"done\"", "name = \"done\"\nat = \"result\"");
    let two = two.split("[[begin.call]]").next().unwrap();
    server.describe("own", &[("schema.toml", two)]);
    let until = backup::now_ms(&server) + 1_800_000;
    server.put("own:l:a", format!(r#"{{"s":"P","until":{until}}}"#));
    server.set("own:a", r#"{"s":"D"}"#, 3_000_000);
    server.put("own:l:b", r#"{"s":"P"}"#);
    server.set("own:b", r#"{"s":"D"}"#, 3_000_000);
    let record = inspected(&server, "a");
    let found = record["findings"].as_array().unwrap();
    let codes: Vec<_> = found.iter().map(|found| found["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["leftover-lock"], "{record}");
    let swept = ["sweep", "--orphaned", "--include", "leftover-lock", "--schema", "own"];
    server.idemctl(&[&swept[..], &["--grace", "0s", "--yes"]].concat()).exits(0);
    assert!(server.get("own:l:a").is_some());
    assert_eq!(server.get("own:l:b"), None);
}
