//! Operations without an end: killed, interrupted, or still at work.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use super::{DONE, PENDING, pttl};
use crate::support::proxy::{Hook, hooked_socket, says};
use crate::support::{Run, Running, Runs, Server, Signal, backup, idemctl, signal, until};

const KEYS: usize = 750;

/// A server of which 750 records were purged.
fn purged() -> Server {
    let server = Server::start();
    server.fill((0..KEYS).map(|index| (format!("idempotency:{index}"), DONE)), 500_000);
    server.idemctl(&["purge", "--all", "--yes"]).exits(0);
    server
}

/// Runs idemctl, which gets this signal right before the server gets the first such request.
pub fn ended_by(
    server: &Server,
    words: &[&str],
    is_it: impl Fn(&[u8]) -> bool + Send + Sync + 'static,
    by: Signal,
) -> Run {
    let pid = Arc::new(AtomicU32::new(0));
    let known = Arc::clone(&pid);
    let way: PathBuf = hooked_socket(server, move |sent| {
        if is_it(sent) && known.load(Ordering::SeqCst) != 0 {
            signal(known.swap(0, Ordering::SeqCst), by);
            // It hears the signal before the reply.
            thread::sleep(Duration::from_millis(100));
        }
        Hook::Pass
    });
    let way = way.display().to_string();
    let child = idemctl(server.folder()).args([&["-s", &way], words].concat()).start();
    pid.store(child.id(), Ordering::SeqCst);
    child.ends()
}

fn restores(request: &[u8]) -> bool {
    says(request, "RESTORE")
}

fn extends(request: &[u8]) -> bool {
    says(request, "PEXPIREAT")
}

fn ops(server: &Server) -> Vec<serde_json::Value> {
    server.idemctl(&["log", "-o", "jsonl"]).exits(0).json_lines()
}

/// Rule: an undo that was cut short goes on, and is not taken back.
#[test]
fn an_interrupted_undo_goes_on() {
    let server = purged();
    let run = ended_by(&server, &["undo", "--yes"], restores, Signal::INT).exits(130);
    let purge = ops(&server)[0]["op"].as_str().unwrap().to_owned();
    run.says("Reverted 500 of 750")
        .says(format!("undo {purge}` with the same options to continue"));
    assert_eq!(server.size(), 500);
    let log = ops(&server);
    assert_eq!(
        (&log[0]["undone_by"], &log[0]["partly_undone_by"]),
        (&serde_json::Value::Null, &log[1]["op"])
    );
    assert_eq!(log[1]["state"], "interrupted");
    server.idemctl(&["log"]).shows("  partly undone  ").shows("interrupted");
    let run = server.idemctl(&["undo", "--yes"]).exits(3);
    run.says("did not finish").says("Reverted 250 of 750 Redis keys; 500 already present");
    assert_eq!(server.size(), KEYS);
    assert_eq!(ops(&server)[0]["undone_by"], ops(&server)[2]["op"]);
    // An undo that came to its end is taken back.
    server.idemctl(&["undo", "--yes"]).exits(0).says("Reverted 250 of 250");
    assert_eq!(server.size(), 500);
}

/// Rule: the same after SIGKILL, whatever the log tells of what came back.
#[test]
fn a_killed_undo_goes_on() {
    let server = purged();
    ended_by(&server, &["undo", "--yes"], restores, Signal::KILL);
    assert_eq!(ops(&server)[0]["state"], "unended");
    server.idemctl(&["undo", "--yes"]).says("did not finish");
    assert_eq!(server.size(), KEYS);
}

/// Rule: an undo of some records that was cut short does not become an undo of all of them.
#[test]
fn an_interrupted_undo_of_some_records_wants_them_named() {
    let server = purged();
    let some = ["undo", "--yes", "--only", "1", "--only", "2"];
    ended_by(&server, &some, restores, Signal::KILL);
    // The request that was sent before the kill arrives after it.
    until("both records are restored", || server.size() == 2);
    server.idemctl(&["undo", "--yes"]).exits(2).says("did not finish").says("the same --only");
    assert_eq!(server.size(), 2);
    server.idemctl(&some);
    assert_eq!(server.size(), 2);
}

