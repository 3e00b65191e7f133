//! Redis keys of one record that come back by more than one call: what became of each is told by itself.

use crate::support::cluster::Cluster;
use crate::support::{Run, Server};

const STORED: &str = r#"{"statusCode":200,"body":"first"}"#;
const OWNER: &str = "9cdf8104-2072-4119-abbc-c7ddc8386930";

/// A cluster with a purged record whose lock and result are on different nodes; its result, its lock, and the backup `b`.
fn purged() -> (Cluster, String, String) {
    let cluster = Cluster::start(3);
    let names = |number: i32| (format!("idem:result:n{number}"), format!("idem:started:n{number}"));
    let mut all = (0..).map(names);
    let (result, lock) =
        all.find(|(result, lock)| cluster.owner(result) != cluster.owner(lock)).unwrap();
    cluster.set(&result, STORED, 600_000);
    cluster.set(&lock, OWNER, 600_000);
    let words = ["purge", "--all", "--schema", "event-driven", "--yes", "--backup", "b"];
    cluster.idemctl(&words).exits(0).says("1 of 1 record purged");
    assert_eq!(cluster.size(), 0);
    (cluster, result, lock)
}

/// Lets a node refuse changes.
fn refuse(cluster: &Cluster, node: usize) {
    redis::cmd("CONFIG")
        .arg("SET")
        .arg("min-replicas-to-write")
        .arg(1)
        .exec(&mut cluster.connect(node))
        .unwrap();
}

/// The Redis keys that the log says came back.
fn noted(log: &Run) -> Vec<String> {
    let mut redis_keys = Vec::new();
    for line in log.json_lines() {
        if line["what"] == "restored" {
            redis_keys.push(line["redis_key"].as_str().unwrap().to_owned());
        }
    }
    redis_keys
}

/// Rule: a Redis key that came back is counted and noted, although another one of its record was refused.
#[test]
fn a_result_that_came_back_without_its_lock_is_noted() {
    let (cluster, result, lock) = purged();
    refuse(&cluster, cluster.owner(&lock));
    let run = cluster.idemctl(&["restore", "b", "--yes", "-o", "json"]).exits(3);
    run.says("NOREPLICAS").says("Restored 1 of 2 Redis keys");
    assert_eq!(
        (cluster.get(&result).as_deref(), cluster.get(&lock)),
        (Some(STORED), None),
        "{}",
        run.all()
    );
    assert_eq!(noted(&cluster.idemctl(&["log", "--records", "-o", "jsonl"])), [result]);
}

/// Rule: a lock does not come back alone: without its result it would block for nothing.
#[test]
fn a_lock_is_not_sent_after_a_result_that_was_refused() {
    let (cluster, result, lock) = purged();
    refuse(&cluster, cluster.owner(&result));
    cluster.idemctl(&["restore", "b", "--yes"]).exits(6).says("NOREPLICAS");
    assert_eq!((cluster.get(&result), cluster.get(&lock)), (None, None));
    assert!(noted(&cluster.idemctl(&["log", "--records", "-o", "jsonl"])).is_empty());
}

/// Rule: the same on one server, where --replace-locked brings back each Redis key by itself.
#[test]
fn a_result_that_replaced_nothing_is_noted_although_its_lock_was_refused() {
    let server =
        Server::holding(&[("idem:result:k", STORED, 600_000), ("idem:started:k", OWNER, 600_000)]);
    let words = ["purge", "--all", "--schema", "event-driven", "--yes", "--backup", "b"];
    server.idemctl(&words).exits(0);
    server.send::<()>(&[b"ACL", b"SETUSER", b"default", b"resetkeys", b"~idem:result:*"]);
    let run = server.idemctl(&["restore", "b", "--yes", "--replace-locked"]).exits(3);
    run.says("Restored 1 of 2 Redis keys");
    assert_eq!(server.get("idem:result:k").unwrap(), STORED.as_bytes());
    assert_eq!(noted(&server.idemctl(&["log", "--records", "-o", "jsonl"])), ["idem:result:k"]);
}
