//! A cluster of which a part is not there.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::support::backup;
use crate::support::cluster::Cluster;
use crate::support::fault::{self, Fault};
use crate::support::{FOREVER, PENDING, Running, Runs, Signal, signal, until};

const PURGE: [&str; 7] = ["purge", "--state", "in-progress", "--all", "--yes", "--backup", "b"];

/// A cluster with so many locks, which end after a while or never.
fn filled(count: usize, ttl_ms: u64) -> Cluster {
    let cluster = Cluster::start(3);
    cluster.fill((0..count).map(|number| (format!("idempotency:k{number}"), PENDING)), ttl_ms);
    cluster
}

fn lock(number: usize) -> String {
    format!("idem:lock:m{number}")
}

fn done(number: usize) -> String {
    format!("idem:done:m{number}")
}

fn on(cluster: &Cluster, node: usize) -> BTreeSet<Vec<u8>> {
    redis::cmd("KEYS").arg("*").query(&mut cluster.connect(node)).unwrap()
}

#[test]
fn a_slot_that_nobody_serves_is_exit_6_and_the_others_are_served() {
    let cluster = filled(3, 900_000);
    let slot = cluster.slot("idempotency:nowhere");
    for node in 0..3 {
        redis::cmd("CLUSTER").arg("DELSLOTS").arg(slot).exec(&mut cluster.connect(node)).unwrap();
    }
    let named = ["--schema", "go-middleware"];
    for words in [
        &["inspect", "nowhere"][..],
        &["force-unlock", "nowhere", "--yes"],
        &["begin", "nowhere", "--yes"],
        &["complete", "nowhere", "--yes", "--create", "--status", "200", "--body", ""],
    ] {
        cluster
            .idemctl(&[words, &named].concat())
            .exits(6)
            .says("CLUSTERDOWN")
            .says("hint: ")
            .says("127.0.0.1:");
    }
    assert_eq!(
        cluster
            .idemctl(&["list", "-o", "jsonl"])
            .exits(3)
            .says("no node serves")
            .json_lines()
            .len(),
        3
    );
    cluster.idemctl(&["inspect", "k0"]).exits(0);
}

#[test]
fn without_one_master_the_records_of_the_others_are_removed_and_it_is_named() {
    let mut cluster = filled(90, FOREVER);
    let ours = on(&cluster, 0).len() + on(&cluster, 2).len();
    cluster.kill(1);
    let gone = format!("127.0.0.1:{}", cluster.port(1));
    cluster
        .idemctl(&["sweep", "--orphaned", "--dry-run"])
        .exits(3)
        .says(&gone)
        .shows(ours.to_string());
    for (words, verb) in [
        (&["sweep", "--orphaned", "--yes", "--grace", "0", "--backup", "swept"][..], "done"),
        (&PURGE, "purged"),
    ] {
        let run = cluster.idemctl(words).exits(3);
        run.says(&gone).says("hint: ").says(verb).says(ours.to_string());
        assert!(on(&cluster, 0).is_empty() && on(&cluster, 2).is_empty(), "{}", run.all());
        let file = cluster.node(0).folder().join(words.last().unwrap());
        assert_eq!(backup::held(&file).len(), ours);
        let back = cluster.idemctl(&["restore", words.last().unwrap(), "--yes"]).exits(0);
        back.says(format!("Restored {ours} of {ours}"));
    }
}

#[test]
fn without_one_master_records_of_two_nodes_that_are_there_are_listed() {
    let mut cluster = Cluster::start(3);
    cluster.fill((0..60).map(|number| (lock(number), "1")), 60_000);
    let on_others = |key: String| cluster.owner(&key) != 1;
    let ours =
        (0..60).filter(|number| on_others(lock(*number)) && on_others(done(*number))).count();
    assert!(ours > 0 && ours < 60);
    cluster.kill(1);
    let gone = format!("127.0.0.1:{}", cluster.port(1));
    for words in
        [&["list", "-o", "jsonl"][..], &["list", "-o", "jsonl", "--schema", "event-consumer"]]
    {
        let run = cluster.idemctl(words).exits(3);
        assert_eq!(run.json_lines().len(), ours, "{}", run.all());
        run.says("1 of 3 masters").says(&gone);
    }
}

/// Rule: a master that dies between the two looks of a sweep keeps nobody from the locks of the others.
#[test]
fn a_master_that_dies_during_the_grace_is_named_and_the_others_are_swept() {
    let mut cluster = filled(60, FOREVER);
    let words = ["--timeout", "1s", "sweep", "--orphaned", "--yes", "--grace", "5s", "--no-backup"];
    let running = cluster.command().args(words).start();
    std::thread::sleep(Duration::from_millis(2_500));
    cluster.kill(1);
    let run = running.ends().exits(3);
    run.says(format!("127.0.0.1:{}", cluster.port(1)));
    assert!(on(&cluster, 0).is_empty() && on(&cluster, 2).is_empty(), "{}", run.all());
}

