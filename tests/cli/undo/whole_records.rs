//! Records of two Redis keys, and backups that are not whole.

use std::fs;

use crate::support::Server;
use crate::support::backup;
use crate::support::cluster::Cluster;

const RESULT: &str = "idem:result:k";
const LOCK: &str = "idem:started:k";
const STORED: &str = r#"{"statusCode":200,"body":"first"}"#;
const PURGE: [&str; 5] = ["purge", "k", "--schema", "event-driven", "--yes"];

/// Rule: a lock and a result that a purge removed together come back together.
#[test]
fn a_purged_record_comes_back_with_its_lock_and_its_result() {
    for way in ["undo", "restore"] {
        let server = Server::holding(&[(RESULT, STORED, 60_000), (LOCK, "worker-1", 30_000)]);
        server.idemctl(&PURGE).exits(0).says("1 of 1 record purged");
        assert_eq!(server.size(), 0);
        assert_eq!(server.audited().len(), 2, "a line for each Redis key");
        let file = backup::only(&server).display().to_string();
        assert_eq!(
            fs::read_to_string(&file).unwrap().lines().count(),
            3,
            "place, record, closing line"
        );
        let words =
            if way == "undo" { vec!["undo", "--yes"] } else { vec!["restore", &file, "--yes"] };
        server.idemctl(&words).exits(0).says("2 of 2 Redis keys");
        assert_eq!(server.get(RESULT).unwrap(), STORED.as_bytes());
        assert_eq!(server.get(LOCK).unwrap(), b"worker-1");
    }
}

/// Rule: a backup that lost its end is compared with the audit log: what is missing is named, and the exit status is 3.
#[test]
fn a_backup_that_lost_its_end_is_not_whole() {
    let server = Server::start();
    for index in 0..20 {
        server.set(&format!("idem:result:k{index:02}"), STORED, 60_000);
    }
    server.idemctl(&["purge", "--all", "--schema", "event-driven", "--yes"]).exits(0);
    let file = backup::only(&server);
    let text = fs::read_to_string(&file).unwrap();
    let some: Vec<_> = text.lines().take(11).collect();
    fs::write(&file, some.join("\n") + "\n").unwrap();
    server.idemctl(&["backup", "list"]).exits(0).shows("unended");
    let run = server.idemctl(&["undo", "--yes"]).exits(3);
    run.says("are 10 Redis keys that the operation removed").says("10 of 20 Redis keys");
    assert_eq!(server.size(), 10);
    // A copy says so, too.
    let copy = server.folder().join("copy");
    fs::write(&copy, some[..5].join("\n")).unwrap();
    server
        .idemctl(&["restore", &copy.display().to_string(), "--yes"])
        .exits(3)
        .says("are 16 Redis keys that the operation removed");
}

/// Rule: a line that is gone from the middle is noticed by the closing line.
#[test]
fn a_backup_without_one_of_its_lines_is_not_whole() {
    let server = Server::start();
    for index in 0..3 {
        server.set(&format!("idem:result:k{index}"), STORED, 60_000);
    }
    server.idemctl(&["purge", "--all", "--schema", "event-driven", "--yes"]).exits(0);
    let file = backup::only(&server);
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<_> = text.lines().collect();
    fs::write(&file, [lines[0], lines[1], lines[3], lines[4]].join("\n") + "\n").unwrap();
    fs::remove_dir_all(server.audit()).unwrap();
    let run = server.idemctl(&["restore", &file.display().to_string(), "--yes"]).exits(3);
    run.says("is incomplete, because its number of lines differs");
    assert_eq!(server.size(), 2);
}

/// Rule: the log tells what an extension left, and its undo gives the lock its former time.
#[test]
fn an_extension_is_noted_with_what_it_left_and_taken_back() {
    let server = Server::holding(&[(LOCK, "worker-1", 30_000)]);
    let words = ["extend", "k", "--schema", "event-driven", "--for", "60s", "--yes", "-o", "json"];
    let json = server.idemctl(&words).exits(0).json();
    assert_eq!(json["locks"][0]["outcome"], "extended");
    let entry = server.audited().remove(0);
    assert!(entry["after"].is_object(), "{entry}");
    server.idemctl(&["undo", "--yes"]).exits(0);
    let left: i64 = server.send(&[b"PTTL", LOCK.as_bytes()]);
    assert!((1..=30_000).contains(&left), "{left}");
}

/// Rule: on a cluster that keeps lock and result in two slots both go, and both come back.
#[test]
fn a_record_in_two_slots_goes_and_comes_back() {
    let cluster = Cluster::start(3);
    let names = |number: i32| (format!("idem:result:n{number}"), format!("idem:started:n{number}"));
    let owners = |(result, lock): &(String, String)| (cluster.owner(result), cluster.owner(lock));
    let (result, lock) = (0..).map(names).find(|names| owners(names).0 != owners(names).1).unwrap();
    cluster.set(&result, STORED, 60_000);
    cluster.set(&lock, "worker-1", 30_000);
    let run = cluster.idemctl(&["purge", "--all", "--schema", "event-driven", "--yes"]).exits(0);
    run.says("1 of 1 record purged");
    assert!(cluster.get(&result).is_none() && cluster.get(&lock).is_none());
    cluster.idemctl(&["undo", "--yes"]).exits(0).says("2 of 2 Redis keys");
    assert!(cluster.get(&result).is_some() && cluster.get(&lock).is_some());
}

/// Rule: the backup of an undo knows the other Redis key of the record, so that a lock does not come back beside a result.
#[test]
fn a_lock_that_an_undo_removed_does_not_come_back_beside_a_result() {
    let server = Server::start();
    let begin = ["begin", "k", "--schema", "event-driven", "--owner", "worker-1", "--yes"];
    server.idemctl(&begin).exits(0);
    server.idemctl(&["undo", "--yes"]).exits(0);
    assert_eq!(server.size(), 0);
    server.set(RESULT, STORED, 60_000);
    let run = server.idemctl(&["undo", "--yes"]).exits(3);
    run.says("not restored, because a result is stored");
    assert_eq!(server.get(LOCK), None);
}
