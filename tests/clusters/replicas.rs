//! idemctl on a cluster whose masters have replicas: reading from these, and going on when one takes over.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::backup;
use crate::support::cluster::Cluster;
use crate::support::fault::{self, Hook};
use crate::support::{self, PENDING, Run, Running, Runs, Server, Signal, signal};

const MASTERS: usize = 3;
const DONE: &str = r#"{"status":"COMPLETED","code":200,"headers":{},"body":""}"#;

fn key(number: usize) -> String {
    format!("idempotency:k{number}")
}

/// A cluster with so many records, which the replicas have too.
fn filled(count: usize) -> Cluster {
    let cluster = Cluster::start_with_replicas(MASTERS);
    for master in 0..MASTERS {
        let own = (0..count).map(key).filter(|redis_key| cluster.owner(redis_key) == master);
        let mut connection = cluster.connect(master);
        support::fill(&mut connection, own.map(|redis_key| (redis_key, DONE)), 80_000_000);
        assert_eq!(
            redis::cmd("WAIT").arg(1).arg(10_000).query::<usize>(&mut connection).unwrap(),
            1
        );
    }
    cluster
}

fn listed(run: &Run) -> BTreeSet<String> {
    run.json_lines().iter().map(|line| line["key"].as_str().unwrap().to_owned()).collect()
}

/// What any node serves.
fn there(cluster: &Cluster) -> BTreeSet<Vec<u8>> {
    let keys = |node| {
        redis::cmd("KEYS").arg("*").query::<BTreeSet<Vec<u8>>>(&mut cluster.connect(node)).unwrap()
    };
    cluster.masters_now().into_iter().flat_map(keys).collect()
}

fn purge<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["purge", "--schema", "go-middleware", "--all", "--yes", "--backup", file], more].concat()
}

#[test]
fn a_walk_goes_to_the_replicas_where_asked_to_and_a_replica_s_name_will_do() {
    let cluster = filled(300);
    let scans = |node: usize| cluster.node(node).calls("scan") > 0;
    let run = cluster.idemctl(&["list", "--read-from", "replica", "-o", "jsonl"]).exits(0);
    assert_eq!(listed(&run).len(), 300, "{}", run.all());
    assert_eq!(
        (0..2 * MASTERS).map(scans).collect::<Vec<_>>(),
        [false, false, false, true, true, true]
    );
    let run = cluster.idemctl_at(MASTERS, &["list", "-o", "jsonl"]).exits(0);
    assert_eq!((listed(&run).len(), scans(0)), (300, true), "{}", run.all());
    cluster.idemctl_at(MASTERS + 1, &["inspect", "k7"]).exits(0);
    cluster
        .idemctl_at(MASTERS + 1, &[&purge("b", &[])[..], &["--wait-replicas", "1"]].concat())
        .exits(0);
    assert_eq!(there(&cluster).len(), 0);
    let behind = (MASTERS..2 * MASTERS)
        .map(|node| redis::cmd("DBSIZE").query::<usize>(&mut cluster.connect(node)));
    assert_eq!(behind.sum::<Result<usize, _>>().unwrap(), 0, "the replicas have it");
}

#[test]
fn the_master_is_walked_where_its_replica_does_not_answer() {
    let cluster = filled(90);
    let replica = cluster.node(MASTERS + 1).pid();
    signal(replica, Signal::STOP);
    let run =
        cluster.idemctl(&["--timeout", "300ms", "list", "--read-from", "replica", "-o", "jsonl"]);
    signal(replica, Signal::CONT);
    assert_eq!((run.code, listed(&run).len()), (0, 90), "{}", run.all());
}

