//! Programs that play the provider, and what the tests ask of a server.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::{Run, Server};

/// A lock of express.
pub const LOCK: &str = r#"{"status":"IN_PROGRESS"}"#;

/// Answers by the beginning of the key: `done…`, `not…`, or else unknown.
pub const BY_KEY: &str = r#"
case "$question" in
*'"key":"done'*) echo '{"outcome":"done","status":201,"headers":{"Content-Type":"application/json"},"body":{"id":"ch_1"}}' ;;
*'"key":"not'*) echo '{"outcome":"not-done"}' ;;
*) echo '{"outcome":"unknown","reason":"the provider is silent"}' ;;
esac
"#;

/// Writes a program that reads the question first; gives its path.
pub fn program(folder: &Path, script: &str) -> String {
    raw_program(folder, &format!("question=$(cat)\n{script}"))
}

/// Writes a program; gives its path.
pub fn raw_program(folder: &Path, script: &str) -> String {
    let file = folder.join("ask");
    executable(&file, &format!("cd {}\n{script}", folder.display()));
    file.display().to_string()
}

/// Writes a script of the shell that can be executed.
pub fn executable(file: &Path, script: &str) {
    fs::write(file, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A lock of the reference that was created so long ago.
pub fn reference(created_ago_ms: u64) -> String {
    let created = now_ms() - created_ago_ms;
    format!(r#"{{"state":"in-progress","owner":"w-1","fingerprint":"f","created_at":{created}}}"#)
}

pub fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// The words of a run that asks `ask` and changes what it finds.
pub fn words<'a>(ask: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["reconcile", "--ask", ask, "--older-than", "1m", "--yes"];
    if !more.contains(&"--confirm-after") {
        words.extend(["--confirm-after", "0s"]);
    }
    if !more.contains(&"--schema") {
        words.extend(["--schema", "express"]);
    }
    words.extend(more);
    words
}

/// Runs it with the program that answers by the key.
pub fn run(server: &Server, more: &[&str]) -> Run {
    let ask = program(server.folder(), BY_KEY);
    server.idemctl(&words(&ask, more))
}

/// The state of a key, as idemctl reads it.
pub fn state(server: &Server, schema: &str, key: &str) -> String {
    let run = server.idemctl(&["inspect", key, "--schema", schema, "-o", "json"]);
    if run.code == 1 {
        return "absent".to_owned();
    }
    run.json()["records"][0]["state"].as_str().unwrap().to_owned()
}

pub fn pttl(server: &Server, key: &str) -> i64 {
    server.send(&[b"PTTL", key.as_bytes()])
}

/// The `what` of each line of the audit log about this key.
pub fn logged(server: &Server, key: &str) -> Vec<String> {
    let mut all = Vec::new();
    for line in server.audited() {
        if line["key"] == key {
            all.push(line["what"].as_str().unwrap().to_owned());
        }
    }
    all
}

/// The report of one lock.
pub fn lock<'a>(report: &'a serde_json::Value, key: &str) -> &'a serde_json::Value {
    let locks = report["locks"].as_array().unwrap();
    locks.iter().find(|lock| lock["key"] == key).unwrap_or_else(|| panic!("no {key}: {report}"))
}
