//! The fields that a file may omit, and the fields that are then required.

use super::*;
use crate::domain::schema::{Condition, KeyIs, TtlOf};

const OBSERVED: &str = r#"format = 2
name = "mine"
keys = { record = "pay:{key}" }
ttl = { lock = "30s", result = "none" }

[[value]]
name = "running"
where = { "/status" = "INPROGRESS" }
state = "in-progress"

[[value]]
name = "done"
equals = "done"
state = "completed"
"#;

fn observed(from: &str, to: &str) -> Result<Schema, SchemaError> {
    assert!(OBSERVED.contains(from), "{from}");
    read(&OBSERVED.replacen(from, to, 1))
}

#[track_caller]
fn says(from: &str, to: &str, line: usize, message: &str) {
    let error = observed(from, to).unwrap_err();
    assert!(error.line == line && error.message.contains(message), "{error}");
}

#[test]
fn fields_that_can_be_derived_are_optional() {
    let schema = read(OBSERVED).unwrap();
    let encodings: Vec<_> =
        schema.values.iter().map(|case| (case.key_index, case.encoding().as_str())).collect();
    assert_eq!(encodings, [(0, "json"), (0, "text")]);
    assert_eq!((schema.ttl(TtlOf::Lock).is_some(), schema.ttl(TtlOf::Result)), (true, None));
    assert!(schema.steps().next().is_none() && schema.begin_calls().is_empty());
}

#[test]
fn fields_that_cannot_be_derived_are_required() {
    says("equals = \"done\"\n", "", 11, "nothing distinguishes this value");
    says(", result = \"none\"", "", 4, "missing field `result`");
    says(
        "record = \"pay:{key}\"",
        "lock = \"l:{key}\", result = \"r:{key}\"",
        6,
        "`at` is missing",
    );
    says("record = \"pay:{key}\"", "prefix = \"a\"", 3, "no template contains");
}

#[test]
fn the_decoders_of_a_value_are_checked() {
    let state = "state = \"in-progress\"";
    let with =
        |lines: &str, line, message: &str| says(state, &format!("{lines}\n{state}"), line, message);
    with("decode = [\n\"gzip\",\n\"yaml\"]", 11, "`yaml` is not a step of `decode` here");
    with("decode = [\"json\"]\nencoding = \"json\"", 10, "`decode` ends with the encoding");
    with("decode_at = { a = [\"json\"] }", 9, "`a` is not a JSON pointer");
    with("encoding = \"json\"\ntype = \"hash\"", 10, "are for strings; a hash has `decode_at`");
    says(
        "equals = \"done\"",
        "equals = \"done\"\ndecode_at = { \"/a\" = [\"json\"] }",
        14,
        "`decode_at` is only for",
    );
}

#[test]
fn a_schema_without_results_needs_no_result_ttl() {
    let lock =
        OBSERVED.split("\n[[value]]\nname = \"done\"").next().unwrap().replace("record", "lock");
    let schema = read(&lock.replace(", result = \"none\"", "")).unwrap();
    assert!(schema.has_locks() && schema.keys.len() == 1);
    let results = OBSERVED
        .replace("record", "result")
        .replace("in-progress", "completed")
        .replace("lock = \"30s\", ", "");
    assert!(!read(&results).unwrap().has_locks());
}

/// Rule: a placeholder without a definition would be sent as an empty word.
#[test]
fn a_step_may_not_send_an_undefined_placeholder() {
    let begin = |word: &str| {
        format!(
            "state = \"completed\"\n[[begin.call]]\ncommand = [\"SET\", \"{{record}}\", \"{word}\"]\nreplies = [{{ word = \"OK\", means = \"acquired\" }}]"
        )
    };
    observed("state = \"completed\"", &begin("{lock_ttl}")).unwrap();
    for word in ["{result_ttl}", "{lock_value}", "{result_value}"] {
        says("state = \"completed\"", &begin(word), 16, "has no value in [ttl] or [write]");
    }
    let locks = OBSERVED.replace("record = \"pay:{key}\"", "lock = \"pay:{key}\"");
    let error = read(&locks.replacen("state = \"completed\"", &begin("x"), 1)).unwrap_err();
    assert!(
        error.message.contains("`{record}` has no value, because [keys] has no `record`"),
        "{error}"
    );
}

