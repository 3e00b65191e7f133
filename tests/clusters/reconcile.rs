//! `idemctl reconcile` on a cluster.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::Runs as _;
use crate::support::cluster::Cluster;

const LOCK: &str = r#"{"status":"IN_PROGRESS"}"#;

/// Answers by the beginning of the key.
const ASK: &str = r#"#!/bin/sh
case "$(cat)" in
*'"key":"done'*) echo '{"outcome":"done","status":201,"headers":{},"body":1}' ;;
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
    let ask = asking(&cluster);
    let gone = (0..12).filter(|number| cluster.owner(&format!("idem:done-{number}")) == 2).count();
    let mut command = cluster.command();
    command.args([
        "--timeout",
        "5s",
        "reconcile",
        "--ask",
        &format!("sleep 1; {ask}"),
        "--schema",
        "express",
        "--older-than",
        "5m",
        "--confirm-after",
        "0s",
        "--yes",
        "-o",
        "json",
    ]);
    let child = command.start();
    std::thread::sleep(std::time::Duration::from_millis(800));
    cluster.kill(2);
    let run = crate::support::Running::ends(child);
    assert_ne!(run.code, 0, "{}", run.all());
    let report = run.json();
    assert_eq!(report["completed"].as_u64().unwrap() as usize, 12 - gone, "{}", run.all());
    let failed = report["failed"].as_u64().unwrap() + report["unknown"].as_u64().unwrap();
    assert_eq!(failed as usize, gone, "{}", run.all());
}