#[test]
fn what_was_done_on_the_other_masters_is_not_done_again_after_a_failover() {
    const LONG: u64 = 9_000_000;
    let cluster = Arc::new(Cluster::start_with_replicas(MASTERS));
    let on = |master: usize| {
        (0..).map(key).filter({
            let cluster = Arc::clone(&cluster);
            move |redis_key| cluster.owner(redis_key) == master
        })
    };
    let there = on(1).next().unwrap();
    let [taken, completed]: [String; 2] = on(2).take(2).collect::<Vec<_>>().try_into().unwrap();
    cluster.fill([&there, &taken, &completed].map(|redis_key| (redis_key, PENDING)), LONG);
    let (once, during) = (AtomicBool::new(false), Arc::downgrade(&cluster));
    let (anew, stored) = (taken.clone(), completed.clone());
    let way = fault::hooked(cluster.node(2), move |sent| {
        if !fault::removes(sent) || once.swap(true, Ordering::SeqCst) {
            return Hook::Pass;
        }
        let (cluster, anew, stored) = (during.upgrade().unwrap(), anew.clone(), stored.clone());
        Hook::Then(Box::new(move || {
            cluster.fail_over(1);
            cluster.until_known(MASTERS + 1);
            cluster.set(&anew, PENDING, 300_000);
            cluster.set(&stored, DONE, 300_000);
        }))
    });
    cluster.announce(2, way);
    let words = [
        "--timeout",
        "20s",
        "sweep",
        "--include",
        "excess-ttl",
        "--yes",
        "--grace",
        "0",
        "--backup",
        "b",
    ];
    let stated = ["--schema", "go-middleware", "--lock-ttl", "300s"];
    let run = cluster.idemctl(&[&words[..], &stated].concat()).exits(3);
    run.says("happened in between").says("3 of 3");
    assert_eq!(
        cluster.get(&taken).as_deref(),
        Some(PENDING),
        "a live worker's lock: {}",
        run.all()
    );
    assert_eq!(cluster.get(&completed).as_deref(), Some(DONE));
    assert_eq!(backup::held(&cluster.node(0).folder().join("b")).len(), 3);
    let audit = cluster.idemctl(&["log", "--records", "-o", "jsonl"]).json_lines();
    assert_eq!(audit.iter().filter(|line| line["what"] == "swept").count(), 3, "{audit:?}");
}

#[test]
fn a_master_that_hands_over_in_the_middle_of_a_purge_keeps_nobody_from_it() {
    let cluster = filled(6_000);
    let running = cluster.command().args(purge("b", &["--rate", "3000/s"])).start();
    thread::sleep(Duration::from_millis(500));
    cluster.fail_over(1);
    let run = running.ends();
    if run.code != 0 {
        // A change that met with the hand-over itself, or what may have come back: said, and the next run goes on.
        assert_eq!(run.code, 3, "{}", run.all());
        let named = [cluster.port(1), cluster.port(MASTERS + 1)]
            .map(|port| run.stderr.contains(&port.to_string()));
        assert!(named.contains(&true), "{}", run.all());
        cluster.idemctl(&purge("c", &[])).exits(0);
    } else if !there(&cluster).is_empty() {
        // Redis 6.2 replicates a TTL, and not the time of the expiry. On a busy machine the replica's records expire later,
        // so once it is the master, they are not those that were scanned.
        run.says("records modified since the scan");
        cluster.idemctl(&purge("c", &[])).exits(0);
    }
    assert_eq!(there(&cluster).len(), 0, "{}", run.all());
    let held: usize = ["b", "c"]
        .iter()
        .map(|file| cluster.node(0).folder().join(file))
        .filter(|file| file.exists())
        .map(|file| backup::held(&file).len())
        .sum();
    assert!(held >= 6_000, "{held}: {}", run.all());
}