#[test]
fn without_one_master_a_lock_whose_result_would_be_there_stays() {
    let mut cluster = Cluster::start(3);
    cluster.fill(
        (0..60).flat_map(|number| [lock(number), done(number)]).map(|redis_key| (redis_key, "1")),
        60_000,
    );
    let on_gone = |key: String| cluster.owner(&key) == 1;
    let (mut blind, mut whole) = (Vec::new(), Vec::new());
    for number in 0..60 {
        match (on_gone(lock(number)), on_gone(done(number))) {
            (false, true) => blind.push(number),
            (false, false) => whole.push(number),
            _ => {}
        }
    }
    assert!(!blind.is_empty() && !whole.is_empty());
    cluster.kill(1);
    let gone = format!("127.0.0.1:{}", cluster.port(1));
    let named = ["--schema", "event-consumer", "--yes"];
    cluster
        .idemctl(&[&["force-unlock", &format!("m{}", blind[0])], &named[..]].concat())
        .exits(5)
        .says(&gone);
    let sweep = cluster
        .idemctl(&[&["sweep", "--include", "leftover-lock", "--grace", "0"], &named[..]].concat())
        .exits(3);
    sweep.says(&gone).says(whole.len().to_string());
    let purge = ["purge", "--all", "--state", "completed,in-progress", "--no-backup"];
    for words in [
        &[&purge[..], &named].concat()[..],
        &["release", &format!("m{}", blind[1]), "--schema", "event-consumer", "--yes"],
    ] {
        let run = cluster.idemctl(words);
        assert_ne!(run.code, 0, "{}", run.all());
    }
    assert!(blind.iter().all(|number| cluster.get(&lock(*number)).is_some()), "a lock went unseen");
    assert!(whole.iter().all(|number| cluster.get(&lock(*number)).is_none()));
}

#[test]
fn one_master_that_does_not_answer_a_change_keeps_nobody_from_the_others() {
    let cluster = filled(90, 900_000);
    let unheard = on(&cluster, 1);
    let ours = 90 - unheard.len();
    let (port, _) = fault::way(cluster.node(1), Fault::CutAt("UNLINK"));
    cluster.announce(1, port);
    let run = cluster.idemctl(&[&PURGE[..], &["-o", "json"]].concat()).exits(7);
    let lost = format!("the removal of {0} of {0} records was sent", unheard.len());
    run.says(&lost).says(format!("127.0.0.1:{port}"));
    assert_eq!(
        (&run.json()["done"], &run.json()["unknown"]),
        (&ours.into(), &unheard.len().into())
    );
    assert_eq!(
        (on(&cluster, 0).len(), on(&cluster, 1).len(), on(&cluster, 2).len()),
        (0, unheard.len(), 0)
    );
    assert_eq!(backup::held(&cluster.node(0).folder().join("b")).len(), 90);
    let audit = cluster.idemctl(&["log", "--records", "-o", "jsonl", "--limit", "90"]).json_lines();
    let noted = |what: &str| audit.iter().filter(|line| line["what"] == what).count();
    assert_eq!((noted("purged"), noted("outcome-unknown")), (ours, unheard.len()));
}

#[test]
fn one_master_that_refuses_changes_is_named_also_when_nothing_comes_after() {
    let cluster = filled(90, 900_000);
    let ours = 90 - on(&cluster, 1).len();
    redis::cmd("CONFIG")
        .arg("SET")
        .arg("min-replicas-to-write")
        .arg(1)
        .exec(&mut cluster.connect(1))
        .unwrap();
    let run = cluster.idemctl(&[&PURGE[..], &["-o", "json"]].concat()).exits(3);
    assert!(
        run.stderr.contains("NOREPLICAS")
            && run.stderr.contains(&format!("127.0.0.1:{}", cluster.port(1)))
    );
    assert_eq!(
        (&run.json()["done"], &run.json()["changed"]),
        (&ours.into(), &0.into()),
        "{}",
        run.all()
    );
    assert_eq!(backup::held(&cluster.node(0).folder().join("b")).len(), ours);
}

#[test]
fn a_master_that_stops_during_a_purge_is_named_and_no_record_is_lost() {
    let cluster = filled(3_000, 900_000);
    let all: BTreeSet<_> = (0..3).flat_map(|node| on(&cluster, node)).collect();
    let child =
        cluster.command().args(["--timeout", "3s"]).args(PURGE).args(["-o", "json"]).start();
    let (mut connection, before) = (cluster.connect(1), on(&cluster, 1).len());
    until("something is purged", || {
        redis::cmd("DBSIZE").query::<usize>(&mut connection).unwrap() < before
    });
    signal(cluster.node(1).pid(), Signal::STOP);
    let run = child.ends();
    signal(cluster.node(1).pid(), Signal::CONT);
    assert!([3, 7].contains(&run.code), "{}", run.all());
    run.says(format!("127.0.0.1:{}", cluster.port(1)));
    std::thread::sleep(Duration::from_millis(50));
    let left: BTreeSet<_> = (0..3).flat_map(|node| on(&cluster, node)).collect();
    let held = backup::held(&cluster.node(0).folder().join("b"));
    assert!(all.difference(&left).all(|key| held.contains(key)), "{}", run.all());
    assert!(
        on(&cluster, 0).is_empty() && on(&cluster, 2).is_empty(),
        "the others' are purged: {}",
        run.all()
    );
}
