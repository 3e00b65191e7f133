//! Records of a probe that change, or stay, while it removes them.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::stage::Stage;
use crate::support::Running as _;

/// A result as the schema express has it.
const RESULT: &str = r#"{"status":"COMPLETED","statusCode":201,"body":"x"}"#;

/// Starts a probe.
fn started(stage: &Stage, words: &[&str]) -> Child {
    let mut command = stage.command(&stage.service.url("/effects"), "json", words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for the first four records, and returns the Redis key of the last, which the probe does not
/// send again.
#[track_caller]
fn last_of_the_first(stage: &Stage) -> String {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(30) {
        let keys = stage.server.keys();
        let is_completed = |key: &String| {
            let value = stage.server.get(key).unwrap_or_default();
            String::from_utf8_lossy(&value).contains("COMPLETED")
        };
        if keys.len() == 4 && keys.iter().all(is_completed) {
            return keys[3].clone();
        }
    }
    panic!("the probe does not have its first four records");
}

/// Rule: only values of the schema and idemctl's own text are removed.
/// Revert: if any value is removed, that of another program is lost.
#[test]
fn a_value_of_another_program_stays_and_is_named() {
    let stage = Stage::new("express", None);
    let child = started(&stage, &["--only", "replay-status"]);
    let key = last_of_the_first(&stage);
    stage.server.set(&key, "of another program", 600_000);
    let run = child.ends().exits(0);
    assert_eq!(stage.server.keys(), std::slice::from_ref(&key), "{}", run.all());
    assert_eq!(stage.server.get(&key).as_deref(), Some(&b"of another program"[..]));
    let why = "its value is not one of the schema";
    let kept = json!([{ "key": key.strip_prefix("idem:").unwrap(), "why": why }]);
    assert_eq!(run.json()["records"]["kept"], kept, "{}", run.all());
}

/// Rule: a record that is there again after its removal is named.
/// Revert: without the second look, the probe says that all were removed.
#[test]
fn a_record_that_is_written_again_is_named() {
    let stage = Stage::new("express", None);
    // This check uses many keys, so the removal continues for a while after it removed this one.
    let child = started(&stage, &["--only", "key-long"]);
    let key = last_of_the_first(&stage);
    let began = Instant::now();
    while stage.server.get(&key).is_some() && began.elapsed() < Duration::from_secs(30) {}
    stage.server.set(&key, RESULT, 600_000);
    let run = child.ends();
    assert_eq!(stage.server.keys(), std::slice::from_ref(&key), "{}", run.all());
    let why = "it was written after idemctl had removed it";
    let kept = json!([{ "key": key.strip_prefix("idem:").unwrap(), "why": why }]);
    assert_eq!(run.json()["records"]["kept"], kept, "{}", run.all());
}
