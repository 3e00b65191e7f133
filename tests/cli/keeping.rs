//! `complete` keeps what it does not know, and promises no more than was seen.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Run, Runs, Server};

/// A library whose lock and result share a Redis key, and that refuses a result without the payload's hash.
fn toml(result_value: &str) -> String {
    format!(
        r#"format = 2
name = "keeper"
keys = {{ record = "keep:{{key}}" }}
ttl = {{ lock = "5m", result = "24h" }}

[[value]]
name = "running"
where = {{ "/status" = "RUN" }}
state = "in-progress"
fields = {{ fingerprint = "/hash" }}

[[value]]
name = "done"
where = {{ "/status" = "DONE" }}
has = ["/body"]
state = "completed"
fields = {{ body = "/body", fingerprint = "/hash" }}
body_encoding = "json"

[write]
lock_value = '{{"status":"RUN","hash":"{{fingerprint}}"}}'
result_value = '{result_value}'

[[begin.call]]
command = ["SET", "{{record}}", "{{lock_value}}", "NX", "EX", "{{lock_ttl}}"]
replies = [
  {{ word = "OK", means = "acquired", when = {{ record = "absent" }} }},
  {{ nil = true, means = "next" }},
]

[[begin.call]]
command = ["GET", "{{record}}"]
replies = [
  {{ value = "done", means = "mismatch", when = {{ fingerprint = "other" }} }},
  {{ value = "done", means = "replay" }},
  {{ value = "running", means = "conflict" }},
]

[[complete.call]]
command = ["SET", "{{record}}", "{{result_value}}", "EX", "{{result_ttl}}"]
replies = [{{ word = "OK", means = "stored", when = {{}} }}]
"#
    )
}

const ALL_KEPT: &str = r#"{"status":"DONE","hash":"{fingerprint}","body":{body_json}{kept}}"#;

fn with_result(result_value: &str) -> Server {
    let lock = r#"{"status":"RUN","hash":"abc","trace":{"id":10000000000000000001},"n":1.0}"#;
    let server = Server::holding(&[("keep:a", lock, 200_000)]);
    server.describe("keeper", &[("schema.toml", &toml(result_value))]);
    server
}

const COMPLETE: [&str; 7] =
    ["complete", "a", "--schema", "keeper", "--body", r#"{"id":7}"#, "--yes"];

fn complete(server: &Server) -> Run {
    server.idemctl(&COMPLETE)
}

fn stored(server: &Server) -> String {
    String::from_utf8(server.get("keep:a").unwrap()).unwrap()
}

/// Rule: what the schema does not name is kept, byte for byte, or nothing is done.
#[test]
fn fields_that_the_schema_does_not_name_are_kept() {
    let server = with_result(ALL_KEPT);
    complete(&server)
        .exits(0)
        .says("Tested with the service's scripts on a temporary local Redis.");
    let expected = r#"{"status":"DONE","hash":"abc","body":{"id":7},"trace":{"id":10000000000000000001},"n":1.0}"#;
    assert_eq!(stored(&server), expected);
}

#[test]
fn one_field_is_kept_by_its_pointer() {
    let server = with_result(
        r#"{"status":"DONE","hash":"{fingerprint}","body":{body_json},"trace":{"id":{kept:/trace/id}},"n":{kept:/n},"gone":{kept:/gone}}"#,
    );
    complete(&server).exits(0);
    let end = r#""trace":{"id":10000000000000000001},"n":1.0,"gone":null}"#;
    assert!(stored(&server).ends_with(end), "{}", stored(&server));
}

#[test]
fn what_would_be_lost_is_named_and_nothing_is_done() {
    let server =
        with_result(r#"{"status":"DONE","hash":"{fingerprint}","body":{body_json},"n":{kept:/n}}"#);
    let before = stored(&server);
    let run = complete(&server).exits(2);
    run.says("a: the result that keeper writes would lose the stored /trace; nothing was changed");
    run.says("keep it with {kept} in result_value");
    assert_eq!(stored(&server), before);
}

/// Rule: a payload's hash is kept, for the client refuses a result without.
#[test]
fn a_fingerprint_is_kept_or_nothing_is_done() {
    let server = with_result(r#"{"status":"DONE","body":{body_json}{kept}}"#);
    let before = stored(&server);
    complete(&server).exits(2).says("would lose the stored /hash");
    assert_eq!(stored(&server), before);
}

/// Rule: a replay is promised only where the service's own begin replayed the new bytes.
#[test]
fn a_replay_that_nobody_saw_is_not_promised() {
    let server = with_result(ALL_KEPT);
    let empty = server.folder().join("nothing");
    fs::create_dir_all(&empty).unwrap();
    let run = server.command().args(COMPLETE).env("PATH", &empty).run().exits(0);
    run.says("Not tested").says("The schema predicts that the next request gets a replay");
    run.says("Read back: completed. According to the schema, the next request gets a replay");
    assert!(run.all().contains("This was not tested."), "{}", run.all());
}

#[test]
fn a_replay_that_does_not_come_is_told() {
    // Its result has another hash than the requests that ask for it.
    let server = with_result(r#"{"status":"DONE","hash":"{key}","body":{body_json}{kept}}"#);
    server.set("keep:a", r#"{"status":"RUN"}"#, 200_000);
    let run = complete(&server).exits(0);
    run.says(
        "on a temporary local Redis, the service's begin step replied mismatch, although the schema \
        predicts",
    );
    assert!(!run.all().contains("Read back: the next request gets a replay"), "{}", run.all());
}

#[test]
fn json_says_what_was_tried() {
    let server = with_result(ALL_KEPT);
    let run = server.idemctl(&[&COMPLETE[..], &["-o", "json"]].concat()).exits(0).json();
    assert_eq!(run["step"]["tried"], "replay");
    let dry = with_result(ALL_KEPT)
        .idemctl(&[&COMPLETE[..6], &["--dry-run", "-o", "json"]].concat())
        .exits(0)
        .json();
    assert_eq!((&dry["step"]["tried"], &dry["outcome"]), (&json!("replay"), &json!("dry-run")));
    let begun = server
        .idemctl(&["begin", "a", "--schema", "keeper", "--yes", "-o", "json"])
        .exits(1)
        .json();
    assert_eq!(begun["step"]["tried"], Value::Null);
}
