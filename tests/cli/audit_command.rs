//! The program of a context that gets the beginning and the end of each operation.

use std::fs;

use crate::support::{DONE, FOREVER, PENDING, Run, Server};

const KEY: &str = "idempotency:a";
const UNLOCK: [&str; 3] = ["force-unlock", "a", "--yes"];

/// The binary in a context with this audit command.
fn audited(server: &Server, command: &str, words: &[&str]) -> Run {
    server.in_context("here", &format!("audit_command = {command:?}"), words)
}

fn log(server: &Server) -> String {
    fs::read_to_string(server.audit().join("log.jsonl")).unwrap_or_default()
}

/// A program that takes the beginning of an operation, and nothing else.
const ONLY_BEGIN: &str = "grep -q begin";

#[test]
fn it_gets_what_the_local_log_gets_once_per_operation() {
    let server = Server::holding(&[(KEY, PENDING, FOREVER)]);
    server.fill((0..600).map(|number| (format!("idempotency:{number}"), DONE)), FOREVER);
    let file = server.folder().join("audited");
    let command = format!("cat >> {}", file.display());
    for words in [&UNLOCK[..2], &["purge", "--all"]] {
        audited(&server, &command, &[words, &["--dry-run"]].concat()).exits(0);
    }
    assert!(!file.exists());
    for words in [&UNLOCK[..], &["undo", "--yes"], &["purge", "--all", "--yes"]] {
        audited(&server, &command, words).exits(0);
    }
    let got = fs::read_to_string(&file).unwrap();
    assert_eq!(got.lines().count(), 6, "{got}");
    assert_eq!(got, log(&server));
    // A temporary local Redis is not the context's server.
    server.configure(&format!(
        "default_context = \"here\"\n[contexts.here]\nurl = \"{}\"\naudit_command = {command:?}\n",
        server.url()
    ));
    let begin = ["--sandbox", "begin", "new", "--schema", "express", "--yes"];
    server.unnamed(&begin).exits(0);
    assert_ne!(log(&server), got);
    assert_eq!(fs::read_to_string(&file).unwrap(), got);
}

/// Rule: where the program does not take the beginning, nothing is changed.
#[test]
fn without_the_beginning_nothing_is_changed_unless_the_context_permits_it() {
    let held = [
        (KEY, PENDING, 600_000),
        ("idempotency:b", DONE, FOREVER),
        ("idempotency:c", PENDING, 600_000),
    ];
    let server = Server::holding(&held);
    audited(&server, "true", &["extend", "c", "--for", "20m", "--yes"]).exits(0);
    audited(&server, "true", &["force-unlock", "c", "--yes"]).exits(0);
    let (before, keys) = (log(&server), server.keys());
    let fails = "echo no link >&2; exit 9";
    for words in [
        &UNLOCK[..],
        &["purge", "--all", "--yes"],
        &["undo", "--yes"],
        &["extend", "a", "--for", "20m", "--yes"],
        &["log", "prune", "--older-than", "1ms", "--yes"],
    ] {
        let run = audited(&server, fails, words).exits(2);
        run.says("the audit command failed: exit status 9: no link");
        assert_eq!((log(&server), server.keys()), (before.clone(), keys.clone()), "{words:?}");
    }
    audited(&server, "exec sleep 60", &UNLOCK).exits(2).says("no answer within 5s");
    assert!(server.get(KEY).is_some());
    let permits = format!("audit_command = {fails:?}\naudit_required = false");
    let run = server.in_context("here", &permits, &UNLOCK).exits(0);
    assert_eq!(run.stderr.matches("not audited").count(), 1, "{}", run.all());
    assert!(server.get(KEY).is_none());
}

#[test]
fn a_change_whose_end_it_does_not_take_is_in_the_local_log() {
    let server = Server::holding(&[(KEY, PENDING, FOREVER)]);
    for words in [&UNLOCK[..], &["undo", "--yes"]] {
        let before = server.get(KEY).is_some();
        let run = audited(&server, ONLY_BEGIN, words).exits(3);
        run.says("the change is not audited").says("exit status 1");
        assert_ne!(server.get(KEY).is_some(), before);
    }
    assert_eq!(log(&server).lines().count(), 4);
}

/// Rule: without a local log, the program still decides.
#[test]
fn a_run_without_a_local_log_is_audited() {
    let server = Server::holding(&[(KEY, PENDING, FOREVER)]);
    fs::create_dir_all(server.state("")).unwrap();
    fs::write(server.audit(), "a file in the way").unwrap();
    let file = server.folder().join("audited");
    let words = [&UNLOCK[..], &["--no-backup"]].concat();
    audited(&server, "exit 9", &words).exits(2);
    assert!(server.get(KEY).is_some());
    audited(&server, &format!("cat >> {}", file.display()), &words).exits(0);
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 2);
}

#[test]
fn the_command_is_shown_as_set() {
    let server = Server::start();
    let run = audited(&server, "send --token s3cret", &["config", "show"]).exits(0);
    assert!(!run.all().contains("s3cret"), "{}", run.all());
    run.shows("audit_command").shows("audit_required");
}
