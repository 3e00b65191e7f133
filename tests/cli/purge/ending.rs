//! A purge that takes its time: interrupted, watched, and records that change before their turn.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::choice::{DAY, DONE, many, purge};
use crate::support::terminal::{ends, on_terminal};
use crate::support::{Running, Runs, Server, Signal, backup, until};

#[test]
fn ctrl_c_and_sigterm_end_the_batch_in_hand_and_say_how_to_go_on() {
    ends_in_good_order(Signal::INT);
    ends_in_good_order(Signal::TERM);
}

#[test]
fn a_lost_session_and_sigquit_end_the_batch_in_hand_too() {
    ends_in_good_order(Signal::HUP);
    ends_in_good_order(Signal::QUIT);
}

#[test]
fn a_run_under_nohup_outlives_its_session() {
    let server = Server::start();
    many(&server, 100);
    let purge = server.command();
    let mut ignoring = Command::new("/bin/sh");
    ignoring.env_clear().envs(purge.get_envs().filter_map(|(name, value)| Some((name, value?))));
    ignoring
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(purge.get_program())
        .args(purge.get_args());
    ignoring
        .args(["purge", "--all", "--yes", "--rate", "100/s"])
        .current_dir(purge.get_current_dir().unwrap());
    let child = ignoring.start();
    until("something is purged", || server.size() < 100);
    child.signal(Signal::HUP);
    child.ends().exits(0);
    assert_eq!(server.size(), 0);
}

#[test]
fn how_it_ended_is_told_though_nobody_reads_stdout() {
    let server = Server::start();
    many(&server, 400);
    let mut child = server.command().args(["purge", "--all", "--yes", "--rate", "200/s"]).start();
    drop(child.stdout.take());
    until("something is purged", || server.size() < 400);
    child.signal(Signal::INT);
    child.ends().exits(130).says("records purged; backup: ");
}

fn ends_in_good_order(signal: Signal) {
    let server = Server::start();
    many(&server, 2_000);
    let before = server.keys();
    let child =
        server.command().args(["purge", "--all", "--yes", "--rate", "200/s", "-o", "json"]).start();
    until("a hundred are purged", || server.size() <= 1_900);
    child.signal(signal);
    let run = child.ends().exits(130);
    run.says("records purged; backup: ").says("again");
    let gone = server.gone(&before);
    assert!((100..1_000).contains(&gone.len()), "{}", gone.len());
    assert_eq!(server.audited().len(), gone.len());
    let json = run.json();
    assert_eq!((&json["outcome"], &json["done"]), (&"interrupted".into(), &gone.len().into()));
    let held = backup::held(Path::new(json["backup"].as_str().unwrap()));
    assert_eq!(held, gone.iter().map(|key| key.clone().into_bytes()).collect::<BTreeSet<_>>());
    purge(&server, &["--all", "--yes"]).exits(0);
    assert_eq!(server.size(), 0);
}

#[test]
fn what_goes_or_changes_before_its_turn_is_told_from_what_was_removed() {
    let server = Server::start();
    many(&server, 40);
    let child =
        server.command().args(["purge", "--all", "--yes", "--rate", "10/s", "-o", "json"]).start();
    until("something is purged", || server.size() < 40);
    let left: Vec<_> = server.keys().into_iter().take(8).collect();
    left[..3].iter().for_each(|key| server.send::<()>(&[b"DEL", key.as_bytes()]));
    for key in &left[3..] {
        // Not one that the purge has removed by now, which would be a new record.
        let day = DAY.to_string();
        server.send::<Option<String>>(&[
            b"SET",
            key.as_bytes(),
            DONE.as_bytes(),
            b"PX",
            day.as_bytes(),
            b"XX",
        ]);
    }
    let run = child.ends().exits(0);
    let json = run.json();
    let number = |name: &str| json[name].as_u64().unwrap();
    // The few that the purge took in between are among the removed.
    assert_eq!(number("done") + number("gone") + number("changed"), 40, "{}", run.all());
    assert!(
        (1..=3).contains(&number("gone")) && (1..=5).contains(&number("changed")),
        "{}",
        run.all()
    );
    run.says(" that expired, or that another client removed").says("Left unchanged: ");
    assert_eq!(server.size() as u64, number("changed"));
}

/// Rule: a long change shows how much of it is done, also one that counts nothing first.
#[test]
fn progress_has_a_total() {
    for (words, shown) in [
        (&["purge", "--all", "--yes", "--rate", "100/s"][..], "records processed, keys scanned"),
        (&["purge", "--all", "--yes", "--max", "500", "--rate", "100/s"], "records processed"),
    ] {
        let server = Server::start();
        many(&server, 200);
        let text = ends(on_terminal(server.command(), words)).exits(0).text();
        assert!(text.contains(shown) && text.contains(" of 200 ("), "{words:?}: {text}");
        assert_eq!(server.size(), 0);
    }
}

#[test]
fn a_rate_is_kept() {
    let server = Server::start();
    many(&server, 100);
    let started = std::time::Instant::now();
    purge(&server, &["--all", "--yes", "--rate", "100"]).exits(0);
    assert!(started.elapsed() > Duration::from_millis(900), "{:?}", started.elapsed());
    assert_eq!(server.size(), 0);
}

/// Rule: a lock beside a result is removed with it, and the output says so only for schemas with separate locks.
#[test]
fn a_lock_that_goes_with_its_result_is_told() {
    let server = Server::holding(&[
        ("idem:started:beside", "worker-2", 20_000),
        ("idem:result:beside", r#"{"statusCode":200,"body":""}"#, 80_000_000),
        ("idem:order-1", DONE, 80_000_000),
    ]);
    let told = "A lock beside a result is removed with it, even if its worker is still running.";
    let words = ["purge", "--state", "completed", "--dry-run", "--schema"];
    server.idemctl(&[&words[..], &["event-driven"]].concat()).exits(0).says(told);
    // A record of one Redis key has no lock beside its result.
    let one = server.idemctl(&[&words[..], &["express"]].concat()).exits(0);
    assert!(!one.all().contains("A lock beside"), "{}", one.all());
}