#[test]
fn a_master_that_dies_in_the_middle_of_a_purge_is_named_and_its_replica_is_purged_by_the_next_run()
{
    let mut cluster = filled(6_000);
    let port = cluster.port(1);
    let all: BTreeSet<_> = (0..6_000).map(|number| key(number).into_bytes()).collect();
    let running = cluster.command().args(purge("b", &["--rate", "3000/s"])).start();
    thread::sleep(Duration::from_millis(500));
    cluster.kill(1);
    let run = running.ends();
    assert!([3, 7].contains(&run.code) && run.stderr.contains(&port.to_string()), "{}", run.all());
    run.says("hint: ");
    cluster.take_over(MASTERS + 1);
    cluster.until_known(MASTERS + 1);
    // Before that, the dead master could have slots that no other node has heard of.
    cluster.until_failed(1);
    let left = there(&cluster);
    let held = backup::held(&cluster.node(0).folder().join("b"));
    assert!(all.difference(&left).all(|key| held.contains(key)), "{}", run.all());
    assert!(!left.is_empty() && left.len() < 6_000, "{}", left.len());
    let run = cluster.idemctl(&purge("c", &[])).exits(0);
    assert_eq!(there(&cluster).len(), 0, "{}", run.all());
}

#[test]
fn a_list_is_whole_when_a_replica_takes_over_before_its_end() {
    let mut cluster = filled(3_000);
    let running = cluster.command().args(["list", "-o", "jsonl", "--rate", "180/s"]).start();
    let listing = thread::spawn(|| running.ends());
    thread::sleep(Duration::from_millis(1_000));
    cluster.kill(1);
    // As long as an election takes at least: the list asks the dead master meanwhile.
    thread::sleep(Duration::from_millis(4_000));
    cluster.take_over(MASTERS + 1);
    let run = listing.join().unwrap().exits(0);
    assert_eq!(listed(&run).len(), 3_000, "{}", run.stderr);
}

/// Rule: what is changed on a replica that takes changes is not changed on its master, so it is refused there.
#[test]
fn nothing_is_changed_on_a_replica_that_takes_changes() {
    let port = support::free_port();
    let master = Server::start_with(&[
        &format!("port {port}"),
        "bind 127.0.0.1",
        "repl-diskless-sync-delay 0",
    ]);
    master.set(&key(1), PENDING, 900_000);
    master.set(&key(2), DONE, 900_000);
    let replica =
        Server::start_with(&[&format!("replicaof 127.0.0.1 {port}"), "replica-read-only no"]);
    support::until("the replica has it", || replica.size() == 2);
    for words in [
        &["force-unlock", "k1", "--schema", "go-middleware"][..],
        &["extend", "k1", "--schema", "go-middleware", "--for", "9h"],
        &["complete", "k1", "--schema", "go-middleware", "--status", "201", "--body", "1"],
        &["purge", "--all", "--schema", "go-middleware"],
        &["sweep", "--orphaned", "--grace", "0s"],
    ] {
        let run = replica.idemctl(&[words, &["--yes"]].concat()).exits(6);
        run.says(format!("it is a replica of 127.0.0.1:{port}")).says("hint: ");
    }
    // A server that does not know HELLO is asked for its role. What nobody may ask is said.
    let config = [
        &format!("replicaof 127.0.0.1 {port}"),
        "replica-read-only no",
        "rename-command HELLO NOBODY",
    ];
    let silent = Server::start_with(&config);
    support::until("the replica has it", || silent.size() == 2);
    let unlock = ["force-unlock", "k1", "--schema", "go-middleware", "--yes"];
    silent.idemctl(&unlock).exits(6).says(format!("it is a replica of 127.0.0.1:{port}"));
    assert!(silent.get(&key(1)).is_some());
    silent.add_user("ops", "~* +@all -role");
    let unlock = [&["--user", "ops", "-a", "pw", "--no-auth-warning"][..], &unlock].concat();
    silent.idemctl(&unlock).exits(0).says("cannot tell whether").says("+hello or +role");
    replica.idemctl(&["purge", "--all", "--schema", "go-middleware", "--dry-run"]).exits(0);
    master.idemctl(&["force-unlock", "k1", "--schema", "go-middleware", "--yes"]).exits(0);
}
