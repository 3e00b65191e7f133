//! An undo of some records, the operations of two servers, and backups that lost everything.

use std::fs;

use super::{DONE, PENDING};
use crate::support::{Server, backup};

/// A server of which three records were purged.
fn purged() -> Server {
    let server = Server::holding(
        &["idempotency:a", "idempotency:b", "idempotency:c"].map(|key| (key, DONE, 500_000)),
    );
    server.idemctl(&["purge", "--all", "--yes"]).exits(0);
    server
}

/// Rule: one record that came back leaves the others to be brought back, one by one.
#[test]
fn records_come_back_one_by_one() {
    let server = purged();
    server.idemctl(&["undo", "--only", "a", "--yes"]).exits(0).says("Reverted 1 of 1");
    let log = server.idemctl(&["log", "-o", "jsonl"]).exits(0).json_lines();
    assert_eq!(
        (&log[0]["undone_by"], &log[0]["partly_undone_by"]),
        (&serde_json::Value::Null, &log[1]["op"])
    );
    server.idemctl(&["log"]).shows("  partly undone  ");
    server.idemctl(&["undo", "--only", "b", "--yes"]).exits(0).says("Reverted 1 of 1");
    assert_eq!(server.keys(), ["idempotency:a", "idempotency:b"]);
    // The last undo is taken back where its record is meant.
    server.idemctl(&["undo", "--only", "b", "--yes"]).exits(0).shows("remove ");
    assert_eq!(server.keys(), ["idempotency:a"]);
}

/// Rule: an undo that named every key is whole, not partial. Revert: if every `--only` counts as
/// partial, the log says "partly undone".
#[test]
fn an_undo_that_named_every_key_took_all_back() {
    let server = purged();
    let all = ["undo", "--only", "a", "--only", "b", "--only", "c", "--yes"];
    server.idemctl(&all).exits(0).says("Reverted 3 of 3");
    server.idemctl(&["log"]).shows("  undone  ");
}

/// Rule: a key that the operation did not change is named.
#[test]
fn a_key_that_the_operation_did_not_change_is_named() {
    let server = purged();
    let run = server.idemctl(&["undo", "--only", "a", "--only", "nosuch", "--yes"]).exits(3);
    run.says("nosuch: purge ")
        .says("made no change to such a key that can be undone")
        .says("Reverted 1 of 1");
    server
        .idemctl(&["undo", "--only", "nosuch", "--yes"])
        .exits(1)
        .says("made no change to such a key that can be undone");
    let file = backup::only(&server).display().to_string();
    let run =
        server.idemctl(&["restore", &file, "--only", "b", "--only", "nosuch", "--yes"]).exits(3);
    run.says("nosuch: ").says("holds no such key");
    assert_eq!(server.keys(), ["idempotency:a", "idempotency:b"]);
}

/// Rule: without a name it is the last operation on the server of the command line.
#[test]
fn the_last_operation_is_that_of_this_server() {
    let (server, other) = (purged(), Server::holding(&[("idempotency:x", PENDING, 50_000)]));
    let there = other.socket().display().to_string();
    server.unnamed(&["-s", &there, "force-unlock", "x", "--yes"]).exits(0);
    server.idemctl(&["undo", "--yes"]).exits(0).says("Reverted 3 of 3");
    assert_eq!((server.size(), other.size()), (3, 0));
    server.unnamed(&["-s", &there, "undo", "--yes"]).exits(0).says("Reverted 1 of 1");
    assert_eq!(other.size(), 1);
}

/// Rule: a backup that lost its first line, or everything, is compared with what the log says of the file.
#[test]
fn a_backup_that_lost_everything_is_not_whole() {
    let server = purged();
    let file = backup::only(&server);
    let whole = fs::read_to_string(&file).unwrap();
    let closing = whole.lines().last().unwrap().to_owned() + "\n";
    let path = file.display().to_string();
    for left in [String::new(), whole[..60].to_owned(), "\0".repeat(4096), closing] {
        fs::write(&file, &left).unwrap();
        for words in [&["undo", "--yes"][..], &["undo", "--dry-run"], &["restore", &path, "--yes"]]
        {
            let run = server.idemctl(&[words, &["-o", "json"]].concat()).exits(3);
            run.says("are 3 Redis keys that the operation removed").says("0 of 3 Redis keys");
            assert_eq!(run.json()["complete"], false, "{words:?}");
        }
        server.idemctl(&["config", "check"]).exits(1).shows("-purge-");
        let list = server.idemctl(&["backup", "list"]).exits(0);
        let states = ["is damaged", "is unended", "is not counted"];
        assert!(states.iter().any(|state| list.stderr.contains(state)), "{}", list.all());
    }
    assert_eq!(server.size(), 0);
    // Nothing tells what was in it.
    let other = server.folder().join("other");
    fs::write(&other, "").unwrap();
    server
        .idemctl(&["restore", &other.display().to_string(), "--yes"])
        .exits(2)
        .says("contains no lines of a backup");
}

/// Rule: the backup of another operation that has the name of this one's is told by the log.
#[test]
fn the_backup_of_another_operation_in_its_place_is_not_whole() {
    let server = purged();
    let file = backup::only(&server);
    server.set("idempotency:other", DONE, 500_000);
    server.idemctl(&["purge", "--all", "--yes", "--backup", "other"]).exits(0);
    fs::copy(server.folder().join("other"), &file).unwrap();
    let path = file.display().to_string();
    server
        .idemctl(&["restore", &path, "--yes"])
        .exits(3)
        .says("are 3 Redis keys that the operation removed");
}

/// Rule: an undo takes nothing from the backup of another operation, although the file has the name of this one's.
#[test]
fn an_undo_refuses_the_backup_of_another_operation() {
    let server = Server::holding(&[("idempotency:a", DONE, 500_000)]);
    server.idemctl(&["purge", "a", "--yes", "--backup", "kept"]).exits(0);
    fs::rename(server.folder().join("kept"), server.folder().join("kept.1")).unwrap();
    server.set("idempotency:b", DONE, 500_000);
    server.idemctl(&["purge", "b", "--yes", "--backup", "kept"]).exits(0);
    let operations = server.idemctl(&["log", "-o", "json"]).exits(0).json();
    let names: Vec<_> = operations["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|op| op["op"].as_str().unwrap())
        .collect();
    let refused = server.idemctl(&["undo", names[0], "--yes"]);
    let (first, second) =
        if refused.code == 2 { (names[0], names[1]) } else { (names[1], names[0]) };
    assert_eq!(server.idemctl(&["undo", first, "--dry-run"]).code, 2);
    let run = server.idemctl(&["undo", first, "--yes"]).exits(2);
    run.says(format!("is the backup of operation {second} (purge), not of operation {first}"));
    assert!(server.get("idempotency:a").is_none());
}
