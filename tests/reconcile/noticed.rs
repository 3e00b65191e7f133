//! Held locks that change are noticed early, and what was extended elsewhere is told truthfully.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::provider::{
    BY_KEY, LOCK, lock, logged, now_ms, program, pttl, reference, run, state, words,
};
use crate::support::proxy::{Hook, hooked_socket};
use crate::support::terminal::{ends, on_terminal, press};
use crate::support::{Running as _, Runs as _, Server, Signal, idemctl, until};

/// The words of a run that asks the operator.
fn asking<'a>(ask: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    words(ask, more).into_iter().filter(|word| *word != "--yes").collect()
}

/// Sets a deadline, as a failover to a replica without the extension does.
fn set_deadline(server: &Server, key: &str, at_ms: u64) {
    let at = at_ms.to_string();
    server.send::<()>(&[b"PEXPIREAT", key.as_bytes(), at.as_bytes()]);
}

/// Rule: a lock whose extension was lost is reported at the question, long before it ends, and is not
/// changed after it. Revert: without `notice_changes`, nothing is shown before the answer.
#[test]
fn a_lost_extension_is_reported_at_the_question() {
    let server = Server::holding(&[("idem:done-2", LOCK, 60_000), ("idem:not-2", LOCK, 60_000)]);
    let former = now_ms() + 8_000;
    for key in ["idem:done-1", "idem:not-1"] {
        server.put(key, LOCK);
        set_deadline(&server, key, former);
    }
    let ask = program(server.folder(), BY_KEY);
    let mut session = on_terminal(server.command(), &asking(&ask, &["--lock-ttl", "2h"]));
    session.exp_string("[y/N]").unwrap();
    for key in ["idem:done-1", "idem:not-1"] {
        set_deadline(&server, key, former);
    }
    session
        .exp_string(
            "done-1: changed meanwhile: a failover or another client gave it an earlier deadline",
        )
        .unwrap();
    session.exp_string("The question above still waits for your answer.").unwrap();
    let left = pttl(&server, "idem:done-1");
    assert!(left > 1_000, "{left}");
    press(&mut session, "", "y\r");
    let ran = ends(session).exits(3);
    ran.shows("completed 1, released 1, left 0, changed meanwhile 2");
    // Neither acted on nor extended again.
    assert_eq!(logged(&server, "done-1"), ["extended"]);
    assert_eq!(logged(&server, "not-1"), ["extended"]);
}

/// Rule: a lock that lost its extension may have ended when the last report is printed, and then a
/// retry may have executed its operation. Revert: without `look_at_lost`, a time that has passed is
/// shown as the end of the lock.
#[test]
fn a_lock_that_ended_after_the_warning_is_not_told_to_end() {
    let server = Server::start();
    let former = now_ms() + 5_000;
    server.put("idem:done-1", LOCK);
    set_deadline(&server, "idem:done-1", former);
    let ask = program(server.folder(), BY_KEY);
    let mut session = on_terminal(server.command(), &asking(&ask, &["--lock-ttl", "2h"]));
    session.exp_string("[y/N]").unwrap();
    set_deadline(&server, "idem:done-1", former);
    session.exp_string("The question above still waits for your answer.").unwrap();
    until("the lock has ended", || server.get("idem:done-1").is_none());
    server.set("idem:done-1", LOCK, 30_000);
    press(&mut session, "", "y\r");
    let ran = ends(session).exits(3);
    let shown = ran.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("its extension was lost, and the lock has ended or changed since"));
    assert!(shown.contains("a retry may have executed it again"), "{shown}");
    assert!(!shown.contains("earlier deadline"), "{shown}");
    assert_eq!(server.get("idem:done-1").unwrap(), LOCK.as_bytes());
}

