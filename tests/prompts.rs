//! What is asked on a terminal, from the outside: a terminal of the test's own, keys pressed as a person does.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod support;

use rexpect::process::WaitStatus;
use rexpect::session::{PtySession, spawn_command};

use support::Server;

const DONE: &str = r#"{"status":"COMPLETED","code":201,"headers":{},"body":""}"#;
const PENDING: &str = r#"{"status":"PENDING"}"#;

/// Longer than anything takes, in milliseconds.
const LIMIT: u64 = 20_000;

/// A result, and a lock that never expires.
fn seeded() -> Server {
    let server = Server::start();
    server.set("idempotency:done", DONE, 3_600_000);
    server.send::<()>(&[b"SET", b"idempotency:stuck", PENDING.as_bytes()]);
    server
}

/// The binary on this server and on a terminal.
fn on_terminal(server: &Server, words: &[&str]) -> PtySession {
    let mut command = server.command();
    command.args(words).env("TERM", "xterm");
    spawn_command(command, Some(LIMIT)).unwrap()
}

/// Waits for the question, presses keys, and gives what is shown after and the exit code.
#[track_caller]
fn answered(mut session: PtySession, question: &str, keys: &str) -> (String, i32) {
    session.exp_string(question).unwrap();
    session.send(keys).unwrap();
    session.flush().unwrap();
    let shown = session.exp_eof().unwrap();
    let WaitStatus::Exited(_, code) = session.process().wait().unwrap() else { panic!("killed: {shown}") };
    (shown, code)
}

fn is_there(server: &Server, key: &str) -> bool {
    server.get(key).is_some()
}

#[test]
fn a_purge_goes_ahead_when_the_servers_name_is_typed_and_only_then() {
    let server = seeded();
    let name = format!("{}/0", server.socket().display());
    let purge = || on_terminal(&server, &["purge", "--all"]);
    for typed in ["\r", "y\r", "yes\r", "localhost\r"] {
        let (shown, code) = answered(purge(), "to go ahead", typed);
        assert_eq!(code, 2, "{shown}");
        assert!(shown.contains("not confirmed; nothing was changed"), "{shown}");
    }
    assert!(is_there(&server, "idempotency:done"));
    let (shown, code) = answered(purge(), "Purge this record?", &format!("{name}\r"));
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("1 of 1 records purged; backup: "), "{shown}");
    assert!(!is_there(&server, "idempotency:done"));
}

#[test]
fn a_lock_is_released_on_yes_and_stays_on_no() {
    for words in [&["sweep", "--orphaned", "--grace", "0"][..], &["force-unlock", "stuck"]] {
        let server = seeded();
        for no in ["n", "\r"] {
            let (shown, code) = answered(on_terminal(&server, words), "[y/N]", no);
            assert_eq!(code, 2, "{shown}");
        }
        assert!(is_there(&server, "idempotency:stuck"));
        let (shown, code) = answered(on_terminal(&server, words), "[y/N]", "y");
        assert_eq!(code, 0, "{shown}");
        assert!(!is_there(&server, "idempotency:stuck"));
    }
}

#[test]
fn ctrl_c_at_a_question_changes_nothing_and_leaves_the_cursor_visible() {
    let server = seeded();
    for words in [&["purge", "--all"][..], &["sweep", "--orphaned"], &["force-unlock", "stuck"]] {
        let (shown, code) = answered(on_terminal(&server, words), "(/", "\x03");
        assert_eq!(code, 130, "{words:?}: {shown}");
        assert!(shown.contains("nothing was changed"), "{words:?}: {shown}");
        let (hidden, visible) = (shown.rfind("\x1b[?25l"), shown.rfind("\x1b[?25h"));
        assert!(visible >= hidden, "{words:?}: {shown:?}");
    }
    assert!(is_there(&server, "idempotency:done") && is_there(&server, "idempotency:stuck"));
}
