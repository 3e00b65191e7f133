//! What to change: the advice names steps that the schema has, and says the cause of several harms once.

use std::fs;

use serde_json::Value;

use super::{explore, only};
use crate::simulate::variant::{home, run};

/// GET, then SET. The lock names its owner, and no step releases it.
const GET_THEN_SET: &str = r#"format = 2
name = "getset"
keys = { record = "gs:{key}" }
ttl = { lock = "30s", result = "24h" }

[[value]]
name = "lock"
encoding = "json"
where = { "/s" = "P" }
required = ["/s", "/o"]
state = "in-progress"
fields = { owner = "/o" }

[[value]]
name = "done"
encoding = "json"
where = { "/s" = "D" }
required = ["/s", "/b", "/c"]
state = "completed"
fields = { status = "/c", body = "/b" }

[write]
lock_value = '{"s":"P","o":"{owner}"}'
result_value = '{"s":"D","c":{status},"b":{body_text}}'

[service]
on_failure = "keep"

[[begin.call]]
command = ["GET", "{record}"]
replies = [
  { nil = true, means = "next", when = { record = "absent" } },
  { value = "lock", means = "conflict", when = { record = "lock" } },
  { value = "done", means = "replay", when = { record = "done" } },
]

[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "EX", "{lock_ttl}"]
replies = [{ word = "OK", means = "acquired", when = {} }]

[complete]
checks_owner = false

[[complete.call]]
command = ["SET", "{record}", "{result_value}", "EX", "{result_ttl}"]
replies = [{ word = "OK", means = "stored", when = {} }]
"#;

const ONE_SCRIPT: &str = "let begin look the record up and take the lock in one script";

fn remedies(exploration: &Value) -> Vec<&str> {
    exploration["harms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|harm| harm["remedy"].as_str().unwrap())
        .collect()
}

/// Rule: four harms that follow from one gap in begin have one advice, and the advice is about begin.
#[test]
fn what_follows_from_one_cause_is_said_once() {
    let folder = home();
    fs::create_dir(folder.path().join("getset")).unwrap();
    fs::write(folder.path().join("getset/schema.toml"), GET_THEN_SET).unwrap();
    let words = ["explore", "getset", "--schema-dir", ".", "--sandbox"];
    let shown = run(folder.path(), &words).exits(1).text();
    let (_, advice) = shown.split_once("What to change\n").unwrap();
    let broken = "one-effect, result-kept, result-not-replaced, owner-only: getset\n";
    assert_eq!(
        advice,
        format!("{broken}  → {ONE_SCRIPT}, because another request can act between two calls\n")
    );
    let json = run(folder.path(), &[&words[..], &["-o", "json"]].concat()).exits(1);
    let explored = only(&json);
    assert!(
        remedies(&explored).iter().all(|remedy| remedy.starts_with(ONE_SCRIPT)),
        "{explored:#}"
    );
}

/// Rule: no advice is about a step or a token that the schema lacks, or asks for what the schema has.
#[test]
fn advice_is_about_the_steps_that_there_are() {
    for schema in ["go-chi", "go-middleware", "express", "event-driven", "event-consumer"] {
        let explored = only(&explore(&[schema, "--strict", "-o", "json"]).exits(1));
        let releases = ["go-chi", "express", "event-consumer"].contains(&schema);
        let begins_in_a_script = schema != "event-consumer";
        for remedy in remedies(&explored) {
            assert!(releases || !remedy.contains("release"), "{schema}: {remedy}");
            assert!(!begins_in_a_script || !remedy.contains("in one script"), "{schema}: {remedy}");
            assert!(
                schema != "event-driven" || !remedy.contains("store an owner token"),
                "{schema}: {remedy}"
            );
        }
    }
}
