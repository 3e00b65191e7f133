//! The progress line, on a terminal of the test's own: it never covers a question, or what another program prints.

use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::support::terminal::{ends, on_terminal};
use crate::support::{DONE, FOREVER, PENDING, Server, binary};

/// Longer than a progress line needs to be painted again.
const PAINTS: Duration = Duration::from_millis(400);

fn protected(server: &Server) -> String {
    let config = server.folder().join("protected.toml");
    let says = format!("url = \"{}\"\nprotected = true", server.url());
    std::fs::write(&config, format!("[contexts.prod]\n{says}\n")).unwrap();
    config.display().to_string()
}

/// Rule: a question is the last line of the terminal until it is answered, and so is the question after a wrong answer.
#[test]
fn no_progress_line_is_painted_over_a_question() {
    let keys = [
        ("idempotency:done", DONE, 3_600_000),
        ("idempotency:stuck", PENDING, FOREVER),
        ("idempotency:held", PENDING, 300_000),
    ];
    let server = Server::holding(&keys);
    let held = ["held", "--for", "1h", "--schema", "go-middleware", "--yes"];
    server.idemctl(&[&["extend"], &held[..]].concat()).exits(0);
    let backup = server.folder().join("backup.jsonl").display().to_string();
    server.idemctl(&["purge", "--match", "done", "--all", "--yes", "--backup", &backup]).exits(0);
    let log = server.idemctl(&["log", "-o", "jsonl"]).json_lines();
    let extended = log.iter().find(|operation| operation["command"] == "extend").unwrap();
    let extended = extended["op"].as_str().unwrap();
    let config = protected(&server);
    for words in [
        &["undo"][..],
        &["undo", extended],
        &["restore", &backup],
        &["purge", "--all", "--match", "held", "--state", "in-progress"],
        &["sweep", "--orphaned"],
        &["force-unlock", "stuck"],
    ] {
        let words = [&["--config", &config, "--context", "prod"], words].concat();
        let mut session = on_terminal(server.command(), &words);
        session.exp_string("to continue").unwrap();
        let mut shown = String::new();
        for typed in ["no\r", "\r"] {
            sleep(PAINTS);
            session.send(typed).unwrap();
            session.flush().unwrap();
            if typed == "no\r" {
                shown += &session.exp_string("to continue").unwrap();
            }
        }
        shown += &ends(session).exits(2).text();
        assert!(
            !shown.contains("Redis keys ") && !shown.contains("keys scanned"),
            "{words:?}: {shown:?}"
        );
    }
}

/// Rule: a program that reads the data shares the terminal with the progress line.
#[test]
fn no_progress_line_stays_when_the_data_goes_to_a_pipe() {
    let server = Server::holding(&[("idempotency:done", DONE, 3_600_000)]);
    let mut shell = Command::new("sh");
    shell
        .env_clear()
        .env("HOME", server.folder())
        .env("IDEMCTL_URL", server.url())
        .env("PATH", "/usr/bin:/bin");
    let line = format!("{} list -o jsonl --rate 1 | cat", binary().display());
    let run = ends(on_terminal(shell, &["-c", &line])).exits(0);
    let shown = run.text();
    let (data, progress) = (shown.find("\"schema\"").unwrap(), shown.rfind("keys scanned"));
    assert!(progress.is_none_or(|at| at < data), "{shown:?}");
}