const ASKING: &str = r#"
[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { value = "running", means = "conflict" },
  { value = "done", means = "mismatch", when = { fingerprint = "other" } },
  { value = "done", means = "replay" },
  { nil = true, means = "acquired" },
]
"#;

fn asking(from: &str, to: &str) -> Result<Schema, SchemaError> {
    assert!(ASKING.contains(from), "{from}");
    read(&format!("{OBSERVED}{}", ASKING.replacen(from, to, 1)))
}

#[test]
fn a_reply_with_a_value_format_is_predicted_if_such_a_value_exists() {
    let schema = asking("", "").unwrap();
    let replies = &schema.begin_calls()[0].replies;
    let when: Vec<_> = replies.iter().map(|reply| reply.when.clone()).collect();
    let of = |form, other_payload| {
        vec![Condition {
            keys: vec![(0, KeyIs::Value(form))],
            other_payload,
            no_fingerprint: false,
        }]
    };
    assert_eq!(when, [of(0, false), of(1, true), of(1, false), vec![]]);
    let explicit =
        asking("means = \"replay\"", "means = \"replay\", when = { record = \"present\" }")
            .unwrap();
    assert_eq!(explicit.begin_calls()[0].replies[2].when[0].keys, [(0, KeyIs::Present)]);
}

/// Rule: a reply that an earlier entry always matches would never be used.
#[test]
fn a_reply_that_never_matches_is_an_error() {
    let met = |replies: &str| {
        let from = &ASKING[ASKING.find("  {").unwrap()..ASKING.find("\n]\n").unwrap()];
        asking(from, &format!("{replies}\n  {{ nil = true, means = \"acquired\" }},"))
    };
    for (first, second) in [
        ("text = true", "text = true"),
        ("text = true", "word = \"OK\""),
        ("text = true", "value = \"done\""),
        ("value = \"done\"", "value = \"done\""),
        ("value = \"done\"", "word = \"done\""),
        ("integer = 1", "integer = 1"),
        ("error = \"*\"", "error = \"LOCKED\""),
        ("array = 1", "array = 1, value = \"done\""),
    ] {
        let reply = |pattern: &str| format!("  {{ {pattern}, means = \"conflict\" }},");
        let error = met(&[reply(first), reply(second)].join("\n")).unwrap_err();
        let is_named =
            error.message.contains("this reply never applies, because reply 1 of the call");
        assert!(error.line == 20 && is_named, "{first}, {second}: {error}");
        if first != second {
            met(&[reply(second), reply(first)].join("\n")).unwrap();
        }
    }
}

#[test]
fn a_value_format_is_named_once_and_only_for_texts() {
    let error = |to: &str| asking("value = \"running\"", to).unwrap_err().to_string();
    assert!(error("value = \"gone\"").contains("no [[value]] is called `gone`"));
    assert!(
        error("value = \"running\", word = \"OK\"")
            .contains("`value` must be alone or with `array`")
    );
    let other = asking("fingerprint = \"other\"", "fingerprint = \"same\"").unwrap_err();
    assert!(other.message.contains("`fingerprint` must be `other`"), "{other}");
}

#[test]
fn a_written_value_has_only_known_placeholders() {
    let write = |line: &str| format!("state = \"completed\"\n\n[write]\n{line}");
    let fits = |line: &str| observed("state = \"completed\"", &write(line));
    fits("lock_value = '{\"k\":\"{key}\",\"until\":{lock_expires_s},\"at\":\"{now_rfc3339}\"}'")
        .unwrap();
    fits("result_value = '{\"hex\":\"{body_hex}\",\"a\":{kept:/a/b}{kept}}'").unwrap();
    fits("result_value = '{\"s\":1{kept?:/a/b}}'").unwrap();
    fits("result_value = '{\"a\":{\"b\":{status}}}'").unwrap();
    says(
        "state = \"completed\"",
        &write("result_value = '{kept:trace}'"),
        17,
        "`{kept:trace}` is not a placeholder",
    );
    says(
        "state = \"completed\"",
        &write("result_value = '{result_expires_ms}'"),
        17,
        "[ttl] has no result TTL",
    );
    says("state = \"completed\"", &write("lock_value = '{kept:/a}'"), 17, "a lock keeps nothing");
    says(
        "state = \"completed\"",
        &write("lock_value = '{\"s\":0{kept?:/a}}'"),
        17,
        "a lock keeps nothing",
    );
}