/// Rule: a change whose line in the log was never written is the last operation all the same.
#[test]
fn what_a_killed_operation_removed_comes_back_and_not_what_an_earlier_one_removed() {
    let removes: fn(&[u8]) -> bool = |request| says(request, "UNLINK");
    let commands: [&[&str]; 3] = [
        &["force-unlock", "victim", "--yes"],
        &["purge", "victim", "--state", "in-progress", "--yes"],
        &["sweep", "--orphaned", "--yes", "--grace", "0s"],
    ];
    for words in commands {
        let server = Server::start();
        server.put("idempotency:earlier", PENDING);
        server.idemctl(&["force-unlock", "earlier", "--yes"]).exits(0);
        server.put("idempotency:victim", PENDING);
        let _ = ended_by(&server, words, removes, Signal::KILL);
        until("it is gone", || server.keys().is_empty());
        let log = ops(&server);
        assert_eq!(
            (&log[0]["command"], &log[0]["state"], &log[0]["redis_keys"]),
            (&words[0].into(), &"unended".into(), &0.into())
        );
        let run = server.idemctl(&["undo", "--yes"]).exits(0);
        run.says("did not end, because it was killed").says("Reverted 1 of 1");
        assert_eq!(server.keys(), ["idempotency:victim"], "{words:?}");
    }
}

/// Rule: where no backup tells what a killed operation changed, the one before it is taken back only by its name.
#[test]
fn a_killed_operation_without_a_backup_is_named_and_nothing_is_taken_back() {
    let server = Server::start();
    server.put("idempotency:earlier", PENDING);
    server.idemctl(&["force-unlock", "earlier", "--yes"]).exits(0);
    let earlier = ops(&server)[0]["op"].as_str().unwrap().to_owned();
    server.set("idempotency:a", PENDING, 50_000);
    ended_by(&server, &["extend", "a", "--for", "1h", "--yes"], extends, Signal::KILL);
    until("it is extended", || pttl(&server, "idempotency:a") > 50_000);
    let run = server.idemctl(&["undo", "--yes"]).exits(2);
    run.says("extend ").says("the audit log does not record");
    assert_eq!(server.get("idempotency:earlier"), None);
    server.idemctl(&["undo", &earlier, "--yes"]).exits(0);
    assert!(server.get("idempotency:earlier").is_some());
}

/// Rule: what is still at work is not taken back, by neither way.
#[test]
fn an_operation_that_is_still_at_work_is_refused() {
    let server = purged();
    let file = backup::only(&server);
    let writer = File::options().append(true).open(&file).unwrap();
    writer.lock().unwrap();
    server
        .idemctl(&["undo", "--yes"])
        .exits(2)
        .says("has not ended yet")
        .says("nothing was changed");
    let file = file.display().to_string();
    server.idemctl(&["restore", &file, "--yes"]).exits(2).says("is still being written");
    assert_eq!((server.size(), server.audited().len()), (0, KEYS));
    writer.unlock().unwrap();
    server.idemctl(&["undo", "--yes"]).exits(0);
}

/// Rule: an operation that changed nothing is none.
#[test]
fn an_operation_that_changed_nothing_is_not_the_last_one() {
    let server = purged();
    server.idemctl(&["undo", "--yes"]).exits(0);
    server.set("idempotency:x", PENDING, 50_000);
    let other = crate::support::proxy::sends_at(&server, "UNLINK", &["DEL", "idempotency:x"]);
    server.through(&other, &["force-unlock", "x", "--yes"]).exits(8);
    let marks = fs::read_to_string(server.audit().join("log.jsonl"))
        .unwrap()
        .matches("\"mark\":\"begin\"")
        .count();
    assert_eq!((marks, ops(&server).len()), (3, 2));
    server.idemctl(&["undo", "--yes"]).exits(0).says("Reverted 750 of 750");
    assert_eq!(server.size(), 0);
}

/// Rule: the undo of a killed undo or restore is not whole, because the details may lack its last batch. Revert: exit 0.
#[test]
fn the_undo_of_a_killed_restore_says_that_it_may_have_changed_more() {
    for command in ["undo", "restore"] {
        let server = Server::start();
        server.fill((0..1_250).map(|index| (format!("idempotency:{index}"), DONE)), 500_000);
        server.idemctl(&["purge", "--all", "--yes"]).exits(0);
        let file = backup::only(&server).display().to_string();
        let words = if command == "undo" { vec!["undo"] } else { vec!["restore", &file] };
        // The first batch is in the details when the third begins.
        let calls = AtomicU32::new(0);
        let third = move |sent: &[u8]| restores(sent) && calls.fetch_add(1, Ordering::SeqCst) == 2;
        ended_by(&server, &[&words[..], &["--yes"]].concat(), third, Signal::KILL);
        until("it is back", || server.size() > 1_000);
        let op = ops(&server)[0]["op"].as_str().unwrap().to_owned();
        let run = server.idemctl(&["undo", &op, "--yes"]).exits(3);
        run.says("may have changed more Redis keys, which undo leaves as they are");
        assert!((100..=750).contains(&server.size()), "{}", server.size());
        server.idemctl(&["restore", &file, "--yes"]);
        assert_eq!(server.size(), 1_250);
    }
}
