//! `idemctl reconcile` on a cluster.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::cluster::Cluster;
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
    let file = cluster.node(0).folder().join("ask");
    fs::write(&file, ASK).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file.display().to_string()
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
    let wait = format!("touch {folder}/asked; while [ ! -e {folder}/go ]; do sleep 0.05; done");
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
