//! What idemctl 0.2.0 wrote, as its binary left it: an audit log and a backup. Neither is read, and neither is passed over
//! in silence.

use std::fs;

use crate::support::{LOCK, Server};

const LOG: &str = include_str!("audit.jsonl");
const BACKUP: &str = include_str!("force-unlock.jsonl");

/// A server whose audit log is that of 0.2.0.
fn server() -> Server {
    let server = Server::holding(&[("idem:held", LOCK, 60_000)]);
    fs::create_dir_all(server.state("backups")).unwrap();
    fs::write(server.state("audit.jsonl"), LOG).unwrap();
    server
}

/// Rule: `log` says that it does not read the log of an earlier version, so that nobody believes that nothing was changed.
#[test]
fn its_log_is_named_and_not_read() {
    let server = server();
    let log = server.idemctl(&["log", "-o", "json"]).exits(0);
    let unread = "audit.jsonl is of an earlier version of idemctl and is not read";
    assert_eq!(log.says(unread).json()["operations"], serde_json::json!([]));
    server.idemctl(&["log", "--records"]).exits(0).says(unread);
    server.idemctl(&["log", "show", "28c5"]).exits(1).says(unread).says("no operation 28c5");
    for op in [&[][..], &["28c5"]] {
        let undo = server.idemctl(&[&["undo", "--yes", "--elsewhere"], op].concat()).exits(1);
        undo.says("the audit log has no operation");
    }
    server.idemctl(&["force-unlock", "held", "--schema", "express", "--yes"]).exits(0);
    let log = server.idemctl(&["log", "-o", "jsonl"]).exits(0);
    assert_eq!(log.says(unread).json_lines().len(), 1);
    server.idemctl(&["undo", "--yes"]).exits(0).says("Reverted 1 of 1");
    assert_eq!(server.get("idem:held").unwrap(), LOCK.as_bytes());
    assert_eq!(fs::read_to_string(server.state("audit.jsonl")).unwrap(), LOG);
}

#[test]
fn its_backup_is_refused() {
    let server = server();
    let file = server.state("backups").join("old.jsonl");
    fs::write(&file, BACKUP).unwrap();
    let says = "old.jsonl:1: this backup has format 1, of idemctl 0.2; restore it with idemctl 0.2";
    let path = file.display().to_string();
    for more in [&[][..], &["--dry-run"], &["--skip-damaged"]] {
        let words = [&["restore", &path, "--yes", "--elsewhere"], more].concat();
        server.idemctl(&words).exits(2).says(says).says("nothing was restored");
    }
    server.idemctl(&["backup", "list"]).exits(0).says("old.jsonl is not counted: ").says(says);
    assert_eq!(server.size(), 1);
}
