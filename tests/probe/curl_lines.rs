//! The curl lines that a failure prints, executed with a shell.

use std::process::Command;

use crate::stage::{PAYMENT, Stage};
use crate::support::probe_service::Variant;
use crate::support::{Home, Run};

/// The lines that repeat a failed check.
#[track_caller]
fn lines_of(run: &Run, id: &str) -> String {
    let document = run.json();
    let checks = document["checks"].as_array().unwrap_or_else(|| panic!("{}", run.all()));
    let check = checks.iter().find(|check| check["id"] == id).unwrap();
    assert_eq!(check["verdict"], "fail", "{}", run.stderr);
    let lines: Vec<_> =
        check["curl"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
    lines.join("\n")
}

/// Executes the lines. Returns the status lines of all answers, sorted.
#[track_caller]
fn execute(lines: &str) -> Vec<String> {
    let output = Command::new("bash")
        .args(["-c", lines])
        .env("AUTHORIZATION", "Bearer one")
        .env("AUTHORIZATION_2", "Bearer two")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // A body may end without a line end.
    let answers = text.split("HTTP/1.1 ").skip(1);
    let mut statuses: Vec<_> = answers.map(|answer| answer[..3].to_owned()).collect();
    statuses.sort();
    assert!(!statuses.is_empty(), "{lines}\n{text}{}", String::from_utf8_lossy(&output.stderr));
    statuses
}

#[test]
fn the_lines_of_a_failure_repeat_it() {
    let strict = ["--profile", crate::stage::STRICT, "--rounds", "1", "--concurrency", "10"];
    for (variant, id, statuses) in [
        (Variant::IgnoresPayload, "mismatch-payload", &["201", "201", "201"][..]),
        (Variant::AnyCaller, "mismatch-caller", &["201", "201", "201"]),
        (Variant::ReplaysAnotherStatus, "replay-status", &["200", "201"]),
        (Variant::AcceptsMissingKey, "key-missing", &["201"]),
    ] {
        let stage = Stage::new("express", Some(variant));
        let run = stage.probe(&[&strict[..], &["--only", id]].concat()).exits(1);
        let lines = lines_of(&run, id);
        assert_eq!(execute(&lines), statuses, "{lines}");
    }
}

#[test]
fn the_lines_of_a_race_send_all_its_requests() {
    let stage = Stage::new("express", Some(Variant::NoLock));
    let words = ["--rounds", "1", "--concurrency", "10"];
    for id in ["concurrent-one-effect", "concurrent-payloads"] {
        let run = stage.probe(&[&words[..], &["--only", id]].concat()).exits(1);
        let before = stage.service.effects();
        let lines = lines_of(&run, id);
        let statuses = execute(&lines);
        let sent = if id == "concurrent-payloads" { 11 } else { 10 };
        assert_eq!(statuses.len(), sent, "{lines}");
        assert!(stage.service.effects() > before + 1, "{lines}: {statuses:?}");
    }
}

/// Rule: a line that lacks a credential sends nothing, because it would be a request of another caller.
/// Revert: with `$AUTHORIZATION`, curl sends an empty header, and the service executes.
#[test]
fn lines_without_their_credentials_send_nothing() {
    let stage = Stage::new("express", Some(Variant::AcceptsMissingKey));
    let run = stage.probe(&["--only", "key-missing"]).exits(1);
    let lines = lines_of(&run, "key-missing");
    let before = stage.service.effects();
    for shell in ["sh", "bash"] {
        let command = |line: &str| {
            let output = Command::new(shell).args(["-c", line]).output().unwrap();
            String::from_utf8_lossy(&output.stderr).into_owned()
        };
        let said = command(&lines);
        assert!(said.contains("AUTHORIZATION: parameter"), "{shell}: {said}");
        assert_eq!(stage.service.effects(), before, "{shell}: {lines}");
    }
    assert_eq!(execute(&lines), ["201"]);
}

#[test]
fn a_dry_run_prints_every_request() {
    let stage = Stage::new("express", None);
    let url = stage.service.url("/payments");
    let shown = |only: &str| {
        let words = ["probe", &url, "-d", PAYMENT, "--dry-run", "--only", only];
        let text = Home::with("").run(&words).exits(0).text();
        let at = text.find(&format!("# {only}")).unwrap();
        (text[..at].to_owned(), text[at..].to_owned())
    };
    let (first, replay) = shown("replay-status");
    assert!(first.contains("# first requests"), "{first}");
    // One, three at the same time, and a retry.
    assert_eq!(execute(&first), ["201"; 5]);
    assert_eq!(execute(&replay), ["201"; 2]);
    assert_eq!(stage.service.effects(), 5);
    let (_, keys) = shown("concurrent-keys");
    assert_eq!(execute(&keys), ["201"; 20], "{keys}");
    assert_eq!(stage.service.effects(), 25);
    let (_, payloads) = shown("concurrent-payloads");
    assert_eq!(execute(&payloads).len(), 21, "{payloads}");
    assert_eq!(payloads.matches("curl ").count(), 21, "each request has a line: {payloads}");
}

#[test]
fn a_body_that_begins_with_at_is_not_read_from_a_file() {
    let words = ["probe", "http://127.0.0.1:1/", "-d", "{\"a\":\"@x\"}", "--dry-run"];
    Home::with("").run(&words).exits(0).shows("--data-raw '{\"a\":\"@x\"}'");
}
