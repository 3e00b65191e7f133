//! A server that stops or is cut off in the middle of much: how far it got is said, the rest can be done later.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use crate::support::backup;
use crate::support::fault::{self, Fault};
use crate::support::{PENDING, Run, Running, Runs, Server, Signal, signal, until};

const LOCKS: usize = 1_500;

const REMOVING: &[&[&str]] = &[
    &["sweep", "--orphaned", "--yes", "--grace", "0", "--backup", "b"],
    &["purge", "--state", "in-progress", "--yes", "--all", "--backup", "b"],
];

fn full() -> Server {
    Server::filled((0..LOCKS).map(|index| (format!("idempotency:{index}"), PENDING)), 0)
}

fn left(server: &Server) -> BTreeSet<Vec<u8>> {
    server.send(&[b"KEYS", b"*"])
}

fn held(server: &Server) -> BTreeSet<Vec<u8>> {
    backup::held(&server.folder().join("b"))
}

fn is_gone_or_held(server: &Server, run: &Run) {
    let (left, held) = (left(server), held(server));
    let gone = (0..LOCKS).map(|index| format!("idempotency:{index}").into_bytes()).filter(|key| !left.contains(key));
    let gone: BTreeSet<_> = gone.collect();
    assert!(gone.is_subset(&held), "{} gone, {} held: {}", gone.len(), held.len(), run.all());
}

/// Bytes of requests and of replies that the command takes as a whole.
fn whole(words: &[&str]) -> [usize; 2] {
    let server = full();
    let (port, passed) = fault::way(&server, Fault::CutReplies(usize::MAX));
    server.at(port, words).exits(0);
    assert!(left(&server).is_empty());
    [0, 1].map(|direction| passed[direction].load(Ordering::SeqCst))
}

#[test]
fn a_removal_that_is_cut_off_says_how_far_it_got_and_the_next_run_does_the_rest() {
    for words in REMOVING {
        let [requests, replies] = whole(words);
        for fault in [Fault::CutRequests(requests * 4 / 5), Fault::CutReplies(replies * 4 / 5)] {
            let server = full();
            let (port, _) = fault::way(&server, fault);
            let run = server.at(port, words);
            assert!(run.code == 3 || run.code == 7, "{}", run.all());
            run.says("hint: ").says(format!("127.0.0.1:{port}"));
            is_gone_or_held(&server, &run);
            assert!(!left(&server).is_empty());
            server.idemctl(&[&words[..words.len() - 2], &["--backup", "c"]].concat()).exits(0);
            assert!(left(&server).is_empty());
        }
    }
}

#[test]
fn a_server_that_stops_while_records_are_removed_loses_none_when_it_goes_on() {
    for words in REMOVING {
        let server = full();
        let child = server.command().args(["--timeout", "3s"]).args(*words).start();
        let mut connection = server.connect();
        until("something is removed", || redis::cmd("DBSIZE").query::<usize>(&mut connection).unwrap() < LOCKS);
        signal(server.pid(), Signal::STOP);
        let run = child.ends();
        signal(server.pid(), Signal::CONT);
        // At the very end there may have been nothing more to ask.
        assert!([0, 3, 7].contains(&run.code), "{}", run.all());
        assert!(run.code == 0 || run.stderr.contains("did not answer within 3s"), "{}", run.all());
        thread::sleep(Duration::from_millis(50));
        is_gone_or_held(&server, &run);
    }
}

#[test]
fn a_restore_that_is_cut_off_says_how_far_it_got_and_the_next_run_does_the_rest() {
    let server = full();
    server.idemctl(REMOVING[1]).exits(0);
    let (port, passed) = fault::way(&server, Fault::CutReplies(usize::MAX));
    server.at(port, &["restore", "b", "--yes"]).exits(0);
    let all = [0, 1].map(|direction| passed[direction].load(Ordering::SeqCst));
    for fault in [Fault::CutRequests(all[0] * 4 / 5), Fault::CutReplies(all[1] * 4 / 5)] {
        server.send::<()>(&[b"FLUSHALL"]);
        let (port, _) = fault::way(&server, fault);
        let run = server.at(port, &["restore", "b", "--yes"]);
        assert!(run.code == 3 || run.code == 7, "{}", run.all());
        run.says(format!("of {LOCKS} Redis keys")).says("hint: ");
        let back = left(&server).len();
        assert!(back > 0 && back < LOCKS, "{back}: {}", run.all());
        // What is back already is left as it is, which is told.
        server.idemctl(&["restore", "b", "--yes"]).exits(3);
        assert_eq!(left(&server).len(), LOCKS);
    }
}
