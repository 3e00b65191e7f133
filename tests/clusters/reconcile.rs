//! `idemctl reconcile` and `idemctl duplicates` on a cluster, and behind Sentinels.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::cluster::Cluster;
use crate::support::sentinel::Watched;
use crate::support::terminal::{ends, on_terminal, press};
use crate::support::{Running, Runs as _, until};

const LOCK: &str = r#"{"status":"IN_PROGRESS"}"#;

/// Answers by the beginning of the key.
const ASK: &str = r#"#!/bin/sh
case "$(cat)" in
*'"key":"done'*) echo '{"outcome":"done","status":201,"headers":{},"body":1}' ;;
*'"key":"bad'*) echo '{"outcome":"done","status":402,"headers":{},"body":1}' ;;
*'"key":"not'*) echo '{"outcome":"not-done"}' ;;
*) echo '{"outcome":"unknown"}' ;;
esac
"#;

fn asking(cluster: &Cluster) -> String {
    program_in(cluster.node(0).folder())
}

/// Rule: locks are held, completed and released on whichever node they are, as one operation.
#[test]
fn locks_are_reconciled_on_whichever_node_they_are() {
    let cluster = Cluster::start(3);
    let keys = |kind: &'static str| (0..6).map(move |number| format!("idem:{kind}-{number}"));
    for key in keys("done").chain(keys("not")).chain(keys("unclear")) {
        cluster.set(&key, LOCK, 60_000);
    }
    let ask = asking(&cluster);
    let run = cluster.idemctl(&[
        "reconcile",
        "--ask",
        &ask,
        "--schema",
        "express",
        "--lock-ttl",
        "10m",
        "--older-than",
        "5m",
        "--confirm-after",
        "0s",
        "--yes",
    ]);
    run.exits(3).says("completed 6, released 6, left 6, changed meanwhile 0");
    assert!(keys("done").all(|key| cluster.get(&key).unwrap().contains("COMPLETED")));
    assert!(keys("not").all(|key| cluster.get(&key).is_none()));
    for key in keys("unclear") {
        let node = cluster.owner(&key);
        let left: i64 = redis::cmd("PTTL").arg(&key).query(&mut cluster.connect(node)).unwrap();
        assert!((1..=60_000).contains(&left), "{key}: {left}");
    }
    cluster.idemctl(&["undo", "--yes"]).exits(0);
    assert!(keys("done").chain(keys("not")).all(|key| cluster.get(&key).as_deref() == Some(LOCK)));
}

/// Rule: a node that does not answer does not keep the locks of the others from being reconciled, and
/// its own are told.
#[test]
fn a_node_that_is_gone_leaves_the_others() {
    let mut cluster = Cluster::start(3);
    for number in 0..12 {
        cluster.set(&format!("idem:done-{number}"), LOCK, 0);
    }
    let gone = (0..12).filter(|number| cluster.owner(&format!("idem:done-{number}")) == 2).count();
    let folder = cluster.node(0).folder().to_owned();
    let mut command = cluster.command();
    let child = command.args(waiting(&cluster)).start();
    until("it asks", || folder.join("asked").exists());
    cluster.kill(2);
    fs::write(folder.join("go"), "").unwrap();
    let run = Running::ends(child);
    assert_ne!(run.code, 0, "{}", run.all());
    let report = run.json();
    assert_eq!(report["completed"].as_u64().unwrap() as usize, 12 - gone, "{}", run.all());
    let failed = report["failed"].as_u64().unwrap() + report["unknown"].as_u64().unwrap();
    assert_eq!(failed as usize, gone, "{}", run.all());
}

/// The words of a run that waits for the file `go` at each question, and touches `asked`.
fn waiting(cluster: &Cluster) -> Vec<String> {
    let folder = cluster.node(0).folder().display().to_string();
    let ask = asking(cluster);
    let wait = format!(
        "touch {folder}/asked; while [ ! -e {folder}/go ] && [ -e {folder} ]; do sleep 0.05; done"
    );
    let words = [
        "--timeout",
        "10s",
        "reconcile",
        "--ask",
        &format!("{wait}; {ask}"),
        "--schema",
        "express",
        "--lock-ttl",
        "10m",
        "--older-than",
        "5m",
        "--confirm-after",
        "0s",
        "--jobs",
        "32",
        "--yes",
        "-o",
        "json",
    ];
    words.map(str::to_owned).to_vec()
}

