//! Fields that lie far into a value: commands read until they find them, and say which they did not
//! find.

use serde_json::json;

use crate::support::{FOREVER, Server};

const DAY: u64 = 86_400_000;

/// A completed record of node-idempotency, whose status follows this much of a fingerprint.
fn far_status(fingerprint: usize, status: u16) -> String {
    let fingerprint = "a".repeat(fingerprint);
    format!(
        r#"{{"status":"COMPLETE","fingerPrint":"{fingerprint}","response":{{"statusCode":{status},"body":{{"a":1}},"additional":{{"headers":{{}}}}}}}}"#
    )
}

/// A request of express-idempotency with a body of this many bytes: with a response behind it, or
/// still in progress.
fn express(body: usize, is_completed: bool) -> String {
    let body = "b".repeat(body);
    let request = format!(
        r#""request":{{"headers":{{}},"method":"POST","query":{{}},"url":"/x","body":"{body}"}}"#
    );
    if is_completed {
        format!(r#"{{{request},"response":{{"statusCode":201,"headers":{{}},"body":"ok"}}}}"#)
    } else {
        format!("{{{request}}}")
    }
}

/// The idempotency keys that `list` shows with these options, and what it says.
fn listed(server: &Server, options: &[&str]) -> (Vec<String>, String) {
    let run = server.idemctl(&[&["list", "-o", "jsonl"], options].concat());
    assert_eq!(run.code, if run.stderr.contains("Skipped ") { 3 } else { 0 }, "{}", run.all());
    let mut keys = Vec::new();
    for line in run.json_lines() {
        keys.push(line["key"].as_str().unwrap().to_owned());
    }
    keys.sort();
    (keys, run.stderr)
}

#[test]
fn a_status_selects_wherever_it_is_in_the_value() {
    // Before, within and behind each step of reading.
    for distance in [0, 40, 64, 500, 4_000, 5_000, 70_000, 900_000] {
        let server = Server::holding(&[
            ("node-idempotency:POST:/pay:bad", far_status(distance, 503), DAY),
            ("node-idempotency:POST:/pay:good", far_status(distance, 201), DAY),
        ]);
        let options = ["--schema", "node-idempotency", "--status", "5xx"];
        let (keys, _) = listed(&server, &options);
        assert_eq!(keys, ["POST:/pay:bad"], "{distance}");
        let stats = server.idemctl(&[&["stats", "-o", "json"], &options[..]].concat()).exits(0);
        assert_eq!(stats.json()["rows"][0]["records"], 1, "{distance}");
        let purge = server.idemctl(&[&["purge", "--yes", "-o", "json"], &options[..]].concat());
        assert_eq!(purge.exits(0).json()["done"], 1, "{distance}");
        let (left, _) = listed(&server, &options[..2]);
        assert_eq!(left, ["POST:/pay:good"], "{distance}");
    }
}

#[test]
fn a_fingerprint_is_whole_or_unknown_and_never_a_part_of_it() {
    let whole = "a".repeat(70_000);
    let server = Server::holding(&[
        ("node-idempotency:POST:/pay:near", far_status(70_000, 201), DAY),
        ("node-idempotency:POST:/pay:far", far_status(2 << 20, 201), DAY),
    ]);
    let options = ["list", "-o", "jsonl", "--schema", "node-idempotency"];
    for line in server.idemctl(&options).exits(0).json_lines() {
        if line["key"] == "POST:/pay:near" {
            assert_eq!(line["fingerprint"].as_str().unwrap().len(), whole.len());
            assert_eq!(line["response"]["status"], 201);
        } else {
            assert!(line["fingerprint"].is_null() && line["response"]["status"].is_null());
        }
    }
}

#[test]
fn what_is_too_far_is_unknown_and_counted() {
    let server = Server::holding(&[
        ("node-idempotency:POST:/pay:far", far_status(2 << 20, 503), DAY),
        ("node-idempotency:POST:/pay:near", far_status(64, 201), DAY),
    ]);
    let options = ["--schema", "node-idempotency", "--status", "5xx"];
    let unknown = "Skipped 1 record (node-idempotency 1) of unknown status, e.g. node-idempotency/POST:/pay:far.";
    let (keys, said) = listed(&server, &options);
    assert!(keys.is_empty() && said.contains(unknown), "{said}");
    assert!(!said.contains("no such records"), "{said}");
    let list = server.idemctl(&[&["list", "-o", "json"], &options[..]].concat()).exits(3);
    assert_eq!(list.json()["unproven"]["status"], 1);
    for dry_run in ["--dry-run", "--yes"] {
        let purge = server.idemctl(&[&["purge", dry_run], &options[..]].concat()).exits(3);
        purge.says(unknown);
    }
    assert!(server.get("node-idempotency:POST:/pay:far").is_some());
}

#[test]
fn a_result_whose_format_is_told_late_is_the_schemas_own() {
    let key = "b".repeat(32);
    let data = "x".repeat(70_000);
    let value =
        format!(r#"{{"data": "\"{data}\"", "status": "COMPLETED", "expiration": 4000000000}}"#);
    let server = Server::holding(&[(&format!("fn#{key}"), value, 3_600_000)]);
    let list = server.idemctl(&["list", "--schema", "powertools-python"]).exits(0);
    assert!(list.text().contains("completed"), "{}", list.text());
    let check = server.idemctl(&["check", "--schema", "powertools-python", "-o", "json"]).exits(0);
    assert_eq!(check.json()["foreign"], 0);
}

#[test]
fn a_stuck_lock_is_swept_however_long_its_request_is() {
    for body in [10, 5_000, 80_000, 1_000_000] {
        let server = Server::holding(&[
            ("order-1", express(body, false), FOREVER),
            ("order-2", express(body, true), FOREVER),
        ]);
        let options = ["--schema", "express-idempotency", "--match", "order-*"];
        let words = [&["sweep", "--orphaned", "--grace", "0s", "--yes"], &options[..]].concat();
        server.idemctl(&words).exits(0).says("Swept: 1 of 1 lock done");
        assert!(server.get("order-1").is_none() && server.get("order-2").is_some(), "{body}");
    }
}

#[test]
fn a_value_without_expiry_that_is_too_long_to_tell_is_named_and_never_swept() {
    let server = Server::holding(&[("order-1", express(2 << 20, false), FOREVER)]);
    let options = ["--schema", "express-idempotency", "--match", "order-*"];
    let words = [&["sweep", "--orphaned", "--yes", "--grace", "0s"], &options[..]].concat();
    server.idemctl(&words).exits(3).says("1 record (express-idempotency 1) of unknown format");
    assert!(server.get("order-1").is_some());
    let check = server.idemctl(&[&["check"], &options[..]].concat()).exits(1);
    assert!(check.text().contains("WARNING"), "{}", check.text());
}

/// A service whose results have all fields of its locks, and two more.
const ORDERS: &str = r#"format = 2
name = "orders"
keys = { record = "order-{key}" }
ttl = { lock = "24h", result = "24h" }

[[value]]
name = "done"
required = ["/request/url", "/response/code", "/response/text"]
state = "completed"
fields = { status = "/response/code", body = "/response/text" }

[[value]]
name = "running"
required = ["/request/url"]
state = "in-progress"
"#;

/// Rule: the beginning of a value has no format while its rest can still show another one.
#[test]
fn formats_that_only_late_fields_distinguish_are_not_confused() {
    for length in [10, 100, 5_000] {
        let url = "u".repeat(length);
        let lock = format!(r#"{{"request":{{"url":"{url}"}}}}"#);
        let result =
            format!(r#"{{"request":{{"url":"{url}"}},"response":{{"code":201,"text":"ok"}}}}"#);
        let server = Server::holding(&[("order-a", lock, FOREVER), ("order-b", result, DAY)]);
        server.describe("orders", &[("schema.toml", ORDERS)]);
        let of = |words: &[&str]| server.idemctl(&[words, &["--schema", "orders"]].concat());
        for (state, key) in [("in-progress", "a"), ("completed", "b")] {
            let (keys, _) = listed(&server, &["--schema", "orders", "--state", state]);
            assert_eq!(keys, [key], "{state} {length}");
        }
        let stats = of(&["stats", "-o", "json"]).exits(0).json();
        let rows = stats["rows"].as_array().unwrap();
        let states: Vec<_> = rows.iter().map(|row| (&row["state"], &row["records"])).collect();
        assert_eq!(states, [(&json!("completed"), &json!(1)), (&json!("in-progress"), &json!(1))]);
        of(&["check"]).exits(2).shows("CRITICAL - 1 stuck lock");
        let purge = of(&["purge", "--state", "completed", "--yes"]).exits(0);
        purge.says("1 of 1 record purged");
        of(&["sweep", "--orphaned", "--grace", "0s", "--yes"])
            .exits(0)
            .says("Swept: 1 of 1 lock done");
    }
}

/// A service whose values have these fields and no others.
const CLOSED: &str = r#"format = 2
name = "closed"
keys = { record = "closed:{key}" }
ttl = { lock = "30s", result = "24h" }

[[value]]
name = "running"
where = { "/status" = "RUNNING" }
required = ["/status", "/payload"]
state = "in-progress"

[[value]]
name = "done"
where = { "/status" = "DONE" }
required = ["/status", "/payload", "/code"]
state = "completed"

[begin]
[[begin.call]]
command = ["SET", "{record}", "x", "NX", "EX", "{lock_ttl}"]
replies = [
  { word = "OK", means = "acquired", when = { record = "absent" } },
  { nil = true, means = "conflict", when = { record = "present" } },
]
"#;

/// Rule: a change that leaves records whose values only begin as the schema's says so and exits
/// with 3, and no preview promises to change them. Revert: without `read_rest`, or without its
/// count in the exit status.
#[test]
fn values_that_only_begin_as_the_schemas_are_left_and_never_promised() {
    for length in [200, 20_000] {
        let payload = "p".repeat(length);
        let lock = format!(r#"{{"status":"RUNNING","payload":"{payload}","x":1}}"#);
        let result = format!(r#"{{"status":"DONE","payload":"{payload}","code":201,"x":1}}"#);
        let server =
            Server::holding(&[("closed:lock", lock, FOREVER), ("closed:result", result, DAY)]);
        server.describe("closed", &[("schema.toml", CLOSED)]);
        let next = "The next request with each";
        for confirm in ["--dry-run", "--yes"] {
            let sweep = ["sweep", "--schema", "closed", "--orphaned", "--grace", "0s", confirm];
            let sweep = server.idemctl(&sweep).exits(0);
            sweep.says("no stuck locks among 2 keys");
            assert!(!sweep.stderr.contains(next), "{confirm}: {}", sweep.stderr);
            let words = ["purge", "--schema", "closed", confirm];
            let purge = server.idemctl(&words).exits(3);
            assert!(!purge.stderr.contains(next), "{confirm}: {}", purge.stderr);
            let json = server.idemctl(&[&words[..], &["-o", "json"]].concat()).exits(3).json();
            assert_eq!((&json["done"], &json["left_foreign"]), (&json!(0), &json!(1)));
        }
        // Beside a record of the schema, only that one is counted and removed.
        server.set("closed:good", r#"{"status":"DONE","payload":"p","code":201}"#, DAY);
        let words = ["purge", "--schema", "closed", "--dry-run", "-o", "json"];
        assert_eq!(server.idemctl(&words).exits(3).json()["total"], 1);
        let run = server.idemctl(&["purge", "--schema", "closed", "--yes"]).exits(3);
        run.says("1 of 2 records purged");
        run.says("The next request with the key executes the operation");
        assert_eq!(server.keys(), ["closed:lock", "closed:result"]);
    }
}

/// Rule: a preview of more records than are kept says which values were read only in part. Revert:
/// without `unjudged`.
#[test]
fn a_preview_says_how_many_values_it_read_only_in_part() {
    let payload = "p".repeat(200);
    let value = format!(r#"{{"status":"DONE","payload":"{payload}","code":201}}"#);
    let values = (0..11_500).map(|number| (format!("closed:{number}"), value.clone()));
    let server = Server::filled(values, DAY);
    server.describe("closed", &[("schema.toml", CLOSED)]);
    let words = ["purge", "--schema", "closed", "--dry-run"];
    server.idemctl(&words).exits(0).says("Only the beginning was read of ");
}

/// Rule: a scan says nothing of a value that is too long to tell its format, neither that it cannot
/// be decoded nor what the next request gets. Revert: with `has_fixed_prefix` in
/// `Coverage::keeps`.
#[test]
fn a_long_value_whose_beginning_does_not_tell_its_format_is_not_called_unreadable() {
    let result = "x".repeat(1_500_000);
    let value = format!(
        r#"{{"operation":"op","idempotency_key":"k","result":"{result}","created_at":"2026-11-27T20:00:00Z","expires_at":"2030-01-01T00:00:00Z","status":"completed","fingerprint":"f"}}"#
    );
    let server = Server::holding(&[("idempotency:op:k", value, 3_000_000)]);
    let schema = ["--schema", "idempotency-kit"];
    let run = |words: &[&str]| server.idemctl(&[words, &schema].concat());
    let unknown = "1 record (idempotency-kit 1) of unknown format";
    for words in [&["list"][..], &["list", "-o", "json"], &["stats"]] {
        let run = run(words).exits(3);
        run.says(unknown);
        assert!(!run.text().contains("unreadable"), "{}", run.text());
    }
    run(&["inspect", "op:k"]).shows("completed").shows("replay");
    // The key expires, so that it is neither a lock that never expires nor known to be unreadable.
    let check = run(&["check", "--include", "unreadable=CRITICAL"]).exits(3);
    check.says(unknown);
    assert!(!check.text().contains("without expiry"), "{}", check.text());
    // Without an expiry, it may be a lock that never ends.
    server.send::<()>(&[b"PERSIST", b"idempotency:op:k"]);
    run(&["list"]).exits(3).says(unknown);
    run(&["check"]).exits(1).shows("WARNING");
}

/// Rule: a lock that never expires is reported, so it is read to its end: it may be a damaged one.
/// Revert: without `is_endless_lock_in_part`, `list` calls it a lock, and `check` and `sweep` do not.
#[test]
fn a_lock_without_expiry_that_is_cut_off_is_unreadable_everywhere() {
    let lock = format!(r#"{{"status":"IN_PROGRESS","fingerPrint":"{}"#, "f".repeat(80));
    let server = Server::holding(&[("node-idempotency:POST:/pay:k", lock, FOREVER)]);
    let run = |words: &[&str]| server.idemctl(&[words, &["--schema", "node-idempotency"]].concat());
    let list = run(&["list", "-o", "json"]).exits(0).json();
    assert_eq!(list["records"][0]["state"], "unreadable", "{list}");
    run(&["list"]).exits(0).shows("unreadable");
    run(&["list", "--finding", "no-expiry"]).exits(0).says("no such records");
    run(&["sweep", "--orphaned", "--yes"]).exits(0).says("no stuck locks");
}

/// A service that keeps its records in hashes, and what it knows of each as JSON in the field
/// `data`.
const KEPT: &str = r#"format = 2
name = "kept"
keys = { record = "kept:{key}" }
ttl = { lock = "1m", result = "1d" }

[[value]]
name = "locked"
type = "hash"
decode_at = { "/data" = ["json"] }
LOCKED
required = ["/at", "/data", "/data/owner"]
state = "in-progress"

[[value]]
name = "done"
type = "hash"
decode_at = { "/data" = ["json"] }
DONE
required = ["/at", "/data", "/data/code", "/data/body"]
state = "completed"
fields = { status = "/data/code", body = "/data/body" }
"#;

/// Rule: a record whose field is too long to tell its format is unknown, and not another program's.
/// Revert: without `is_cut` in `Reading::is_undecided`, or the first lines of `deviation`, `check`
/// counts it as such, and `purge` says nothing of it.
#[test]
fn a_hash_with_a_long_field_is_not_taken_for_another_programs() {
    let body = "x".repeat(1_300_000);
    // Either the long field itself tells the format, or another field does.
    let by_data = [r#"has = ["/data/owner"]"#, r#"has = ["/data/code"]"#];
    let by_time = [r#"where = { "/at" = "1" }"#, r#"where = { "/at" = "2" }"#];
    for ([locked, done], listed) in [(by_data, 0), (by_time, 1)] {
        let schema = KEPT.replace("LOCKED", locked).replace("DONE", done);
        let server = Server::start();
        server.describe("kept", &[("schema.toml", &schema)]);
        let data = format!(r#"{{"body":"{body}","code":201}}"#);
        server.send::<()>(&[b"HSET", b"kept:big", b"at", b"2", b"data", data.as_bytes()]);
        server.send::<()>(&[b"PEXPIRE", b"kept:big", b"80000000"]);
        let run = |words: &[&str]| server.idemctl(&[words, &["--schema", "kept"]].concat());
        let check = run(&["check"]).exits(0);
        assert!(check.text().contains("foreign=0"), "{}", check.all());
        let list = run(&["list", "-o", "json"]);
        assert_eq!(list.code, if listed == 0 { 3 } else { 0 }, "{}", list.all());
        assert_eq!(list.json()["records"].as_array().unwrap().len(), listed);
        let purge = run(&["purge", "--status", "201", "--yes"]).exits(3);
        purge.says("1 record (kept 1) of unknown ");
        run(&["inspect", "big", "--full"]).exits(0).shows("completed");
    }
}

/// Rule: a change names as many records that it leaves as its preview. Revert: without
/// `keeps_deviating_behind_head`, those that are read whole from the second page on are missing.
#[test]
fn a_change_counts_the_records_that_it_leaves_as_its_preview_did() {
    let fingerprint = "f".repeat(64);
    let value = |response: &str| {
        format!(r#"{{"status":"COMPLETE","fingerPrint":"{fingerprint}","response":{response}}}"#)
    };
    let good =
        (0..1_500).map(|at| (format!("node-idempotency:POST:/pay:g{at}"), value(r#"{"body":1}"#)));
    let bad = (0..60).map(|at| (format!("node-idempotency:POST:/pay:n{at}"), value("null")));
    let server = Server::filled(good.chain(bad), DAY);
    let words = ["purge", "--state", "completed", "--schema", "node-idempotency", "-o", "json"];
    let preview = server.idemctl(&[&words[..], &["--dry-run"]].concat()).exits(3);
    preview.says("matches no format of the schema: 60 records");
    let change = server.idemctl(&[&words[..], &["--yes"]].concat()).exits(3).json();
    assert_eq!((&change["done"], &change["left_foreign"]), (&json!(1_500), &json!(60)), "{change}");
}
