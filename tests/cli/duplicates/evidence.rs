//! What makes a group, and how its times are known.

use super::{FIRST, found, keys, reference, result, with_body};
use crate::support::{FOREVER, LOCK, Server};

const DAY: u64 = 86_400_000;
const HOUR: u64 = 3_600_000;

const BY_ORDER: [&str; 2] = ["--same", "/order/id"];

fn none() -> Vec<Vec<String>> {
    Vec::new()
}

#[test]
fn a_record_in_two_redis_keys_is_one_and_a_key_is_no_duplicate_of_itself() {
    let order = r#"{"order":{"id":"o-1"}}"#;
    let server = Server::holding(&[
        // The lock and the result of one key.
        ("idem:started:k-1", "w".to_owned(), HOUR),
        ("idem:result:k-1", result(order), 20 * HOUR),
        // The same client key under another schema.
        ("idemkey:k-1", reference("w", "f", FIRST, "o-1"), 20 * HOUR),
    ]);
    let document = found(&server, &BY_ORDER).exits(0).json();
    assert_eq!((keys(&document), &document["records"]), (none(), &2.into()));
    // Another key makes a group, also across schemas.
    server.set("idem:result:k-2", result(order), 20 * HOUR);
    let group = found(&server, &BY_ORDER).exits(1).json()["groups"][0].clone();
    assert_eq!((&group["keys"], &group["completed"]), (&2.into(), &2.into()));
    assert_eq!(group["records"].as_array().unwrap().len(), 3);
}