/// Rule: a failover in the middle changes nothing about the locks that the new master has.
#[test]
fn a_failover_in_the_middle_loses_no_lock() {
    {
        let cluster = Cluster::start_with_replicas(3);
        for number in 0..6 {
            for kind in ["done", "not", "unclear", "bad"] {
                cluster.set(&format!("idem:{kind}-{number}"), LOCK, 60_000);
            }
        }
        redis::cmd("WAIT").arg(1).arg(10_000).exec(&mut cluster.connect(1)).unwrap();
        let folder = cluster.node(0).folder().to_owned();
        let mut command = cluster.command();
        let child = command.args(waiting(&cluster)).start();
        until("it asks", || folder.join("asked").exists());
        cluster.fail_over(1);
        cluster.until_known(4);
        fs::write(folder.join("go"), "").unwrap();
        let run = Running::ends(child).exits(3);
        let report = run.json();
        let counts = ["completed", "released", "left", "changed"].map(|name| report[name].as_u64());
        assert_eq!(counts, [6, 6, 12, 0].map(Some), "{}", run.all());
        for lock in report["locks"].as_array().unwrap() {
            let key = lock["key"].as_str().unwrap();
            let expected = match key.split_once('-').unwrap().0 {
                "bad" => "extended",
                "unclear" => "put-back",
                _ => "ended",
            };
            assert_eq!(lock["hold"], expected, "{}", run.all());
            let node = cluster.masters_now().into_iter().find_map(|node| {
                let mut command = redis::cmd("PTTL");
                command.arg(format!("idem:{key}"));
                command.query::<i64>(&mut cluster.connect(node)).ok()
            });
            match expected {
                "extended" => assert!(node.unwrap() > 500_000, "{key}: {}", run.all()),
                "put-back" => assert!((1..=60_000).contains(&node.unwrap()), "{key}"),
                _ => {}
            }
        }
    }
}

/// Writes a program that answers by the key, in a folder.
fn program_in(folder: &std::path::Path) -> String {
    let file = folder.join("ask");
    fs::write(&file, ASK).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file.display().to_string()
}

/// The command behind the Sentinels.
fn behind(watched: &Watched) -> std::process::Command {
    let mut command = crate::support::idemctl(watched.server(0).folder());
    command.args(["-u", &watched.url()]);
    command
}

fn words(ask: &str) -> Vec<&str> {
    let words = "--schema express --lock-ttl 10m --older-than 5m --confirm-after 0s";
    let mut all = vec!["reconcile", "--ask", ask];
    all.extend(words.split(' '));
    all
}

fn pttl(watched: &Watched, index: usize, key: &str) -> i64 {
    watched.server(index).send(&[b"PTTL", key.as_bytes()])
}

fn fill(watched: &Watched) {
    for kind in ["done", "not", "unclear"] {
        watched.server(0).set(&format!("idem:{kind}-1"), LOCK, 60_000);
    }
    until("the replica has the locks", || watched.server(1).get("idem:unclear-1").is_some());
}

/// Rule: behind Sentinels, a failover at the question changes nothing about locks that the new master
/// has, and the steps are made there.
#[test]
fn sentinels_fail_over_at_the_question() {
    let watched = Watched::start(1);
    fill(&watched);
    let ask = program_in(watched.server(0).folder());
    let mut session = on_terminal(behind(&watched), &words(&ask));
    session.exp_string("[y/N]").unwrap();
    until("the replica has the extensions", || pttl(&watched, 1, "idem:not-1") > 500_000);
    watched.fail_over();
    std::thread::sleep(std::time::Duration::from_secs(6));
    press(&mut session, "", "y\r");
    let run = ends(session).exits(3);
    run.shows("completed 1, released 1, left 1, changed meanwhile 0");
    assert!(watched.server(1).get("idem:done-1").unwrap() != LOCK.as_bytes());
    assert_eq!(watched.server(1).get("idem:not-1"), None);
    assert!((1..=60_000).contains(&pttl(&watched, 1, "idem:unclear-1")));
    let mut undo = behind(&watched);
    undo.args(["undo", "--yes"]).run().exits(0);
    assert_eq!(watched.server(1).get("idem:not-1").unwrap(), LOCK.as_bytes());
}

/// Rule: if the new master does not have the extensions, the operator is told at the question, and
/// nothing is done to these locks.
#[test]
fn sentinels_fail_over_to_a_replica_without_the_extensions() {
    let watched = Watched::start(1);
    fill(&watched);
    cut(&watched);
    let ask = program_in(watched.server(0).folder());
    let mut session = on_terminal(behind(&watched), &words(&ask));
    session.exp_string("[y/N]").unwrap();
    watched.fail_over();
    session
        .exp_string("done-1: changed meanwhile: a failover or another client gave it an earlier")
        .unwrap();
    session.exp_string("The question above still waits for your answer.").unwrap();
    press(&mut session, "", "y\r");
    let run = ends(session).exits(3);
    run.shows("completed 0, released 0, left 1, changed meanwhile 2");
    for key in ["idem:done-1", "idem:not-1"] {
        assert_eq!(watched.server(1).get(key).unwrap(), LOCK.as_bytes());
        assert!(pttl(&watched, 1, key) <= 60_000);
    }
}

