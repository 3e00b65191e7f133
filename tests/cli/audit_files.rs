//! The files of the audit folder: what a kill, a full disk or another run leaves of them, and which command opens which.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::{DONE, FOREVER, PENDING, Run, Server, Signal, at_once, audit, bounded, until};
use crate::undo::unfinished::ended_by;

const KEY: &str = "idempotency:a";
const UNLOCK: [&str; 3] = ["force-unlock", "a", "--yes"];
const EXTEND: [&str; 5] = ["extend", "a", "--for", "4m", "--yes"];

fn log(server: &Server) -> Vec<Value> {
    server.idemctl(&["log", "-o", "jsonl"]).exits(0).json_lines()
}

fn pttl(server: &Server) -> i64 {
    server.send(&[b"PTTL", KEY.as_bytes()])
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap()
}

fn expiries(server: &Server) -> Vec<Value> {
    let text = fs::read_to_string(server.audit().join("expiries.jsonl")).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "{text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Runs idemctl, which is killed right before its first such system call with this file. A later one cannot be asked for,
/// because strace counts the calls of each thread. `None` where processes may not be traced.
pub fn killed(server: &Server, words: &[&str], file: &Path, call: &str) -> Option<Run> {
    let trace = server.folder().join("trace");
    let (trace, file) = (trace.display(), file.display());
    let kills = format!(
        "set -- strace -f -qq -o {trace} -P {file} -e trace={call} -e inject={call}:signal=KILL:when=1 \"$@\""
    );
    let run = bounded(server.command().args(words), &kills);
    if run.stderr.contains("ptrace") || run.stderr.contains("strace: not found") {
        eprintln!("left out: processes may not be traced here");
        return None;
    }
    assert!([-1, 137].contains(&run.code), "{}", run.all());
    Some(run)
}

/// Rule: an operation is in the log before it changes anything. Revert: with the beginning after the first batch, the lock
/// is gone.
#[test]
fn a_run_that_is_killed_before_its_beginning_is_written_changed_nothing() {
    let server = Server::holding(&[(KEY, PENDING, FOREVER)]);
    let file = server.audit().join("log.jsonl");
    if killed(&server, &UNLOCK, &file, "write").is_none() {
        return;
    }
    assert!(server.get(KEY).is_some());
    assert_eq!(log(&server), [Value::Null; 0]);
    server.idemctl(&UNLOCK).exits(0);
    assert_eq!(log(&server).len(), 1);
}

/// Rule: without an end, the totals are those of the details. Revert: without reading them, 0 Redis keys.
#[test]
fn a_run_that_is_killed_before_its_end_is_written_is_shown_and_undone() {
    let server = Server::holding(&[(KEY, PENDING, FOREVER)]);
    let file = server.audit().join("log.jsonl");
    fs::create_dir_all(server.audit()).unwrap();
    fs::write(server.audit().join("expiries.jsonl"), "").unwrap();
    // The log is read first when its last line is checked, before the second line is written.
    if killed(&server, &UNLOCK, &file, "read").is_none() {
        return;
    }
    let unlock = log(&server).remove(0);
    assert_eq!((&unlock["state"], &unlock["redis_keys"]), (&json!("unended"), &json!(1)));
    server.idemctl(&["log", "show"]).exits(0).shows(KEY);
    assert_eq!(server.get(KEY), None);
    server.idemctl(&["undo", "--yes"]).exits(0).says("Reverted 1 of 1");
    assert!(server.get(KEY).is_some());
}

/// Rule: the former deadline is on the disk before a lock is extended. Revert: without `expect_expiries`, there is no line.
#[test]
fn a_run_that_is_killed_after_an_extension_leaves_the_former_deadline() {
    let server = Server::start();
    let former = now_ms() + 50_000;
    let at = former.to_string();
    server.send::<()>(&[b"SET", KEY.as_bytes(), PENDING.as_bytes(), b"PXAT", at.as_bytes()]);
    let extends = |sent: &[u8]| sent.windows(9).any(|part| part == b"PEXPIREAT");
    ended_by(&server, &EXTEND, extends, Signal::KILL);
    assert_eq!(expiries(&server)[0]["before"]["expires_at_ms"], former);
}

/// Rule: a lock is not extended if its former deadline cannot be written.
#[test]
fn nothing_is_extended_if_the_former_deadline_cannot_be_written() {
    let server = Server::holding(&[(KEY, PENDING, 50_000)]);
    fs::create_dir_all(server.audit()).unwrap();
    std::os::unix::fs::symlink("/dev/full", server.audit().join("expiries.jsonl")).unwrap();
    server.idemctl(&EXTEND).exits(2).says("expiries.jsonl");
    assert!(pttl(&server) <= 50_000);
}

/// A line of `expiries.jsonl` whose deadline is two days ago, or as many milliseconds later.
fn past(key: &str, later: u64) -> String {
    let at = now_ms() - 2 * 86_400_000 + later;
    let identity = |at: u64| json!({ "type": "string", "sha256": "00".repeat(32), "bytes": 1, "expires_at_ms": at });
    let line = json!({
        "at": "2026-01-01T00:00:00Z", "who": "ops", "host": "h", "server": "s", "command": "reconcile",
        "schema": "go-middleware", "key": key, "redis_key": format!("idempotency:{key}"), "what": "extended",
        "reason": null, "backup": null, "op": "0123456789abcdef",
        "before": identity(at - 1_000), "after": identity(at),
    });
    format!("{line}\n")
}

/// A server with a lock, and a state folder with two locks that expired two days ago. The first of them was extended again.
fn with_past() -> Server {
    let server = Server::holding(&[(KEY, PENDING, 50_000)]);
    fs::create_dir_all(server.audit()).unwrap();
    let lines = [past("again", 0), past("again", 4 * 86_400_000), past("gone", 0)].concat();
    fs::write(server.audit().join("expiries.jsonl"), lines).unwrap();
    server
}

/// Rule: what has expired goes at the next write, and what the former deadline of a lock is found by stays. Revert: if each
/// line goes by its own deadline, the first one is gone, too.
#[test]
fn expired_locks_are_dropped() {
    let server = with_past();
    server.idemctl(&EXTEND).exits(0);
    let lines = expiries(&server);
    let keys: Vec<_> = lines.iter().map(|line| line["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["again", "again", "a", "a"]);
    assert_eq!(lines[3]["after"], server.audited()[0]["after"]);
}

/// Rule: the file is whole at any time, the old one or the new one.
#[test]
fn a_run_that_is_killed_while_the_file_is_replaced_loses_no_line() {
    let server = with_past();
    let file = server.audit().join("expiries.jsonl");
    if killed(&server, &EXTEND, &file, "/rename").is_none() {
        return;
    }
    assert_eq!(expiries(&server).len(), 5);
    assert_eq!(log(&server)[0]["state"], "unended");
    server.idemctl(&["extend", "a", "--for", "2h", "--yes"]).exits(0);
    assert_eq!(expiries(&server).len(), 6);
}

/// Rule: a command that reads opens no file but the expiries. Revert: if `extended` reads the details, the age is shown.
#[test]
fn reading_commands_open_neither_the_log_nor_the_details() {
    let server = Server::holding(&[(KEY, PENDING, 50_000)]);
    let reads = || {
        let inspect = server.idemctl(&["inspect", "a", "-o", "json"]).exits(0).json();
        let list = server.idemctl(&["list", "-o", "json"]).exits(0).json();
        let check = server.idemctl(&["check", "-o", "json"]);
        let ages = [inspect["records"][0]["age_ms"].clone(), list["records"][0]["age_ms"].clone()];
        (ages, check.code)
    };
    server.idemctl(&EXTEND).exits(0);
    let before = reads();
    for file in [server.details(), vec![server.audit().join("log.jsonl")]].concat() {
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
    }
    assert_eq!(reads(), before);
    assert_eq!(before.0[0], Value::Null);
    server.idemctl(&["log"]).exits(2);
}

/// Rule: without the file, it is written again from the details.
#[test]
fn the_expiries_are_read_from_the_details_if_they_are_missing() {
    let server = Server::holding(&[(KEY, PENDING, 50_000)]);
    server.idemctl(&EXTEND).exits(0);
    fs::remove_file(server.audit().join("expiries.jsonl")).unwrap();
    let age = || {
        let run = server.idemctl(&["inspect", "a", "-o", "json"]).exits(0);
        run.json()["records"][0]["age_ms"].clone()
    };
    assert_eq!(age(), Value::Null);
    assert_eq!(expiries(&server)[0]["after"], server.audited()[0]["after"]);
    fs::remove_dir_all(server.audit()).unwrap();
    assert_ne!(age(), Value::Null);
    assert!(!server.audit().exists(), "a command that reads creates no folder");
}

/// Rule: details that are not as the operation left them are told. Revert: without the comparison, nothing is said.
#[test]
fn damaged_details_are_told() {
    let server = Server::holding(&[(KEY, DONE, 50_000), ("idempotency:b", DONE, 50_000)]);
    server.idemctl(&["purge", "--all", "--yes"]).exits(0);
    let file = server.details().remove(0);
    let text = fs::read_to_string(&file).unwrap();
    let beginning: Vec<_> = text.lines().take(2).collect();
    fs::write(&file, beginning.join("\n") + "\n").unwrap();
    let says = "are damaged, so some of its changes may be missing";
    server.idemctl(&["log", "show"]).exits(0).says(says).shows("Changes     2");
    server.idemctl(&["log", "--records"]).exits(0).says(says);
    server.idemctl(&["config", "check"]).exits(1).shows(says);
    server.idemctl(&["undo", "--yes"]).exits(0).says(says).says("Reverted 2 of 2");
}

/// Rule: an operation whose beginning is damaged is in the log all the same.
#[test]
fn an_operation_whose_beginning_is_damaged_is_found_by_its_details() {
    let server = Server::holding(&[(KEY, DONE, 50_000)]);
    server.idemctl(&["purge", "--all", "--yes"]).exits(0);
    let file = server.audit().join("log.jsonl");
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("\"begin\"", "\"bogin\"")).unwrap();
    let purge = log(&server).remove(0);
    assert_eq!((&purge["command"], &purge["redis_keys"]), (&json!("purge"), &json!(1)));
    server.idemctl(&["undo", "--yes"]).exits(0).says("Reverted 1 of 1");
}

/// Rule: an operation without an end comes first, whatever the limit.
#[test]
fn an_operation_that_did_not_end_is_the_first() {
    let server = Server::holding(&[(KEY, PENDING, 50_000)]);
    server.idemctl(&EXTEND).exits(0);
    audit::remove_ends(&server.audit());
    server.idemctl(&UNLOCK).exits(0);
    server.idemctl(&["undo", "--yes"]).exits(0);
    let commands = |words: &[&str]| {
        let run = server.idemctl(&[&["log", "-o", "jsonl"], words].concat()).exits(0);
        let lines = run.json_lines();
        lines.iter().map(|line| line["command"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(commands(&[]), ["extend", "force-unlock", "undo"]);
    assert_eq!(commands(&["--limit", "2"]), ["extend", "undo"]);
    server.idemctl(&["log", "--limit", "2"]).shows("unended").says("2 of 3 shown");
}

/// Rule: the lines of runs at the same time are whole, and each operation has both of its lines.
#[test]
fn runs_at_the_same_time_write_whole_lines() {
    let keys: Vec<_> = (0..8).map(|number| format!("k{number}")).collect();
    let server =
        Server::filled(keys.iter().map(|key| (format!("idempotency:{key}"), PENDING)), 50_000);
    at_once(&keys, |key| server.idemctl(&["extend", key, "--for", "1h", "--yes"]).exits(0));
    assert_eq!(log(&server).len(), 8);
    assert!(log(&server).iter().all(|operation| operation["state"] == "ended"));
    assert_eq!((expiries(&server).len(), server.audited().len()), (16, 8));
    server.idemctl(&["config", "check"]).exits(0);
}

/// Rule: a line goes to the file that is there, not to the one that was replaced while the run waited for its turn. Revert:
/// without the comparison of the inodes, its beginning is lost.
#[test]
fn a_run_that_waited_writes_to_the_new_file() {
    let server = Server::holding(&[(KEY, PENDING, 50_000)]);
    server.idemctl(&EXTEND).exits(0);
    let file = server.audit().join("log.jsonl");
    let old = File::open(&file).unwrap();
    old.lock().unwrap();
    let mut run =
        server.command().args(UNLOCK).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let open_files = PathBuf::from(format!("/proc/{}/fd", run.id()));
    let is_open = || {
        let links = fs::read_dir(&open_files).into_iter().flatten().flatten();
        links.into_iter().any(|link| fs::read_link(link.path()).is_ok_and(|to| to == file))
    };
    // The details of its operation are created before its line is written to the log.
    let is_begun = || fs::read_dir(server.audit()).unwrap().count() == 4;
    until("it waits", || run.try_wait().unwrap().is_some() || is_begun() && is_open());
    let new = server.audit().join("new");
    fs::copy(&file, &new).unwrap();
    fs::rename(&new, &file).unwrap();
    // It waits a second, and then goes on: on a machine as busy as that, nothing can be told.
    let went_on = old.metadata().unwrap().len() != fs::metadata(&file).unwrap().len();
    drop(old);
    assert!(run.wait().unwrap().success());
    let lines = fs::read_to_string(&file).unwrap().lines().count();
    assert!(went_on || lines == 4, "{lines} lines");
}

/// Rule: the folder names keys and people, so only its owner reads it.
#[test]
fn the_folder_is_its_owners() {
    let server = Server::holding(&[(KEY, PENDING, 50_000)]);
    server.idemctl(&EXTEND).exits(0);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&server.audit()), 0o700);
    let files: Vec<_> =
        fs::read_dir(server.audit()).unwrap().map(|file| mode(&file.unwrap().path())).collect();
    assert_eq!(files, [0o600; 3]);
}
