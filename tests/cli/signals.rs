//! A session that ends in the middle of a command, and a termination: what was changed by then is in the audit log.

use std::fs::File;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use crate::support::proxy::{Hook, hooked_socket, says};
use crate::support::{DONE, PENDING, Running, Runs, Server, Signal, backup, idemctl, until};

/// Batches of every command that is signalled below.
const MANY: usize = 1_500;

/// The binary by a way to the server on which each script takes a while, so that a signal comes in the middle of many.
fn slowly(server: &Server, words: &[&str]) -> Command {
    let socket = hooked_socket(server, |sent| {
        if says(sent, "EVAL") {
            sleep(Duration::from_millis(100));
        }
        Hook::Pass
    });
    let mut command = idemctl(server.folder());
    command.args(["--timeout", "20s", "-s"]).arg(socket).args(words);
    command
}

fn noted(server: &Server, command: &str) -> usize {
    server.audited().iter().filter(|entry| entry["command"] == command).count()
}

fn purged() -> Server {
    let server =
        Server::filled((0..MANY).map(|number| (format!("idempotency:{number}"), DONE)), 80_000_000);
    server.idemctl(&["purge", "--all", "--schema", "go-middleware", "--yes"]).exits(0);
    assert_eq!(server.size(), 0);
    server
}

/// Signals the command once it has changed something; how many Redis keys it changed by its end is in the log.
fn ends_in_good_order(server: &Server, words: &[&str], signal: Signal) {
    let before = server.size();
    let changed = || server.size().abs_diff(before);
    let child = slowly(server, words).start();
    until("something is changed", || changed() > 0);
    child.signal(signal);
    let run = child.ends().exits(130);
    assert!((1..MANY).contains(&changed()), "{}: {}", changed(), run.all());
    assert_eq!(noted(server, words[0]), changed(), "{}", run.all());
}

const ENDS: [Signal; 3] = [Signal::TERM, Signal::HUP, Signal::QUIT];

#[test]
fn a_sweep_that_is_ended_has_noted_what_it_removed() {
    for signal in ENDS {
        let server =
            Server::filled((0..MANY).map(|number| (format!("idempotency:{number}"), PENDING)), 0);
        ends_in_good_order(&server, &["sweep", "--orphaned", "--grace", "0s", "--yes"], signal);
    }
}

#[test]
fn a_restore_that_is_ended_has_noted_what_it_brought_back() {
    for signal in ENDS {
        let server = purged();
        let file = backup::only(&server).display().to_string();
        ends_in_good_order(&server, &["restore", &file, "--yes"], signal);
    }
}

#[test]
fn an_undo_that_is_ended_has_noted_what_it_took_back() {
    for signal in ENDS {
        ends_in_good_order(&purged(), &["undo", "--yes"], signal);
    }
}

/// Rule: locks that are named, and confirmed, are changed and noted to the last, whatever signal comes.
#[test]
fn named_locks_are_unlocked_and_noted_to_the_last() {
    for signal in ENDS {
        let server =
            Server::filled((0..500).map(|number| (format!("idempotency:{number}"), PENDING)), 0);
        let keys: String = (0..500).map(|number| format!("{number}\n")).collect();
        let file = server.folder().join("keys");
        std::fs::write(&file, keys).unwrap();
        let words = ["force-unlock", "-", "--schema", "go-middleware", "--yes"];
        let child = slowly(&server, &words).start_with(File::open(file).unwrap().into());
        until("something is unlocked", || server.size() < 500);
        child.signal(signal);
        child.ends().exits(0).says("Unlocked 500 locks");
        assert_eq!((server.size(), noted(&server, "force-unlock")), (0, 500));
    }
}
