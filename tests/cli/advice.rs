//! The commands that advice names: each is one that can be done.

use std::process::Command;

use crate::support::{FOREVER, Runs, Server, binary};

/// Rule: what `inspect` advises is not refused. Each command between backticks is tried as a dry run.
#[test]
fn no_advice_is_a_command_that_is_refused() {
    let server = Server::holding(&[
        ("idempotency:older-held", "in-progress", 60_000),
        ("idempotency:older-done", "completed", FOREVER),
        ("idem:stuck", r#"{"status":"IN_PROGRESS"}"#, FOREVER),
        ("idem:odd", "{odd", FOREVER),
        ("idem:lock:a", "1", FOREVER),
        ("idem:done:a", "1", 60_000),
    ]);
    let keys = ["older-held", "older-done", "stuck", "a"];
    let mut tried = 0;
    for key in keys {
        let json = server.idemctl(&["inspect", key, "-o", "json"]).json();
        for record in json["records"].as_array().unwrap() {
            for finding in record["findings"].as_array().unwrap() {
                let advice = finding["advice"].as_str().unwrap();
                let commands = advice.split('`').filter_map(|part| part.strip_prefix("idemctl "));
                for command in commands {
                    let line = format!("{} {command} --dry-run", binary().display());
                    let mut shell = Command::new("sh");
                    shell
                        .env_clear()
                        .env("HOME", server.folder())
                        .args(["-c", &line])
                        .run()
                        .exits(0);
                    tried += 1;
                }
            }
        }
    }
    assert!(tried >= 3, "{tried}");
}

/// Rule: no hint names a command that refuses. The lock is also the job, so that only the library's
/// own tools remove it.
#[test]
fn no_hint_unlocks_a_lock_that_is_also_the_job() {
    let server = Server::start();
    server.send::<()>(&[
        b"HSET",
        b"bull:pay:a",
        b"name",
        b"x",
        b"data",
        b"{}",
        b"opts",
        b"{}",
        b"timestamp",
        b"1764000000000",
    ]);
    let run = |words: &[&str]| server.idemctl(&[words, &["--schema", "bullmq-job"]].concat());
    run(&["force-unlock", "pay:a", "--yes"]).exits(2).says("the job with its data");
    for command in ["begin", "release"] {
        let hint = "no command removes it: its Redis key also holds the job";
        run(&[command, "pay:a"]).exits(2).says(hint);
    }
    let purge = run(&["purge", "pay:a", "--dry-run"]).exits(3);
    purge.says("not selected; `force-unlock` does not remove it: its Redis key also holds");
    assert!(!purge.stderr.contains("to remove a lock"), "{}", purge.stderr);
    server.send::<()>(&[b"HSET", b"bull:pay:a", b"returnvalue", b"1"]);
    server.send::<()>(&[b"HSET", b"bull:pay:a", b"finishedOn", b"1764000000001"]);
    run(&["release", "pay:a"]).exits(2).says("to remove a result, use `idemctl");
}

/// A result of `express` without its last bracket.
const DONE: &str = r#"{"status":"COMPLETED","statusCode":200,"headers":{},"body":"x""#;

/// Rule: the hints of `release` name the command that removes the record, with the options that it
/// needs.
#[test]
fn release_hints_at_the_command_that_removes_the_record() {
    let server = Server::holding(&[
        ("idem:r", format!("{DONE}}}"), 60_000),
        ("idem:result:x", r#"{"statusCode":201,"body":"x","y":1}"#.to_owned(), 60_000),
        ("idem:bad", "{odd".to_owned(), 60_000),
    ]);
    let run = |key: &str| server.idemctl(&["release", key]).exits(2);
    run("express/r").says("to remove a result, use `idemctl").says("purge express/r`");
    run("event-driven/x").says("unrecognised: not a value of event-driven");
    let bad = run("express/bad");
    bad.says("to remove a lock, use `idemctl").says("force-unlock express/bad`");
    let dry = |words: &[&str]| server.idemctl(words);
    dry(&["purge", "express/r", "--dry-run"]).exits(0);
    dry(&["purge", "event-driven/x", "--dry-run"]).exits(3);
    dry(&["force-unlock", "express/bad", "--dry-run"]).exits(0);
}