/// Rule: the last report says that a lock holds only after it was read. Here the locks change right
/// before the operator says no. Revert: without `look_at_held`, "extended until" is
/// printed for each.
#[test]
fn a_held_lock_is_read_before_the_last_report() {
    let keys = ["idem:done-gone", "idem:done-stored", "idem:done-retried"];
    let server = Server::filled(keys.map(|key| (key, LOCK)), 60_000);
    let ask = program(server.folder(), BY_KEY);
    let mut session = on_terminal(server.command(), &asking(&ask, &["--lock-ttl", "2h"]));
    session.exp_string("[y/N]").unwrap();
    server.send::<()>(&[b"DEL", b"idem:done-gone"]);
    server.set("idem:done-stored", r#"{"status":"COMPLETED","statusCode":200}"#, 3_600_000);
    server.set("idem:done-retried", LOCK, 30_000);
    press(&mut session, "", "n\r");
    let ran = ends(session).exits(2);
    let shown = ran.text().split_whitespace().collect::<Vec<_>>().join(" ");
    for (key, change) in [
        ("gone", "the lock has ended"),
        ("stored", "another client changed it"),
        ("retried", "its deadline was moved"),
    ] {
        assert!(shown.contains(&format!("done-{key}: changed meanwhile: {change}")), "{shown}");
    }
    assert!(shown.contains("a retry may have executed it again"), "{shown}");
    assert!(!shown.contains("extended until"), "{shown}");
}

/// Rule: if a lock cannot be read before the last report, the report says that it may hold. Revert:
/// without `is_unread`, "it was extended and holds until" is printed.
#[test]
fn a_lock_that_cannot_be_read_only_may_hold() {
    let server = Server::holding(&[("idem:done-1", LOCK, 60_000)]);
    let ask = program(server.folder(), BY_KEY);
    let is_cut = Arc::new(AtomicBool::new(false));
    let cut = Arc::clone(&is_cut);
    let socket = hooked_socket(&server, move |_| match cut.load(Ordering::SeqCst) {
        true => Hook::Cut,
        false => Hook::Pass,
    });
    let mut command = idemctl(server.folder());
    command.arg("-s").arg(socket).args(["--timeout", "20s"]);
    let mut session = on_terminal(command, &asking(&ask, &["--lock-ttl", "2h"]));
    session.exp_string("[y/N]").unwrap();
    is_cut.store(true, Ordering::SeqCst);
    press(&mut session, "", "n\r");
    let ran = ends(session).exits(2);
    let shown = ran.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("done-1: left: it was not tried; extended until"), "{shown}");
}

/// Rule: a failover that loses only the latest extension brings back a deadline that idemctl gave
/// before. The report gives the time at which the lock ends, and names no worker and no retry. Revert:
/// without `earlier_ms`, the report calls it a worker's renewal.
#[test]
fn an_earlier_extension_that_is_back_is_no_renewal() {
    let server = Server::holding(&[("idem:done-1", LOCK, 60_000)]);
    let waits = waiting(&server);
    kill_one(&server, &waits, &["--lock-ttl", "2h"]);
    let log = fs::read_to_string(server.details().pop().unwrap()).unwrap();
    let line: serde_json::Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    let earlier = line["after"]["expires_at_ms"].as_u64().unwrap();
    let ask = program(server.folder(), BY_KEY);
    let more = ["--lock-ttl", "2h", "--hold", "20m"];
    let mut session = on_terminal(server.command(), &asking(&ask, &more));
    session.exp_string("[y/N]").unwrap();
    assert!(pttl(&server, "idem:done-1") > 1_000_000);
    set_deadline(&server, "idem:done-1", earlier);
    let shown = session.exp_string("still waits for your answer.").unwrap();
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        shown.contains(
            "done-1: changed meanwhile: a failover or another client gave it an earlier deadline"
        ),
        "{shown}"
    );
    press(&mut session, "", "n\r");
    ends(session).exits(2);
    assert!(pttl(&server, "idem:done-1") <= 600_000);
}

/// Rule: a client that sets the former deadline again and again has a live worker's lock, which is
/// neither released nor completed.
#[test]
fn a_worker_that_sets_its_own_deadline_keeps_its_lock() {
    let server = Server::start();
    let deadline = now_ms() + 30_000;
    server.put("idem:not-1", LOCK);
    set_deadline(&server, "idem:not-1", deadline);
    let ask = program(
        server.folder(),
        &format!(
            "touch asked\nwhile [ ! -e go ] && [ -e \"$PWD\" ]; do sleep 0.05; done\n{BY_KEY}"
        ),
    );
    let mut command = server.command();
    let child = command.args(words(&ask, &["--lock-ttl", "2h", "-o", "json"])).start();
    until("it asks", || server.folder().join("asked").exists());
    set_deadline(&server, "idem:not-1", deadline);
    std::thread::sleep(std::time::Duration::from_secs(6));
    fs::write(server.folder().join("go"), "").unwrap();
    let ran = child.ends().exits(3);
    assert_eq!(lock(&ran.json(), "not-1")["outcome"], "changed", "{}", ran.all());
    assert_eq!(ran.stderr.matches("warning: express/not-1: changed").count(), 1, "{}", ran.all());
    assert_eq!(server.get("idem:not-1").unwrap(), LOCK.as_bytes());
    assert!(pttl(&server, "idem:not-1") <= 30_000);
}

