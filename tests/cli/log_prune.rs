//! `idemctl log prune` from the outside.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::audit_files::killed;
use crate::support::{DONE, PENDING, Server, at_once, audit, backup};

const PRUNE: [&str; 5] = ["log", "prune", "--older-than", "400d", "--yes"];

fn log_file(server: &Server) -> PathBuf {
    server.audit().join("log.jsonl")
}

/// Edits each line of the log; the time of each is years ago.
fn edit_log(server: &Server, edit: impl Fn(&mut Value)) {
    let text = fs::read_to_string(log_file(server)).unwrap();
    let lines = text.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line["at"] = "2020-01-01T00:00:00.000Z".into();
        edit(&mut line);
        format!("{line}\n")
    });
    fs::write(log_file(server), lines.collect::<String>()).unwrap();
}

fn commands(server: &Server) -> Vec<String> {
    let run = server.idemctl(&["log", "-o", "jsonl"]).exits(0);
    run.json_lines().iter().map(|line| line["command"].as_str().unwrap().to_owned()).collect()
}

/// A server with an old operation that has no backup.
fn extended() -> Server {
    let server = Server::holding(&[("idempotency:a", PENDING, 50_000)]);
    server.idemctl(&["extend", "a", "--for", "1h", "--yes"]).exits(0);
    edit_log(&server, |_| {});
    server
}

/// Rule: the deletion asks, and is an operation itself.
#[test]
fn old_operations_go_after_a_question() {
    let server = extended();
    let details = server.details().remove(0);
    server.idemctl(&PRUNE[..4]).exits(2).shows("extend");
    let dry = server.idemctl(&[&PRUNE[..4], &["--dry-run"]].concat()).exits(0);
    dry.says("nothing was deleted; 1 operation would be deleted").shows("extend");
    assert!(details.exists());
    server.idemctl(&PRUNE).exits(0).says("Deleted 1 operation.");
    assert!(!details.exists());
    assert_eq!(commands(&server), ["log prune"]);
    server.idemctl(&PRUNE).exits(0).says("No operation was found in the audit log");
    server.idemctl(&["undo", "--yes"]).exits(1).says("no operation on this server");
    server.idemctl(&["config", "check"]).exits(0);
}

/// Rule: what somebody may still need stays. Revert: without one of the conditions, its operation goes.
#[test]
fn operations_that_did_not_end_or_can_be_undone_stay() {
    let server = extended();
    for (key, backup) in [("b", "kept"), ("c", "gone")] {
        server.set(&format!("idempotency:{key}"), DONE, 50_000);
        server.idemctl(&["purge", key, "--yes", "--backup", backup]).exits(0);
    }
    fs::remove_file(server.folder().join("gone")).unwrap();
    server.idemctl(&["extend", "a", "--for", "2h", "--yes"]).exits(0);
    server.idemctl(&["extend", "a", "--for", "3h", "--yes"]).exits(0);
    let text = fs::read_to_string(log_file(&server)).unwrap();
    let lines: Vec<_> = text.lines().collect();
    // The last but one has an unknown outcome, and the last one has no end.
    let (last, lines) = lines.split_last().unwrap();
    assert!(last.contains("\"mark\":\"end\""));
    fs::write(log_file(&server), lines.join("\n") + "\n").unwrap();
    let unknown: Value = serde_json::from_str(lines[lines.len() - 2]).unwrap();
    edit_log(&server, |line| {
        if line["op"] == unknown["op"] && line["mark"] == "end" {
            line["totals"]["unknown"] = json!(1);
        }
    });
    server.set("idempotency:d", DONE, 50_000);
    server.idemctl(&["purge", "d", "--yes"]).exits(0);
    server.idemctl(&PRUNE).exits(0).says("Deleted 2 operations.");
    assert_eq!(commands(&server), ["extend", "purge", "extend", "purge", "log prune"]);
    fs::remove_file(server.folder().join("kept")).unwrap();
    server.idemctl(&PRUNE).exits(0).says("Deleted 1 operation.");
    fs::remove_file(backup::only(&server)).unwrap();
    server.idemctl(&PRUNE).exits(0).says("No operation was found in the audit log");
}

/// Rule: no line of another run is lost while the log is rewritten. Revert: if a run appends to the file that it opened
/// before it waited, operations are missing.
#[test]
fn operations_of_other_runs_are_not_lost() {
    let keys: Vec<_> = (0..24).map(|number| format!("k{number}")).collect();
    let entries = keys.iter().map(|key| (format!("idempotency:{key}"), PENDING));
    let server = Server::filled(entries, 50_000);
    server.idemctl(&["extend", "k0", "--for", "1h", "--yes"]).exits(0);
    edit_log(&server, |_| {});
    at_once(&keys[1..], |key| {
        server.idemctl(&["extend", key, "--for", "1h", "--yes"]).exits(0);
        server.idemctl(&["log", "prune", "--older-than", "1ms", "--yes"]).exits(0);
        server.idemctl(&["force-unlock", key, "--yes"]).exits(0);
    });
    // An operation that was not deleted has both lines and its details.
    server.idemctl(&["config", "check"]).exits(0);
    let unlocked = commands(&server).iter().filter(|command| *command == "force-unlock").count();
    assert_eq!(unlocked, keys.len() - 1);
}

/// Rule: a run that is killed while it rewrites the log loses no operation, and the next one deletes what is left.
#[test]
fn a_killed_run_is_repeated() {
    let server = extended();
    let text = fs::read_to_string(log_file(&server)).unwrap();
    if killed(&server, &PRUNE, &log_file(&server), "/rename").is_none() {
        return;
    }
    assert!(audit::text(&server.audit()).starts_with(&text));
    assert_eq!(commands(&server), ["log prune", "extend"]);
    server.idemctl(&PRUNE).exits(0).says("Deleted 1 operation.");
    assert_eq!(commands(&server), ["log prune", "log prune"]);
}

#[test]
fn the_sizes_of_both_folders_are_shown() {
    let server = extended();
    let shown = server.idemctl(&["config", "show"]).exits(0).text();
    let size = |name: &str| shown.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(size("audit ").contains("KiB)") && size("backups ").contains("(0 B)"), "{shown}");
}