/// Rule: with `--wait-replicas`, no lock is asked about that a failover could end. Revert: without it,
/// the question is asked.
#[test]
fn an_extension_without_its_replica_is_no_hold() {
    let watched = Watched::start(1);
    fill(&watched);
    cut(&watched);
    let ask = program_in(watched.server(0).folder());
    let mut command = behind(&watched);
    command.args(words(&ask)).args(["--wait-replicas", "1", "--wait-timeout", "200ms", "--yes"]);
    let run = command.run().exits(3);
    run.shows("only 0 of 1 replicas confirmed it");
    run.says("completed 0, released 0, left 3, changed meanwhile 0");
    assert!(pttl(&watched, 0, "idem:done-1") <= 60_000);
}

/// Cuts the replica off: it cannot connect again.
fn cut(watched: &Watched) {
    let master = watched.server(0);
    master.send::<()>(&[b"ACL", b"SETUSER", b"default", b"-psync", b"-sync"]);
    master.send::<redis::Value>(&[b"CLIENT", b"KILL", b"TYPE", b"replica"]);
}

/// Rule: a renewal at the question that the replicas do not confirm voids the plan, and the operator is
/// told at once. Revert: without `tell_void_plans`, nothing is shown.
#[test]
fn a_renewal_without_its_replica_is_told_at_the_question() {
    let watched = Watched::start(1);
    fill(&watched);
    let ask = program_in(watched.server(0).folder());
    let mut all = words(&ask);
    all.extend(["--hold", "61s", "--wait-replicas", "1", "--wait-timeout", "200ms"]);
    let mut session = on_terminal(behind(&watched), &all);
    session.exp_string("[y/N]").unwrap();
    cut(&watched);
    session.exp_string("only 0 of 1 replicas confirmed it").unwrap();
    session.exp_string("The question above still waits for your answer.").unwrap();
    press(&mut session, "", "y\r");
    ends(session).exits(3).shows("completed 0, released 0, left 3, changed meanwhile 0");
}

/// Rule: an extension of an earlier run that no replica has is not taken as held. Revert: without
/// `NEW_CHANGE_MS`, the locks are asked about.
#[test]
fn an_extension_of_a_killed_run_has_to_be_confirmed_too() {
    let watched = Watched::start(1);
    fill(&watched);
    cut(&watched);
    let folder = watched.server(0).folder();
    let ask = program_in(folder);
    let mut command = behind(&watched);
    let wait = format!("touch {0}/asked; sleep 30; {ask}", folder.display());
    let mut child = command.args(words(&wait)).arg("--yes").start();
    until("it asks", || folder.join("asked").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(pttl(&watched, 0, "idem:done-1") > 500_000);
    let mut command = behind(&watched);
    let more = ["--hold", "5m", "--wait-replicas", "1", "--wait-timeout", "200ms", "--yes"];
    let run = command.args(words(&ask)).args(more).run().exits(3);
    run.says("completed 0, released 0, left 3, changed meanwhile 0");
    // The former deadlines are still known.
    assert!(pttl(&watched, 0, "idem:done-1") <= 60_000, "{}", run.all());
}

/// Rule: `duplicates` reads the master that the Sentinels name, before and after a failover.
#[test]
fn duplicates_are_found_behind_sentinels() {
    let watched = Watched::start(2);
    let done = |order: u32| {
        format!(
            r#"{{"status":"COMPLETED","statusCode":201,"headers":{{}},"body":{{"order":{order}}}}}"#
        )
    };
    for (key, order) in [("a-1", 7), ("a-2", 7), ("b", 8)] {
        watched.server(0).set(&format!("idem:{key}"), done(order), 600_000);
    }
    until("the replica has the records", || watched.server(1).get("idem:b").is_some());
    for _ in 0..2 {
        let mut command = behind(&watched);
        command.args(["duplicates", "--schema", "express", "--same", "/order", "-o", "json"]);
        let run = command.run().exits(1);
        let report = run.json();
        assert_eq!(report["groups"].as_array().unwrap().len(), 1, "{}", run.all());
        assert_eq!(report["groups"][0]["records"].as_array().unwrap().len(), 2);
        if watched.master_port() == watched.port(0) {
            watched.fail_over();
        }
    }
    assert_eq!(watched.master_port(), watched.port(1));
}