/// Starts a run that waits for `go`, and kills it after it extended the locks.
fn kill_one(server: &Server, ask: &str, more: &[&str]) {
    let mut command = server.command();
    let mut child = command.args(words(ask, more)).start();
    until("it asks", || server.folder().join("asked").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    fs::write(server.folder().join("go"), "").unwrap();
}

fn waiting(server: &Server) -> String {
    program(
        server.folder(),
        &format!(
            "touch asked\nwhile [ ! -e go ] && [ -e \"$PWD\" ]; do sleep 0.05; done\n{BY_KEY}"
        ),
    )
}

/// Rule: a run that does not have the log of a killed run says that locks may be older than their
/// deadlines make them look, and does not call the deadline that it found the former one.
#[test]
fn what_a_killed_elsewhere_extended_may_be_older() {
    let server = Server::holding(&[("idem:unclear", LOCK, 20_000)]);
    let ask = waiting(&server);
    kill_one(&server, &ask, &["--lock-ttl", "12m"]);
    let old = ["--lock-ttl", "12m", "--older-than", "10m"];
    let elsewhere = |more: &[&str]| {
        let mut command = server.command();
        command.env("XDG_STATE_HOME", server.folder().join("elsewhere"));
        command.args(["reconcile", "--ask", &ask, "--schema", "express", "--yes"]);
        command.args(more).run()
    };
    let ran = elsewhere(&[&old[..], &["-o", "json"]].concat()).exits(0);
    ran.says("No locks to reconcile");
    ran.says("1 lock may have been extended by a run of reconcile that was killed");
    assert_eq!(ran.json()["younger_by_deadline"], 1, "{}", ran.all());
    let ran = elsewhere(&[&old[..], &["unclear"]].concat()).exits(3);
    ran.says("unclear (express): it is younger than --older-than");

    let ran = elsewhere(&["--lock-ttl", "12m", "--older-than", "1m", "--hold", "11m"]).exits(3);
    ran.shows("acquired at least 2m");
    ran.says("unclear: left: unknown: the provider is silent; it has an earlier deadline again");
    assert!(pttl(&server, "idem:unclear") > 500_000);
}

/// Rule: the same if the other machine uses a shorter --hold. The same command takes the lock where the
/// killed run was. Revert: with a hint only for locks that end within --hold, nothing is said.
#[test]
fn another_hold_elsewhere_is_told() {
    let server = Server::holding(&[("idem:not-1", LOCK, 20_000)]);
    let ask = waiting(&server);
    kill_one(&server, &ask, &["--lock-ttl", "12m"]);
    let more = "--schema express --lock-ttl 12m --older-than 10m --hold 5m --confirm-after 0s";
    let mut all = vec!["reconcile", "--ask", &ask, "--yes"];
    all.extend(more.split(' '));
    let mut command = server.command();
    command.env("XDG_STATE_HOME", server.folder().join("elsewhere"));
    let ran = command.args(&all).args(["-o", "json"]).run().exits(0);
    assert_eq!(ran.json()["younger_by_deadline"], 1, "{}", ran.all());
    ran.says("1 lock may have been extended by a run of reconcile that was killed");
    server.idemctl(&all).exits(0);
    assert_eq!(server.get("idem:not-1"), None);
}

/// Rule: a lock that an operator extended is taken if --owner-alive says that its owner is dead, and
/// otherwise the message says so. Also if a killed run extended it after the operator.
#[test]
fn a_dead_owner_counts_more_than_an_extension_by_hand() {
    let server = Server::start();
    for key in ["not-1", "not-2"] {
        server.set(&format!("idemkey:{key}"), reference(3_600_000), 60_000);
    }
    let extend = ["extend", "not-1", "--schema", "reference", "--for", "5m", "--yes"];
    server.idemctl(&extend).exits(0);
    let more = ["--schema", "reference", "--lock-ttl", "2h", "--match", "not-1"];
    let ran = run(&server, &more).exits(3);
    ran.says("an operator extended it, so its worker may be alive");
    let of = |check| [&more[..], &["--owner-alive", check]].concat();
    run(&server, &of("exit 0")).exits(0).says("1 lock whose owner is alive");

    // A killed run that took it as the lock of a dead owner does not make it one without an owner.
    let ask = waiting(&server);
    kill_one(&server, &ask, &of("exit 1"));
    assert!(pttl(&server, "idemkey:not-1") > 400_000);
    run(&server, &more).exits(3).says("an operator extended it");

    run(&server, &of("exit 1")).exits(0).says("released 1");
    assert_eq!(state(&server, "reference", "not-1"), "absent");
}

/// Rule: a run that ends early speaks of locks that stay extended only if there are any.
#[test]
fn locks_that_were_completed_do_not_stay_extended() {
    let server = Server::holding(&[("idem:done-1", LOCK, 60_000), ("idem:not-1", LOCK, 60_000)]);
    let ask = program(server.folder(), BY_KEY);
    let mut command = server.command();
    let more = ["--lock-ttl", "2h", "--confirm-after", "40s"];
    let child = command.args(words(&ask, &more)).start();
    until("it completes", || server.get("idem:done-1").unwrap() != LOCK.as_bytes());
    std::thread::sleep(std::time::Duration::from_millis(300));
    child.signal(Signal::INT);
    let ran = child.ends().exits(130);
    ran.says("completed 1");
    assert!(!ran.stderr.contains("stay extended"), "{}", ran.all());
}