#[test]
fn a_failure_is_not_a_completed_result_and_a_lock_has_no_response() {
    let server = Server::start();
    for (key, status) in [("a", 201), ("b", 402), ("c", 503)] {
        let value = with_body("w", key, FIRST, status, r#"{"order":{"id":7}}"#);
        server.set(&format!("idemkey:{key}"), value, 20 * HOUR);
    }
    server.set("idem:d", LOCK, HOUR);
    let document = found(&server, &BY_ORDER).exits(1).json();
    let group = &document["groups"][0];
    let counts = ["keys", "completed", "failed", "in_progress"].map(|name| &group[name]);
    assert_eq!(counts, [3, 1, 2, 0].map(serde_json::Value::from).each_ref());
    assert_eq!(document["not_compared"]["response"], 1);
    let run = server.idemctl(&["duplicates", "--same", "/order/id"]).exits(1);
    run.says("In 0 of 1 groups, two or more operations completed.");
    let completed = found(&server, &[&BY_ORDER[..], &["--status", "2xx"]].concat()).exits(0);
    assert_eq!(completed.json()["records"], 1);
}

/// Rule: a stored value that lets the next request execute is no completed result.
#[test]
fn a_failure_that_a_schema_stores_as_a_result_is_not_completed() {
    let server = Server::start();
    for key in ["a", "b"] {
        let value = with_body("w", key, FIRST, 200, r#"{"order":{"id":7}}"#)
            .replace(r#""state":"completed""#, r#""state":"failed""#);
        server.set(&format!("idemkey:{key}"), value, 20 * HOUR);
    }
    let document = found(&server, &BY_ORDER).exits(1).json();
    let group = &document["groups"][0];
    assert_eq!((&group["completed"], &group["unknown"]), (&0.into(), &2.into()));
}

#[test]
fn a_time_says_what_it_is_and_how_it_is_known() {
    let server = Server::start();
    for (key, left) in [("a", DAY - 60_000), ("b", DAY - 20_000)] {
        server.set(&format!("idem:result:{key}"), result(r#"{"order":{"id":7}}"#), left);
    }
    let group = found(&server, &BY_ORDER).exits(1).json()["groups"][0].clone();
    let first = &group["records"][0];
    assert_eq!((&first["key"], &first["at_is"]), (&"a".into(), &"completed".into()));
    assert_eq!(first["at_evidence"], "estimated");
    let gap = group["records"][1]["gap_ms"].as_u64().unwrap();
    assert!((39_000..=41_000).contains(&gap), "{gap}");
    let table = server.idemctl(&[&["duplicates"], &BY_ORDER[..]].concat()).exits(1);
    table.shows(" ~20").shows("result  ~");
    let stated = ["--within", "5m", "--schema", "event-driven", "--result-ttl", "1d"];
    let words = [&BY_ORDER[..], &stated].concat();
    let group = found(&server, &words).exits(1).json()["groups"][0].clone();
    assert_eq!(group["records"][0]["at_evidence"], "stated");
    let table = server.idemctl(&[&["duplicates"], &words[..]].concat()).exits(1);
    table.shows(" ~20").shows("result  ~");
}

/// Rule: times that rest on a default TTL never separate records, because the service may have set
/// different TTLs.
#[test]
fn within_does_not_cut_by_estimated_times() {
    let within = [&BY_ORDER[..], &["--within", "15m"]].concat();
    for (first, second) in [(HOUR - 60_000, DAY - 60_000), (DAY - 60_000, DAY - 20_000)] {
        let server = Server::start();
        for (key, left) in [("a", first), ("b", second)] {
            server.set(&format!("idem:result:{key}"), result(r#"{"order":{"id":7}}"#), left);
        }
        server.set("idem:result:alone", result(r#"{"order":{"id":8}}"#), HOUR);
        let run = found(&server, &within).exits(3);
        let document = run.json();
        let unknown = &document["unknown"]["time"];
        assert_eq!((keys(&document), &unknown["records"]), (none(), &2.into()), "{}", run.all());
        assert_eq!(unknown["examples"][0]["key"], "a");
        assert_eq!(document["complete"], false);
        run.says("Unknown for 2 records").says("--within needs a time");
        let stated = ["--schema", "event-driven", "--result-ttl", "1d"];
        let code = if first < HOUR { 0 } else { 1 };
        found(&server, &[&within[..], &stated].concat()).exits(code);
    }
}

/// Rule: with --within, a record of unknown time is in no group, and is named.
#[test]
fn within_needs_times_and_names_the_records_without() {
    let server = Server::start();
    for key in ["a", "b"] {
        server.put(&format!("idem:result:{key}"), result(r#"{"order":{"id":7}}"#));
    }
    server.put("idem:result:alone", result(r#"{"order":{"id":8}}"#));
    let without = found(&server, &BY_ORDER).exits(1).json();
    assert_eq!(keys(&without), [["a", "b"]]);
    assert!(without["groups"][0]["records"][0]["at_evidence"].is_null());
    let within = found(&server, &[&BY_ORDER[..], &["--within", "1d"]].concat()).exits(3);
    let document = within.json();
    assert_eq!((keys(&document), &document["unknown"]["time"]["records"]), (none(), &2.into()));
    within.says("because --within needs a time");
}

/// Rule: a group is cut only where the time since the previous record is longer.
#[test]
fn within_is_the_time_since_the_previous_record() {
    let server = Server::start();
    for (key, seconds) in [("a", 0), ("b", 50), ("c", 100), ("d", 161), ("e", 200)] {
        let value = reference("w", key, FIRST + seconds * 1_000, "o-1");
        server.set(&format!("idemkey:{key}"), value, 20 * HOUR);
    }
    let document = found(&server, &[&BY_ORDER[..], &["--within", "1m"]].concat()).exits(1).json();
    assert_eq!(keys(&document), [vec!["a", "b", "c"], vec!["d", "e"]]);
    assert_eq!(document["groups"][0]["keys"], 3, "the largest first");
}

#[test]
fn several_pointers_must_all_agree() {
    let server = Server::start();
    let body = |order: u64, amount: &str| format!(r#"{{"order":{order},"amount":{amount}}}"#);
    for (key, order, amount) in
        [("t1:a", 1, "10.0"), ("t1:b", 1, "10"), ("t2:c", 1, "10"), ("t1:d", 1, "11")]
    {
        let value = with_body("w", key, FIRST, 201, &body(order, amount));
        server.set(&format!("idemkey:{key}"), value, 20 * HOUR);
    }
    let both = ["--same", "/order", "--same", "/amount"];
    assert_eq!(keys(&found(&server, &both).exits(1).json()), [["t1:a", "t1:b", "t2:c"]]);
}

#[test]
fn pointers_are_checked_and_a_locked_record_is_not_grouped() {
    let server = Server::holding(&[("idem:a", LOCK, FOREVER)]);
    for (pointer, says) in [("order", "begins with /"), ("/a~2", "~ is written ~0"), ("", "begins")]
    {
        found(&server, &["--same", pointer]).exits(2).says(says);
    }
    found(&server, &BY_ORDER)
        .exits(3)
        .says("Not compared, because they have no response: 1 record.");
}

/// Rule: `value:` goes into the whole stored value, where some services store the request, also beside
/// no response, and also if the value is longer than a page reads. Revert: with `is_cut` by the
/// response alone, the long records are not compared.
#[test]
fn a_stored_request_is_compared() {
    let server = Server::start();
    let request = |order: &str, note: &str| {
        format!(
            r#"{{"headers":{{"n":"{note}"}},"method":"POST","query":{{}},"url":"/pay","body":{{"order":"{order}","at":"{note}"}}}}"#
        )
    };
    let response = r#"{"statusCode":201,"body":{"id":"x"},"headers":{}}"#;
    let long = "n".repeat(100_000);
    for (key, order, note, has_response) in [
        ("a", "o-1", "1", true),
        ("b", "o-1", long.as_str(), true),
        ("c", "o-2", "2", true),
        ("d", "o-2", "3", false),
        ("e", "o-3", "4", true),
    ] {
        let mut request = request(order, note);
        if key == "d" {
            // Some services store a body that they encoded before.
            let body = format!(r#"{{"order":"{order}","at":"{note}"}}"#);
            request = request.replace(&body, &serde_json::Value::from(body.as_str()).to_string());
        }
        let value = match has_response {
            true => format!(r#"{{"request":{request},"response":{response}}}"#),
            false => format!(r#"{{"request":{request}}}"#),
        };
        server.set(key, value, HOUR);
    }
    let same = ["--schema", "express-idempotency", "--same", "value:/request/body/order"];
    let document = found(&server, &same).exits(1).json();
    assert_eq!(keys(&document), [["a", "b"], ["c", "d"]]);
    assert_eq!(document["compared"], 5);
    // Together with a pointer into the response, a record without one is not compared.
    let document = found(&server, &[&same[..], &["--same", "/id"]].concat()).exits(1).json();
    assert_eq!(keys(&document), [["a", "b"]]);
    found(&server, &["--same", "value:order"]).exits(2).says("a JSON pointer begins with /");
    let nothing = ["--schema", "express-idempotency", "--same", "value:/request/order"];
    found(&server, &nothing).exits(3);
}

const TWO: &str = r#"format = 2
name = "two"
summary = "the lock holds the request"

[keys]
lock = "tl:{key}"
result = "tr:{key}"

[ttl]
lock = "90s"
result = "24h"

[[value]]
name = "held"
at = "lock"
where = { "/s" = "held" }
required = ["/s"]
optional = ["/request"]
state = "in-progress"

[[value]]
name = "done"
at = "result"
where = { "/s" = "done" }
required = ["/s"]
optional = ["/body", "/request"]
state = "completed"
fields = { body = "/body" }
"#;

/// Rule: a value beside a result that cannot be decoded may hold the wanted value, so that the run
/// is not complete. Revert: without `unknown` for it, no group is found and nothing is unknown.
#[test]
fn a_damaged_value_may_hold_the_request() {
    let server = Server::start();
    server.describe("two", &[("schema.toml", TWO)]);
    let same = ["--schema", "two", "--same", "value:/request/order"];
    for key in ["a", "b"] {
        server.set(&format!("tr:{key}"), r#"{"s":"done","body":{}}"#, HOUR);
    }
    server.set("tr:c", r#"{"s":"done","body":{},"request":{"order":"o-7"}}"#, HOUR);
    server.set("tl:a", r#"{"s":"held","request":{"order":"o-1"}}"#, HOUR);
    let complete = found(&server, &same).exits(0).json();
    assert_eq!(complete["complete"], true);
    server.set("tl:b", r#"{"s":"held","request":{"order":"o-1""#, HOUR);
    let document = found(&server, &same).exits(3).json();
    let unreadable = &document["unknown"]["unreadable"]["records"];
    assert_eq!((&document["complete"], unreadable), (&false.into(), &1.into()));
}
