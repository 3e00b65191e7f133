//! `idemctl doctor` on schemas: what `explore` finds in them.

use serde_json::Value;

use crate::support::{LOCK, Runs as _, Server};

/// The statements of one check, whatever the exit code.
fn checks(server: &Server, words: &[&str]) -> Vec<Value> {
    let run = server.idemctl(&[&["doctor", "-o", "json"], words].concat());
    run.json()["checks"].as_array().unwrap().clone()
}

/// Rule: only what happens under the assumptions is a finding, and its history can be replayed.
#[test]
fn a_schema_that_executes_twice_by_itself_is_a_finding_with_a_history() {
    let server = Server::start();
    server.set("idem:held", LOCK, 20_000);
    let found = &checks(&server, &["--only", "schema-violations"])[0];
    assert_eq!((&found["severity"], &found["group"]), (&"error".into(), &"schema".into()));
    assert_eq!(found["schemas"], serde_json::json!(["express"]), "{found:#}");
    assert_eq!(found["counterexamples"][0]["invariant"], "one-effect", "{found:#}");
    let line = found["replay"].as_str().unwrap().strip_prefix("idemctl ").unwrap();
    let words: Vec<String> = shlex::split(line).unwrap();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let replayed = server.unnamed(&[&words[..], &["-o", "json"]].concat()).exits(1).json();
    let history = &replayed["schemas"][0];
    let harms = history["harms"].as_array().unwrap();
    assert!(harms.iter().any(|harm| harm["invariant"] == "one-effect"), "{history:#}");
    let steps = history["replay"]["trace"].as_array().unwrap().len();
    assert_eq!(found["counterexamples"][0]["steps"], steps);
    // Without assumptions, explore finds violations in this schema, too.
    let words = ["--only", "schema-violations", "--schema", "event-driven"];
    let sound = &checks(&server, &words)[0];
    assert_eq!((&sound["severity"], &sound["replay"]), (&"ok".into(), &Value::Null), "{sound:#}");
    // Without a server program, nothing can be explored.
    let run = server
        .command()
        .env("PATH", "/nowhere")
        .args(["doctor", "-o", "json", "--only", "schema-violations", "--schema", "go-chi"])
        .run();
    let unknown = &run.exits(3).json()["checks"][0];
    assert_eq!(unknown["severity"], "unknown", "{unknown:#}");
    assert!(unknown["fact"].as_str().unwrap().starts_with("go-chi was not explored"));
}
