//! A server that stops or is cut off in the middle of much: how far it got is said, the rest can be done later.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::backup;
use crate::support::fault::{self, Fault};
use crate::support::proxy::{Hook, hooked_socket, says};
use crate::support::{PENDING, Run, Running, Runs, Server, Signal, idemctl, signal, until};

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
    let gone = (0..LOCKS)
        .map(|index| format!("idempotency:{index}").into_bytes())
        .filter(|key| !left.contains(key));
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
        until("something is removed", || {
            redis::cmd("DBSIZE").query::<usize>(&mut connection).unwrap() < LOCKS
        });
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
    // The replies end in the second of three batches, each of which has five replies of 128 bytes.
    for fault in [Fault::CutRequests(all[0] * 4 / 5), Fault::CutReplies(all[1] - 960)] {
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

/// Rule: exit status 5 says that nothing was sent, and 6 that nothing was changed. After the first hundred locks neither is
/// true any more.
#[test]
fn an_error_after_the_first_locks_is_told_apart_from_one_before() {
    for (at, refuses, code) in [(1, false, 3), (2, true, 3), (1, true, 6)] {
        let server = full();
        let calls = AtomicUsize::new(0);
        let socket = hooked_socket(&server, move |sent| {
            let is_the_one =
                says(sent, "$6\r\nUNLINK\r\n") && calls.fetch_add(1, Ordering::SeqCst) + 1 == at;
            match is_the_one {
                true if refuses => {
                    Hook::Answer(b"-BUSY Redis is busy running a script.\r\n".to_vec())
                }
                true => Hook::Lose,
                false => Hook::Pass,
            }
        });
        let keys: String = (0..250).map(|index| format!("{index}\n")).collect();
        let words = ["force-unlock", "-", "--schema", "go-middleware", "--yes"];
        let mut command = idemctl(server.folder());
        command.args(["--timeout", "20s", "-s"]).arg(&socket).args(words);
        let run = command.fed(keys.as_bytes()).exits(code);
        let gone = LOCKS - left(&server).len();
        assert_eq!(gone, if code == 3 { 100 } else { 0 }, "{}", run.all());
        assert_eq!(
            (run.stderr.contains("100 of 250 locks unlocked"), server.audited().len()),
            (code == 3, gone)
        );
    }
}
