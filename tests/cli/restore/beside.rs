//! Records with two Redis keys: a result is not put beside a lock, nor a lock beside a result that came since.

use std::path::PathBuf;

use super::command::restore;
use crate::support::backup;
use crate::support::cluster::Cluster;
use crate::support::{Run, Server};

const RESULT: &str = "idem:result:k";
const LOCK: &str = "idem:started:k";
const STORED: &str = r#"{"statusCode":200,"body":"first"}"#;

/// A result that was purged, and its backup.
fn purged(server: &Server) -> PathBuf {
    server.set(RESULT, STORED, 60_000);
    server.idemctl(&["purge", "--all", "--schema", "event-driven", "--yes"]).exits(0);
    assert_eq!(server.get(RESULT), None);
    backup::only(server)
}

/// A lock that was removed by force, and its backup.
fn unlocked(server: &Server) -> PathBuf {
    server.set(LOCK, "worker-1", 60_000);
    server.idemctl(&["force-unlock", "k", "--schema", "event-driven", "--yes"]).exits(0);
    assert_eq!(server.get(LOCK), None);
    backup::only(server)
}

/// The rule: while a retry holds the lock its result is the one to come, and no older one is put there.
#[test]
fn a_result_is_not_put_beside_the_lock_of_a_retry() {
    let server = Server::start();
    let file = purged(&server);
    server.set(LOCK, "worker-2", 30_000);
    for more in [&["-o", "json"][..], &["-o", "json", "--dry-run"]] {
        let run = restore(&server, &file, more).exits(3);
        run.says("1 not restored because of a lock").says("--replace-locked");
        let json = run.json();
        assert_eq!(
            (&json["locked"], &json["redis_keys"][0]["outcome"]),
            (&1.into(), &"locked".into())
        );
        assert_eq!(json["redis_keys"][0]["redis_key"], RESULT);
        assert_eq!((server.get(RESULT), server.get(LOCK).unwrap()), (None, b"worker-2".to_vec()));
    }
    // The retry is over: nothing is in the way any more.
    server.send::<()>(&[b"DEL", LOCK.as_bytes()]);
    restore(&server, &file, &[]).exits(0);
    assert_eq!(server.get(RESULT).unwrap(), STORED.as_bytes());
}

/// The rule: who says so gets the result back, and a lock that nobody was shown is left as it is.
#[test]
fn replace_locked_puts_the_result_there_and_leaves_the_lock() {
    let server = Server::start();
    let file = purged(&server);
    server.set(LOCK, "worker-2", 30_000);
    let run = restore(&server, &file, &["--replace-locked", "-o", "json"]).exits(0);
    assert_eq!(
        (&run.json()["restored"], &run.json()["locked"]),
        (&1.into(), &0.into()),
        "{}",
        run.all()
    );
    assert_eq!(server.get(RESULT).unwrap(), STORED.as_bytes());
    assert_eq!(server.get(LOCK).unwrap(), b"worker-2");
}

/// The rule: a lock gives its worker leave to complete. Beside a result that was stored since, the worker of before would
/// overwrite it, and a lock without expiry would block for ever once the result is gone.
#[test]
fn a_lock_is_not_put_beside_a_result_that_came_since() {
    let server = Server::start();
    let file = unlocked(&server);
    server.set(RESULT, STORED, 60_000);
    for more in [&[][..], &["--replace-locked"], &["--dry-run"]] {
        let run = restore(&server, &file, &[more, &["-o", "json"]].concat()).exits(3);
        run.says("1 not restored, because a result is stored");
        assert_eq!(
            (&run.json()["completed"], &run.json()["redis_keys"][0]["outcome"]),
            (&1.into(), &"completed".into())
        );
        assert_eq!(server.get(LOCK), None);
    }
}

#[test]
fn a_lock_that_stood_beside_its_result_comes_back_beside_it() {
    let server = Server::holding(&[(RESULT, STORED, 60_000)]);
    let file = unlocked(&server);
    restore(&server, &file, &[]).exits(0);
    assert_eq!(server.get(LOCK).unwrap(), b"worker-1");
}

/// A step of the service takes lock and result at once, and both come back.
#[test]
fn lock_and_result_that_went_together_come_back_together() {
    let server = Server::holding(&[(RESULT, STORED, 60_000), (LOCK, "worker-1", 30_000)]);
    let words =
        "complete k --schema event-driven --owner worker-1 --replace --status 201 --body {} --yes";
    server.idemctl(&words.split(' ').collect::<Vec<_>>()).exits(0);
    server.send::<()>(&[b"DEL", RESULT.as_bytes(), LOCK.as_bytes()]);
    let file = backup::only(&server);
    for (more, restored) in [(&["--dry-run"][..], 0), (&[], 2)] {
        restore(&server, &file, more).exits(0).says("estore").says("2 of 2 Redis keys");
        assert_eq!(server.size(), restored);
    }
    assert_eq!(server.get(RESULT).unwrap(), STORED.as_bytes());
    assert_eq!(server.get(LOCK).unwrap(), b"worker-1");
}

/// The rule: no schema is known by name. Where the lock of an own schema is, the backup says.
#[test]
fn an_own_schema_is_guarded_alike() {
    let server = Server::start();
    let built_in = concat!(env!("CARGO_MANIFEST_DIR"), "/lua/event-consumer/");
    let toml = std::fs::read_to_string(format!("{built_in}schema.toml")).unwrap();
    let toml = toml.replace("event-consumer", "own").replace("idem:", "mine:");
    let folder = server.describe("own", &[("schema.toml", &toml)]);
    let script = "mark_completed_and_unlock.lua";
    std::fs::copy(format!("{built_in}{script}"), folder.join(script)).unwrap();
    server.set("mine:done:k", "1", 60_000);
    server.idemctl(&["purge", "--all", "--schema", "own", "--yes"]).exits(0);
    server.set("mine:lock:k", "1", 30_000);
    let run = restore(&server, &backup::only(&server), &["-o", "jsonl"]).exits(3);
    assert_eq!(run.json_lines()[0]["outcome"], "locked", "{}", run.all());
    assert_eq!(server.get("mine:done:k"), None);
}

/// On a cluster that keeps the two apart no script sees both: the lock is looked at right before, and that is said.
#[test]
fn a_cluster_that_keeps_lock_and_result_apart_is_looked_at_right_before() {
    let cluster = Cluster::start(3);
    let names = |number: i32| (format!("idem:result:n{number}"), format!("idem:started:n{number}"));
    let owners = |(result, lock): &(String, String)| (cluster.owner(result), cluster.owner(lock));
    let (result, lock) = (0..).map(names).find(|names| owners(names).0 != owners(names).1).unwrap();
    cluster.set(&result, STORED, 60_000);
    let run = cluster
        .idemctl(&["purge", "--all", "--schema", "event-driven", "--yes", "--backup", "b"])
        .exits(0);
    run.says("1 of 1 record purged");
    cluster.set(&lock, "worker-2", 30_000);
    let run =
        |more: &[&str]| cluster.idemctl(&[&["restore", "b", "--yes", "-o", "json"], more].concat());
    let outcome = |run: &Run| run.json()["redis_keys"][0]["outcome"].clone();
    for more in [&[][..], &["--dry-run"]] {
        let refused = run(more).exits(3);
        assert_eq!(outcome(&refused), "locked", "{}", refused.all());
        refused.says("immediately before");
    }
    let told = run(&["--replace-locked"]).exits(0);
    assert_eq!(outcome(&told), "restored", "{}", told.all());
}
