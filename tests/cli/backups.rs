//! `idemctl backup` from the outside.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::support::{DONE, Server};

const DAY: Duration = Duration::from_secs(86_400);

/// A server with the backups of two purges.
fn backed_up() -> Server {
    let server = Server::start();
    for key in ["idempotency:a", "idempotency:b"] {
        server.set(key, DONE, 50_000);
        server.idemctl(&["purge", "--all", "--yes"]).exits(0);
    }
    server
}

fn files(server: &Server) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(server.state("backups")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Lets a file look as if it was written so long ago.
fn age(file: &PathBuf, ago: Duration) {
    fs::File::options()
        .append(true)
        .open(file)
        .unwrap()
        .set_modified(SystemTime::now() - ago)
        .unwrap();
}

#[test]
fn a_backup_is_listed_with_its_operation_and_where_it_comes_from() {
    let server = backed_up();
    let run = server.idemctl(&["backup", "list", "-o", "json"]).exits(0);
    run.says("2 backups (");
    let backups = run.json()["backups"].clone();
    let op = server.audited()[0]["op"].clone();
    assert_eq!((&backups[0]["op"], &backups[0]["command"]), (&op, &"purge".into()));
    assert_eq!((&backups[0]["redis_keys"], &backups[0]["state"]), (&1.into(), &"complete".into()));
    assert_eq!(backups[0]["from"]["address"], server.socket().display().to_string());
    assert_eq!(backups[0]["bytes"], fs::metadata(&files(&server)[0]).unwrap().len());
    server.idemctl(&["backup", "list"]).exits(0).shows("OP ").shows("-purge-");
}

#[test]
fn damaged_backups_and_other_files_are_told() {
    let server = backed_up();
    let file = &files(&server)[0];
    let text = fs::read_to_string(file)
        .unwrap()
        .replace("\"state\":\"completed\"", "\"state\":\"COMPLETED\"");
    fs::write(file, text).unwrap();
    fs::write(server.state("backups/notes.txt"), "remember the milk").unwrap();
    let run = server.idemctl(&["backup", "list", "-o", "jsonl"]).exits(0);
    run.says("notes.txt is not counted: ");
    server.idemctl(&["config", "check"]).exits(1).shows("notes.txt").shows("purge-");
    let states: Vec<_> =
        run.json_lines().iter().map(|line| line["state"].as_str().unwrap().to_owned()).collect();
    assert!(
        states.contains(&"damaged".to_owned()) && states.contains(&"complete".to_owned()),
        "{states:?}"
    );
}

#[test]
fn old_backups_go_after_a_question_and_are_missed_by_the_log() {
    let server = backed_up();
    let all = files(&server);
    age(&all[0], DAY * 40);
    let prune = |more: &[&str]| {
        server.idemctl(&[&["backup", "prune", "--older-than", "30d"], more].concat())
    };
    prune(&[]).exits(2).says("cannot prompt without a terminal").shows("-purge-");
    prune(&["--dry-run"]).exits(0).says("1 backup (").says("nothing was");
    assert_eq!(files(&server), all);
    prune(&["--yes"]).exits(0).says("Deleted 1 backup (");
    assert_eq!(files(&server), all[1..]);
    let log = server.idemctl(&["log", "-o", "jsonl"]).json_lines();
    assert_eq!(
        (&log[0]["backup_is_there"], &log[1]["backup_is_there"]),
        (&false.into(), &true.into())
    );
    prune(&["--yes"]).exits(0).says("None of the 1 backups");
}

/// Rule: what is no backup stays, whatever its name and age. An empty file is one of a run that was killed before its first
/// change.
#[test]
fn what_is_no_backup_is_never_deleted() {
    let server = backed_up();
    let kept = server.folder().join("kept");
    fs::rename(&files(&server)[0], &kept).unwrap();
    let folder = server.state("backups");
    let audit = server.audit().join("log.jsonl");
    fs::copy(audit, folder.join("2020-01-01T000000.000Z-purge-1.jsonl")).unwrap();
    fs::write(folder.join("empty.jsonl"), "").unwrap();
    symlink(&kept, folder.join("link.jsonl")).unwrap();
    fs::create_dir(folder.join("folder.jsonl")).unwrap();
    for file in files(&server).iter().filter(|file| file.is_file()) {
        age(file, DAY * 400);
    }
    server
        .idemctl(&["backup", "prune", "--older-than", "30d", "--yes"])
        .exits(0)
        .says("Deleted 2 backups");
    let left: Vec<_> =
        files(&server).iter().map(|file| file.file_name().unwrap().to_owned()).collect();
    let expected = ["2020-01-01T000000.000Z-purge-1.jsonl", "folder.jsonl", "link.jsonl"];
    assert_eq!(left, expected);
    assert!(kept.is_file());
}

/// Rule: a backup whose operation still runs stays.
#[test]
fn a_backup_that_is_being_written_stays() {
    let server = backed_up();
    let file = files(&server).remove(0);
    age(&file, DAY * 40);
    let writer = fs::File::options().append(true).open(&file).unwrap();
    writer.lock().unwrap();
    let run = server.idemctl(&["backup", "prune", "--older-than", "30d", "--yes"]).exits(0);
    run.says("its operation has not ended yet");
    assert!(file.is_file());
    writer.unlock().unwrap();
    server.idemctl(&["backup", "prune", "--older-than", "30d", "--yes"]).exits(0);
    assert!(!file.is_file());
}

#[test]
fn no_backups_yet_is_no_error() {
    let server = Server::start();
    server.idemctl(&["backup", "list"]).exits(0).says("0 backups");
    server.idemctl(&["backup", "prune", "--older-than", "1d", "--yes"]).exits(0);
    server.idemctl(&["backup", "prune", "--yes"]).exits(2);
}

/// True once the trace of a run shows that its backup is on the disk, asked at the moment when the change is sent. A call that
/// another thread interrupts is two lines, and the second one has no path.
fn is_synced_before_change(trace: &str) -> bool {
    let mut syncing = None;
    let mut is_synced = false;
    for line in trace.lines() {
        let thread = line.split_whitespace().next();
        let is_done = line.ends_with("= 0");
        if line.contains("fdatasync(") && line.contains("/backups/") {
            is_synced |= is_done;
            syncing = thread;
        } else if line.contains("fdatasync resumed") && thread == syncing {
            is_synced |= is_done;
        } else if line.contains("UNLINK") {
            return is_synced;
        }
    }
    panic!("nothing was removed:\n{trace}");
}

/// Rule: a backup is on the disk before its records are changed, so that a machine that stops in between loses none. No file
/// system says what is on its disk: the test reads the system calls.
#[test]
fn a_backup_is_on_the_disk_before_its_records_change() {
    let server = Server::start();
    server.set("idempotency:a", DONE, 50_000);
    let mut purge = server.command();
    purge.args(["purge", "--all", "--yes"]);
    let trace = server.folder().join("trace");
    let mut traced = Command::new("strace");
    traced.args(["-f", "-y", "-s", "100000", "-e", "trace=fdatasync,write,writev,sendto,sendmsg"]);
    traced.arg("-o").arg(&trace).arg(purge.get_program()).args(purge.get_args()).env_clear();
    for (name, value) in purge.get_envs() {
        traced.env(name, value.unwrap_or_default());
    }
    let Ok(run) = traced.output() else {
        eprintln!("left out: strace is not here");
        return;
    };
    let trace = fs::read_to_string(trace).unwrap_or_default();
    let stderr = String::from_utf8_lossy(&run.stderr);
    if stderr.contains("ptrace") && trace.is_empty() {
        eprintln!("left out: processes may not be traced here");
        return;
    }
    assert!(run.status.success(), "{stderr}");
    assert_eq!(server.size(), 0);
    assert!(is_synced_before_change(&trace), "{trace}");
}

#[test]
fn a_change_that_is_sent_before_the_backup_is_synced_is_noticed() {
    let sync = "1 fdatasync(9</h/backups/a.jsonl>) = 0\n";
    let halves = [
        "1 fdatasync(9</h/backups/a.jsonl> <unfinished ...>\n",
        "2 write(3, \"\")\n",
        "1 <... fdatasync resumed>) = 0\n",
    ]
    .concat();
    let of_log = "1 fdatasync(9</h/audit/log.jsonl>) = 0\n";
    let failed = "1 fdatasync(9</h/backups/a.jsonl>) = -1 EIO (Input/output error)\n";
    let change = "2 sendto(8<socket:[1]>, \"EVAL ... UNLINK\") = 15\n";
    assert!(is_synced_before_change(&[sync, change].concat()));
    assert!(is_synced_before_change(&[&halves, change].concat()));
    for early in [[change, sync], [of_log, change], [failed, change]] {
        assert!(!is_synced_before_change(&early.concat()), "{early:?}");
    }
}
