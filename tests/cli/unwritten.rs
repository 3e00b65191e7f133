//! stdout that cannot be written: a pipe that nobody reads, a full disk. No change gets lost in it, and no verdict.

use std::fs::OpenOptions;
use std::process::{Child, Command, Stdio};

use crate::support::terminal::{answered, on_terminal};
use crate::support::{DONE, FOREVER, LOCK, PENDING, Run, Running as _, Server, binary};

/// Each of these removes or adds something.
const CHANGES: [&[&str]; 10] = [
    &["sweep", "--orphaned", "--grace", "1ms"],
    &["sweep", "--orphaned", "--grace", "1ms", "-o", "json"],
    &["force-unlock", "stuck"],
    &["force-unlock", "stuck", "other"],
    &["force-unlock", "stuck", "-o", "json"],
    &["extend", "held", "--for", "1h"],
    &["purge", "--all", "--max", "100"],
    &["purge", "--all", "-o", "json"],
    &["complete", "held", "--schema", "go-middleware", "--status", "201", "--body", "{}"],
    &["begin", "fresh", "--schema", "express"],
];

fn seeded() -> Server {
    let server = Server::holding(&[
        ("idempotency:done", DONE, 3_600_000),
        ("idempotency:held", PENDING, 20_000),
        ("idempotency:stuck", PENDING, FOREVER),
    ]);
    server.put("idempotency:other", PENDING);
    server
}

/// Runs it with a stdout whose reader is gone.
fn unread(command: &mut Command) -> Run {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    start(command, writer.into()).ends()
}

/// Runs it with a stdout on a full disk.
fn on_full_disk(command: &mut Command) -> Run {
    start(command, OpenOptions::new().write(true).open("/dev/full").unwrap().into()).ends()
}

fn start(command: &mut Command, stdout: Stdio) -> Child {
    command.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap()
}

/// What stands there: the names, the values, and which have an expiry beyond half an hour.
fn held(server: &Server) -> Vec<(String, Option<Vec<u8>>, bool)> {
    let held = |key: String| {
        let left: i64 = server.send(&[b"PTTL", key.as_bytes()]);
        (key.clone(), server.get(&key), left > 1_800_000)
    };
    server.keys().into_iter().map(held).collect()
}

#[test]
fn a_change_is_made_and_told_of_where_nobody_reads_stdout() {
    for words in CHANGES {
        let server = seeded();
        let before = held(&server);
        let run = unread(server.command().args(words).arg("--yes")).exits(3);
        run.says("error: done, but the report could not be written: Broken pipe");
        assert_ne!(held(&server), before, "{words:?}: {}", run.all());
        assert!(!server.audited().is_empty(), "{words:?}");
    }
}

/// Rule: what came before the change was not shown, so a full disk stops the change; afterwards it stops nothing.
#[test]
fn on_a_full_disk_the_exit_code_says_whether_a_change_was_made() {
    let mut made = 0;
    for words in CHANGES {
        let server = seeded();
        let before = held(&server);
        let run = on_full_disk(server.command().args(words).arg("--yes")).exits(3);
        let is_done = run
            .stderr
            .contains("error: done, but the report could not be written: No space left on device");
        assert_eq!(is_done, held(&server) != before, "{words:?}: {}", run.all());
        if !is_done {
            run.says("error: stdout cannot be written: No space left on device");
            assert!(server.audited().is_empty(), "{words:?}");
        }
        made += usize::from(is_done);
    }
    assert!(made > 2 && made < CHANGES.len(), "both ways were seen: {made}");
}

#[test]
fn what_is_brought_back_is_told_of_in_the_exit_code() {
    for (output, is_done) in [("json", true), ("table", false)] {
        let server = seeded();
        server.idemctl(&["purge", "done", "--yes"]).exits(0);
        let undo = || {
            let mut command = server.command();
            command.args(["undo", "--yes", "-o", output]);
            command
        };
        on_full_disk(&mut undo()).exits(3).says("No space left on device");
        assert_eq!(server.get("idempotency:done").is_some(), is_done, "{output}");
        if !is_done {
            unread(&mut undo())
                .exits(3)
                .says("done, but the report could not be written: Broken pipe");
            assert!(server.get("idempotency:done").is_some());
        }
    }
    let server = seeded();
    let file = server.folder().join("backup").display().to_string();
    server.idemctl(&["purge", "done", "--yes", "--backup", &file]).exits(0);
    on_full_disk(server.command().args(["restore", "--yes", &file]))
        .exits(3)
        .says("done, but the report");
    assert!(server.get("idempotency:done").is_some());
}

#[test]
fn no_verdict_is_yes_where_nobody_got_it() {
    let quiet = Server::holding(&[("idem:held", LOCK, 29_000)]);
    let list = quiet.folder().join("before.json");
    std::fs::write(&list, quiet.idemctl(&["list", "-o", "json"]).exits(0).stdout).unwrap();
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/lua/express");
    for words in [
        &["check"][..],
        &["inspect", "held"],
        &["diff", "-o", "json", list.to_str().unwrap()],
        &["schema", "check", schema],
        &["race", "--sandbox", "--schema", "express", "--rounds", "1", "--concurrency", "2"],
    ] {
        quiet.idemctl(words).exits(0);
        unread(quiet.command().args(words)).exits(3).says("be written: Broken pipe");
        on_full_disk(quiet.command().args(words)).exits(3).says("No space left on device");
    }
    let done = r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":{"id":1}}"#;
    let compared = Server::holding(&[("idem:done", done, 600_000)]);
    let words = ["duplicates", "--same", "/id"];
    compared.idemctl(&words).exits(0);
    unread(compared.command().args(words)).exits(3).says("be written: Broken pipe");
    on_full_disk(compared.command().args(words)).exits(3).says("No space left on device");
    // A verdict that is not yes stays, and is worse than a report that nobody got.
    let stuck = Server::holding(&[("idem:stuck", LOCK, FOREVER)]);
    unread(stuck.command().arg("check")).exits(2);
}

#[test]
fn what_only_shows_ends_quietly_where_nobody_reads_on() {
    let server = seeded();
    server.idemctl(&["purge", "done", "--yes"]).exits(0);
    for words in [
        &["list"][..],
        &["stats"],
        &["log"],
        &["backup", "list"],
        &["schema", "list"],
        &["config", "show"],
    ] {
        let run = unread(server.command().args(words)).exits(0);
        assert!(!run.stderr.contains("error"), "{words:?}: {}", run.all());
        on_full_disk(server.command().args(words))
            .exits(3)
            .says("error: stdout cannot be written: No space left");
    }
}

/// Rule: nobody says yes to what was not shown.
#[test]
fn nobody_is_asked_about_what_could_not_be_shown() {
    let server = seeded();
    let mut shell = Command::new("bash");
    shell
        .env_clear()
        .env("HOME", server.folder())
        .env("IDEMCTL_URL", server.url())
        .env("PATH", "/usr/bin:/bin");
    let line = format!(
        "{{ sleep 0.2; {} force-unlock stuck; echo \"ended with $?\" >&2; }} | true",
        binary().display()
    );
    answered(on_terminal(shell, &["-c", &line]), "cannot prompt", "").shows("ended with 2");
    assert!(server.get("idempotency:stuck").is_some());
}
