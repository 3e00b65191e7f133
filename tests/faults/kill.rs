//! Bulk changes that end in the middle: killed, interrupted, out of disk, the server's reply lost. What is gone from the
//! server is in the backup, always.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::backup;
use crate::support::proxy;
use crate::support::{PENDING, Run, Running, Runs, Server, Signal, at_once, bounded};

/// The commands that remove many records, and how they are asked to remove all that `fill` makes.
const REMOVING: &[&[&str]] = &[
    &["sweep", "--orphaned", "--yes", "--grace", "0"],
    &["purge", "--state", "in-progress", "--yes", "--all"],
];

const LOCKS: usize = 1_500;

/// Redis keys a call removes.
const BATCH: usize = 100;

/// Redis keys that are backed up at a time: a command that dies leaves at most so many in the backup that it had not come
/// to.
const BACKED_UP: usize = 500;

fn fill(server: &Server, count: usize) {
    server.send::<()>(&[b"FLUSHALL"]);
    // Of many lengths, in a form that the service writes.
    let value = |index: usize| format!(r#"{{"status":{}"PENDING"}}"#, " ".repeat(index % 60));
    server.fill((0..count).map(|index| (format!("idempotency:{index}"), value(index))), 0);
    let _ = fs::remove_dir_all(server.folder().join(".local"));
}

fn gone(server: &Server, count: usize) -> BTreeSet<Vec<u8>> {
    let there: BTreeSet<Vec<u8>> = server.send(&[b"KEYS", b"*"]);
    (0..count)
        .map(|index| format!("idempotency:{index}").into_bytes())
        .filter(|key| !there.contains(key))
        .collect()
}

/// What the backups in the default folder hold.
fn backed_up(server: &Server) -> BTreeSet<Vec<u8>> {
    let folder = fs::read_dir(server.state("backups"));
    folder.into_iter().flatten().flat_map(|file| backup::held(&file.unwrap().path())).collect()
}

/// How long the command takes when nothing ends it.
fn whole(server: &Server, words: &[&str]) -> Duration {
    fill(server, LOCKS);
    let began = Instant::now();
    server.idemctl(words).exits(0);
    assert_eq!(gone(server, LOCKS).len(), LOCKS);
    assert_eq!(backed_up(server).len(), LOCKS);
    began.elapsed()
}

/// Starts a command and comes back in the middle of it: every other round at a random moment, in the rounds between once a
/// random part of the locks is gone, however long what comes before takes here.
fn in_the_middle(server: &Server, words: &[&str], (round, whole): (u32, Duration)) -> Child {
    let mut child = server.command().args(words).start();
    if round % 2 == 0 {
        thread::sleep(whole.mul_f64(fastrand::f64() * 1.1));
        return child;
    }
    let enough = LOCKS - fastrand::usize(1..LOCKS * 3 / 4);
    let mut connection = server.connect();
    while redis::cmd("DBSIZE").query::<usize>(&mut connection).unwrap() > enough
        && child.try_wait().unwrap().is_none()
    {
        thread::sleep(Duration::from_millis(1));
    }
    child
}

/// Does something with each of the commands, at a time, with a server of its own.
fn each_removing(work: impl Fn(&Server, &[&str]) + Sync) {
    at_once(REMOVING, |words| work(&Server::start(), words));
}

#[test]
fn killed_at_any_moment_every_record_that_is_gone_is_in_the_backup() {
    each_removing(|server, words| {
        let whole = whole(server, words);
        let mut some_gone = 0;
        for round in 0..25 {
            fill(server, LOCKS);
            let mut child = in_the_middle(server, words, (round, whole));
            child.kill().unwrap();
            child.wait().unwrap();
            let (gone, held) = (gone(server, LOCKS), backed_up(server));
            assert!(gone.is_subset(&held), "{} are gone, {} in the backup", gone.len(), held.len());
            assert!(
                held.len() - gone.len() <= BACKED_UP,
                "{} are gone, {} in the backup",
                gone.len(),
                held.len()
            );
            some_gone += usize::from(!gone.is_empty() && gone.len() < LOCKS);
        }
        assert!(some_gone > 3, "{words:?}: only {some_gone} of 25 were killed while removing");
    });
}

#[test]
fn what_a_killed_command_removed_can_be_restored() {
    each_removing(|server, words| {
        let whole = whole(server, words);
        fill(server, LOCKS);
        let mut child = in_the_middle(server, words, (1, whole));
        child.kill().unwrap();
        child.wait().unwrap();
        let run = server.idemctl(&["restore", backup::only(server).to_str().unwrap(), "--yes"]);
        assert!(run.code == 0 || run.code == 3, "{}", run.all());
        assert_eq!(gone(server, LOCKS), BTreeSet::new());
    });
}

#[test]
fn interrupted_the_backup_holds_exactly_what_is_gone() {
    each_removing(|server, words| {
        let whole = whole(server, words);
        let mut some_gone = 0;
        for round in 0..8 {
            fill(server, LOCKS);
            let child = in_the_middle(server, words, (round, whole));
            child.signal(Signal::INT);
            let run = child.ends();
            let gone = gone(server, LOCKS);
            assert_eq!(gone, backed_up(server), "{}", run.all());
            if gone.len() < LOCKS && !gone.is_empty() {
                some_gone += 1;
                run.exits(130).says(gone.len().to_string()).says("hint: ");
            }
        }
        assert!(some_gone > 0, "{words:?}: never interrupted while removing");
    });
}

/// Runs with files of at most so many blocks of 512 bytes, as on a disk that is full then.
fn with_room(server: &Server, blocks: usize, words: &[&str]) -> Run {
    bounded(server.command().args(words), &format!("trap '' XFSZ; ulimit -f {blocks}"))
}

#[test]
fn on_a_full_disk_nothing_goes_that_is_not_in_the_backup() {
    let server = Server::start();
    for words in REMOVING {
        fill(&server, LOCKS);
        with_room(&server, 8, words).exits(2).says("File too large").says("backups");
        assert_eq!(gone(&server, LOCKS), BTreeSet::new());
        assert_eq!(backed_up(&server), BTreeSet::new());
        fill(&server, LOCKS);
        let some = with_room(&server, 500, words).exits(3);
        let gone = gone(&server, LOCKS);
        assert!(!gone.is_empty() && gone.len() < LOCKS, "{}", some.all());
        assert_eq!(gone, backed_up(&server), "{}", some.all());
        // With less room the closing line is missing, too. The log has the reason, and the records of the backup come back.
        let file = backup::only(&server);
        let text = fs::read_to_string(&file).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with(r#"{"format":2,"end":"#));
        fs::write(&file, lines.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
        let listed = server.idemctl(&["backup", "list", "-o", "json"]).exits(0);
        let backup = listed.json()["backups"][0].clone();
        assert_eq!(backup["state"], "unended");
        assert!(backup["why"].as_str().unwrap().contains("File too large"), "{}", listed.all());
        listed.says("stopped early: ");
        let undo = server.idemctl(&["undo", "--yes"]);
        undo.says(format!("Reverted {} of {}", gone.len(), gone.len()));
    }
    server.send::<()>(&[b"FLUSHALL"]);
    server.set("idem:started:a", "x", 20_000);
    with_room(&server, 0, &["force-unlock", "a", "--yes"]).exits(2);
    assert!(server.get("idem:started:a").is_some());
}

/// Rule: a limit for the size of a file ends nothing between a change and its line in the audit log.
#[test]
fn a_limit_for_the_size_of_a_file_is_as_a_full_disk() {
    let server = Server::start();
    let log = server.audit().join("log.jsonl");
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    for words in [
        &["force-unlock", "a", "--yes"][..],
        &["extend", "a", "--for", "1h", "--yes"],
        &["purge", "a", "--state", "in-progress", "--yes"],
        &["sweep", "--orphaned", "--yes", "--grace", "0"],
    ] {
        match words[0] {
            "extend" => server.set("idempotency:a", PENDING, 50_000),
            _ => server.put("idempotency:a", PENDING),
        }
        fs::write(&log, "\n".repeat(9_000)).unwrap();
        let run = bounded(server.command().args(words), "ulimit -f 16").exits(2);
        run.says("File too large").says("nothing was changed");
        assert_eq!(server.get("idempotency:a").unwrap(), PENDING.as_bytes(), "{words:?}");
    }
}

/// Folders in which nothing can be created, for the superuser neither.
fn closed_folders(server: &Server) -> Vec<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = server.folder().join("read-only");
    let _ = fs::create_dir(&folder);
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).unwrap();
    let binds_us = fs::write(folder.join("probe"), "").is_err();
    let read_only = binds_us.then_some(folder);
    read_only.into_iter().chain(["/proc", "/dev/full"].map(PathBuf::from)).collect()
}

#[test]
fn where_the_backup_or_the_log_cannot_be_written_nothing_goes() {
    let server = Server::start();
    fill(&server, 150);
    for words in REMOVING {
        for folder in closed_folders(&server) {
            let file = folder.join("backup.jsonl");
            let run = server
                .idemctl(&[words, &["--backup", file.to_str().unwrap()][..]].concat())
                .exits(2);
            run.says("cannot write").says("nothing was changed");
            server.command().env("XDG_STATE_HOME", &folder).args(*words).run().exits(2);
        }
    }
    assert_eq!(gone(&server, 150), BTreeSet::new());
}

#[test]
fn a_lost_reply_is_cleared_up_by_reading_back() {
    for words in REMOVING {
        let server = Server::start();
        fill(&server, 150);
        let socket = proxy::breaks_at(&server, "change_many_if_same", true);
        // What follows on the broken connection may fail: the batch was cleared up all the same.
        let run = server.through(&socket, words);
        assert_ne!(run.code, 7, "{}", run.all());
        let gone = gone(&server, 150);
        assert!(gone.len() >= BATCH, "{}", run.all());
        assert_eq!(gone, backed_up(&server), "{}", run.all());
    }
}

#[test]
fn what_nobody_knows_is_outcome_unknown_and_stays_in_the_backup() {
    for words in REMOVING {
        let server = Server::start();
        fill(&server, 150);
        let socket = proxy::breaks_at(&server, "change_many_if_same", false);
        let run = server.through(&socket, words).exits(7);
        run.says("100 of 100 records");
        assert_eq!(backed_up(&server).len(), BATCH, "{}", run.all());
        let audit =
            server.idemctl(&["log", "--records", "--limit", "200", "-o", "jsonl"]).json_lines();
        assert!(audit.len() == BATCH && audit.iter().all(|line| line["what"] == "outcome-unknown"));
    }
}
