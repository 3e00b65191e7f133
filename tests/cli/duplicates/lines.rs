//! `duplicates --from`: JSON lines of any store.

use serde_json::Value;

use super::keys;
use crate::support::{Run, Runs, idemctl};

/// Runs `duplicates --from -` with these lines; there is no server.
fn from(lines: &str, words: &[&str]) -> Run {
    let home = tempfile::tempdir().unwrap();
    idemctl(home.path())
        .args(["-p", "1", "duplicates", "-o", "json", "--from", "-"])
        .args(words)
        .fed(lines.as_bytes())
}

/// Lines with these keys and values at `/id`.
fn with_ids(ids: &[(&str, &str)]) -> String {
    ids.iter().map(|(key, id)| format!("{{\"key\":\"{key}\",\"id\":{id}}}\n")).collect()
}

fn groups(lines: &str) -> Vec<Vec<String>> {
    let run = from(lines, &["--same", "/id"]);
    assert!([0, 1, 3].contains(&run.code), "{}", run.all());
    keys(&run.json())
}

#[test]
fn values_are_equal_as_json_values() {
    for (one, other) in [
        ("1", "1.0"),
        ("\"x\"", "\"\\u0078\""),
        ("{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}"),
        ("[1]", "[1e0]"),
    ] {
        assert_eq!(groups(&with_ids(&[("a", one), ("b", other)])).len(), 1, "{one} {other}");
    }
    for (one, other) in [
        ("9007199254740993", "9007199254740992"),
        ("1", "\"1\""),
        ("[1,2]", "[2,1]"),
        ("null", "null"),
        ("\"\"", "\"\""),
        ("[]", "[]"),
        ("{}", "{}"),
    ] {
        assert_eq!(groups(&with_ids(&[("a", one), ("b", other)])).len(), 0, "{one} {other}");
    }
}

#[test]
fn the_order_of_the_lines_changes_nothing() {
    let line = |key: &str, at: u64, id: u64| {
        format!("{{\"key\":\"{key}\",\"created_at\":{at},\"id\":{id},\"fingerprint\":\"f\"}}\n")
    };
    let mut lines: Vec<_> = [
        ("a", 1_700_000_000, 1),
        ("b", 1_700_000_050, 1),
        ("c", 1_700_000_100, 1),
        ("d", 1_700_000_300, 1),
        ("e", 1_700_000_020, 2),
    ]
    .iter()
    .map(|(key, at, id)| line(key, *at, *id))
    .collect();
    let words = ["--same", "/id", "--within", "1m"];
    let first = from(&lines.concat(), &words).exits(1).json();
    assert_eq!(keys(&first), [vec!["a", "b", "c"], vec!["a", "b", "c", "e"]]);
    for _ in 0..5 {
        lines.rotate_left(1);
        lines.swap(0, 2);
        assert_eq!(from(&lines.concat(), &words).exits(1).json(), first);
    }
}

#[test]
fn a_response_is_a_value_or_a_text_and_otherwise_the_line_itself_is_read() {
    let lines = r#"{"key":"a","response":{"id":7}}
{"key":"b","response":"{\"id\":7}"}
{"key":"c","id":7}
{"key":"d","id":7,"response":{"other":1}}
{"key":"e","id":7,"response":null}
"#;
    let document = from(lines, &["--same", "/id"]).exits(1).json();
    assert_eq!(keys(&document), [["a", "b", "c"]]);
    assert_eq!(
        (&document["not_compared"]["value"], &document["not_compared"]["response"]),
        (&1.into(), &1.into())
    );
    from("{\"key\":\"a\",\"response\":\"<html>\"}\n", &["--same", "/id"]).exits(3);
}

#[test]
fn the_last_line_of_a_key_counts() {
    let lines = with_ids(&[("a", "1"), ("b", "1"), ("b", "2"), ("b", "2")]);
    let run = from(&lines, &["--same", "/id"]).exits(0);
    run.says("2 lines have the schema and key of a later line");
    assert_eq!((&run.json()["records"], &run.json()["compared"]), (&2.into(), &2.into()));
}

#[test]
fn times_are_rfc_3339_or_unix_seconds_or_milliseconds() {
    let lines = r#"{"key":"a","id":1,"created_at":"2023-11-14T22:13:20Z"}
{"key":"b","id":1,"created_at":1700000001}
{"key":"c","id":1,"created_at":1700000002500}
{"key":"d","id":1,"created_at":1700000003.25}
{"key":"e","id":1,"created_at":"1700000004"}
{"key":"f","id":1,"created_at":"2023-11-14T23:13:25.5+01:00"}
"#;
    let lines = &format!("\u{feff}{lines}");
    let group = from(lines, &["--same", "/id"]).exits(1).json()["groups"][0].clone();
    let gaps: Vec<_> = group["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record["gap_ms"].clone())
        .collect();
    assert_eq!(
        gaps,
        [Value::Null, 1_000.into(), 1_500.into(), 750.into(), 750.into(), 1_500.into()]
    );
}

/// Rule: a record of unknown time is named if another one agrees, whatever the time of that one is.
#[test]
fn a_line_without_time_is_named_if_another_agrees() {
    let lines = r#"{"key":"a","id":7,"created_at":1700000000}
{"key":"b","id":7}
"#;
    let run = from(lines, &["--same", "/id", "--within", "15m"]).exits(3);
    assert_eq!(
        run.json()["unknown"]["time"]["examples"],
        serde_json::json!([{"schema": null, "key": "b"}])
    );
    run.says("Unknown: 1 record agrees with another one, and has an unknown or only estimated time, which is not enough for --within: b.");
}

/// Rule: sentences say only what is known.
#[test]
fn the_summary_claims_nothing_that_is_not_known() {
    let lines = r#"{"key":"a","id":1,"fingerprint":"f"}
{"key":"b","id":1,"fingerprint":"f"}
"#;
    from(lines, &["--same", "/id"])
        .exits(1)
        .says("1 group (strong evidence): 1 has unknown outcomes.");
    // The records have fingerprints, and something else is missing.
    for words in [&["--also", "stem"][..], &["--tenant-part", "2"]] {
        let run = from(lines, words).exits(3);
        assert!(!run.stderr.contains("fingerprint"), "{}", run.all());
        run.says("No record could be compared");
        let with_values = from(lines, &[&["--same", "/id"], words].concat()).exits(3);
        assert!(!with_values.stderr.contains("/id."), "{}", with_values.all());
        assert_eq!(run.json()["candidates"], serde_json::json!([]));
    }
    // Groups by fingerprint exist beside values that nobody has.
    let run = from(lines, &["--same", "/other"]).exits(3);
    assert_eq!(run.json()["weak_groups"], 1);
    run.says("0 records have values at /other.").says("so --same does not compare them.");
    assert!(!run.stderr.contains("Nothing was compared"), "{}", run.all());
}

/// Rule: long values are compared by their digests, so that memory stays bounded.
#[test]
fn long_values_are_shown_by_their_digests() {
    let long = "x".repeat(5_000);
    let lines = with_ids(&[
        ("a", &format!("\"{long}\"")),
        ("b", &format!("\"{long}\"")),
        ("c", &format!("\"{long}y\"")),
    ]);
    let document = from(&lines, &["--same", "/id"]).exits(1).json();
    assert_eq!(keys(&document), [["a", "b"]]);
    let value = document["groups"][0]["values"][0]["value"].as_str().unwrap();
    assert!(value.starts_with("sha256:") && value.len() == 71, "{value}");
}

#[test]
fn a_bad_line_is_named_by_its_number() {
    for (line, why) in [
        ("nonsense", "not JSON"),
        ("[]", "not a JSON object"),
        ("{\"id\":1}", "`key` is missing"),
        ("{\"key\":7}", "`key` is missing, or not a text"),
        ("{\"key\":\"a\",\"created_at\":\"soon\"}", "`created_at` is neither"),
        ("{\"key\":\"a\",\"created_at\":-1}", "`created_at` is neither"),
        ("{\"key\":\"a\",\"status\":\"ok\"}", "`status` is not a whole number"),
        ("{\"key\":\"a\",\"state\":\"done\"}", "`state` is none of"),
    ] {
        let lines = format!("{{\"key\":\"x\",\"id\":1}}\n\n{line}\n");
        let run = from(&lines, &["--same", "/id"]).exits(2);
        run.says("-:3:").says(why);
    }
    let long = format!("{{\"key\":\"{}\"}}\n", "x".repeat(17 << 20));
    from(&long, &["--same", "/id"]).exits(2).says("-:1:").says("larger than 16 MiB");
}

#[test]
fn options_that_need_a_schema_or_a_server_are_refused() {
    for words in [
        &["--state", "completed"][..],
        &["--match", "a*"],
        &["--schema", "express"],
        &["--rate", "5/s"],
    ] {
        from("", &[&["--same", "/id"], words].concat()).exits(2).says("--from: ");
    }
    let home = tempfile::tempdir().unwrap();
    let words = ["duplicates", "--same", "/id", "--from", "nowhere.jsonl"];
    idemctl(home.path())
        .args(words)
        .run()
        .exits(2)
        .says("cannot read the records in nowhere.jsonl");
}

#[test]
fn outcomes_of_lines_are_only_what_they_say() {
    let lines = r#"{"key":"a","id":1,"state":"completed"}
{"key":"b","id":1,"status":201}
{"key":"c","id":1}
{"key":"d","id":1,"status":500,"state":"completed"}
"#;
    let group = from(lines, &["--same", "/id"]).exits(1).json()["groups"][0].clone();
    let counts = ["completed", "failed", "unknown"].map(|name| group[name].as_u64().unwrap());
    assert_eq!(counts, [2, 1, 1]);
}

/// Rule: `value:` goes into the line, whatever its response is.
#[test]
fn a_pointer_after_value_goes_into_the_line() {
    let lines = r#"{"key":"a","request":{"order":7},"response":"{\"id\":1}"}
{"key":"b","request":{"order":7},"response":{"id":1}}
{"key":"c","request":{"order":7},"response":null}
{"key":"d","request":{"order":8}}
{"key":"e","request":"{\"order\":7}"}
"#;
    let run = from(lines, &["--same", "value:/request/order"]).exits(1);
    assert_eq!(keys(&run.json()), [["a", "b", "c", "e"]]);
    let run = from(lines, &["--same", "value:/request/order", "--same", "/id"]).exits(1);
    assert_eq!(keys(&run.json()), [["a", "b"]]);
}
