//! Whoever knows which owners are alive is asked.

use std::fs;
use std::time::{Duration, Instant};

use super::orphans::{PENDING, WITHOUT_GRACE, sweep};
use crate::support::{FOREVER, Runs as _, Server};

#[test]
fn a_lock_whose_owner_is_alive_stays() {
    let server = Server::start();
    for owner in ["alive", "dead", "odd 'name'; rm -rf $HOME", "slow"] {
        server.put(&format!("idem:started:{owner}"), owner);
        server.put(&format!("idem:started:{owner}-too"), owner);
    }
    server.put("idempotency:unknown", PENDING);
    let calls = server.folder().join("calls");
    let ask = format!(
        "echo \"$1|$IDEMCTL_OWNER\" >> {}; case $1 in alive) exit 0;; slow) sleep 60;; *) exit 1;; esac",
        calls.display()
    );
    let started = Instant::now();
    let run =
        sweep(&server, &[&WITHOUT_GRACE[..], &["-o", "json", "--owner-alive", &ask]].concat())
            .exits(3);
    assert!(started.elapsed() < Duration::from_secs(30), "one that hangs is not waited for");
    let json = run.json();
    assert_eq!((&json["done"], &json["skipped_alive"]), (&5.into(), &2.into()), "{json}");
    assert_eq!(json["owner_unknown"], 2, "{json}");
    run.says(
        "2 locks for which --owner-alive gave no result (no answer within 10s for owner slow)",
    );
    let left = [
        "idem:started:alive",
        "idem:started:alive-too",
        "idem:started:slow",
        "idem:started:slow-too",
    ];
    assert_eq!(server.keys(), left);
    let mut asked: Vec<_> = fs::read_to_string(calls).unwrap().lines().map(str::to_owned).collect();
    asked.sort();
    let odd = "odd 'name'; rm -rf $HOME";
    asked.dedup();
    assert_eq!(asked, ["alive|alive", "dead|dead", &format!("{odd}|{odd}"), "slow|slow"]);
}

#[test]
fn a_command_that_cannot_be_run_makes_no_owner_dead() {
    let server = Server::holding(&[("idem:started:a", "worker-1", FOREVER)]);
    let run = sweep(&server, &[&WITHOUT_GRACE[..], &["--owner-alive", "no-such-command"]].concat())
        .exits(2);
    run.says("cannot run the command (exit status 127 for owner worker-1: idemctl: ");
    assert!(server.get("idem:started:a").is_some());
}

/// Rule: an error of the command says nothing about the owner.
#[test]
fn a_command_that_fails_makes_no_owner_dead() {
    let server = Server::holding(&[("idem:started:a", "worker-1", FOREVER)]);
    for (command, why) in [
        ("kill -9 $$", "killed by signal 9 for owner worker-1"),
        ("kill -0 \"$1", "exit status 2 for owner worker-1: "),
        ("test \"$1\" -eq 1", "exit status 2 for owner worker-1: "),
        (
            "grep -q \"$1\" /no/such/registry",
            "exit status 2 for owner worker-1: grep: /no/such/registry: No such file",
        ),
        (
            "printf 'ssh: \\033[31mno host\\n' >&2; exit 255",
            "exit status 255 for owner worker-1: ssh: \\x1b[31mno host)",
        ),
        (
            "head -c 1000000 /dev/zero | tr '\\0' y >&2; sleep 20 & exit 3",
            "exit status 3 for owner worker-1: yyy",
        ),
    ] {
        let run = sweep(
            &server,
            &[&WITHOUT_GRACE[..], &["-o", "json", "--owner-alive", command]].concat(),
        )
        .exits(3);
        run.says(format!("Left unchanged: 1 lock for which --owner-alive gave no result ({why}"));
        let json = run.json();
        let left = (&json["done"], &json["skipped_alive"], &json["owner_unknown"]);
        assert_eq!(left, (&0.into(), &0.into(), &1.into()), "{command}: {json}");
        assert!(server.get("idem:started:a").is_some(), "{command}");
    }
    sweep(&server, &[&WITHOUT_GRACE[..], &["--owner-alive", "exit 1"]].concat()).exits(0);
    assert!(server.get("idem:started:a").is_none());
}

/// Rule: nobody is asked about part of an owner.
#[test]
fn an_owner_that_was_read_in_part_is_unknown() {
    let server = Server::holding(&[("idem:started:long", "o".repeat(5_000), FOREVER)]);
    server.put("idem:started:whole", "w".repeat(4_096));
    let late =
        format!(r#"{{"status":"in-progress","fingerprint":"{}","owner":"x"}}"#, "f".repeat(5_000));
    server.put("idem:started:late", &late);
    let calls = server.folder().join("calls");
    let ask = format!("printf '%s' \"$1\" | wc -c >> {}; exit 1", calls.display());
    let run =
        sweep(&server, &[&WITHOUT_GRACE[..], &["-o", "json", "--owner-alive", &ask]].concat())
            .exits(3);
    run.says("for which --owner-alive gave no result (the value of l")
        .says("is too long to be read completely)");
    assert_eq!(run.json()["owner_unknown"], 2);
    assert_eq!(fs::read_to_string(calls).unwrap().trim(), "4096");
    assert_eq!(server.keys(), ["idem:started:late", "idem:started:long"]);
}

/// Rule: an owner that no argument can hold is unknown.
#[test]
fn an_owner_with_a_zero_byte_is_unknown() {
    let server = Server::holding(&[("idem:started:zero", "a\0b", FOREVER)]);
    let run =
        sweep(&server, &[&WITHOUT_GRACE[..], &["-o", "json", "--owner-alive", "exit 1"]].concat())
            .exits(3);
    run.says("arguments and variables cannot contain a zero byte, as needed for owner a\\x00b");
    assert_eq!(server.keys(), ["idem:started:zero"]);
}

/// Rule: `--owner-alive` is neither advised nor promised where no owner is stored. Revert: without
/// `has_no_owner`, the preview promises what the change leaves.
#[test]
fn nobody_is_asked_about_a_lock_without_owner() {
    let server = Server::holding(&[("idem:k", r#"{"status":"IN_PROGRESS"}"#, 20_000_000)]);
    let base = ["sweep", "--older-than", "1m", "--schema", "express", "--lock-ttl", "10h"];
    for options in [&["--dry-run"][..], &["--owner-alive", "exit 1", "--dry-run"]] {
        let run = server.idemctl(&[&base[..], options].concat()).exits(0);
        run.says("Left to expire: 1 lock.");
        assert!(!run.all().contains("executes the operation"), "{}", run.all());
    }
    let yes = ["--owner-alive", "exit 1", "--yes", "--grace", "0s", "-o", "json"];
    let run = server.idemctl(&[&base[..], &yes].concat()).exits(0).json();
    assert_eq!((&run["done"], &run["left_to_expire"]), (&0.into(), &1.into()), "{run}");
    assert_eq!(server.keys(), ["idem:k"]);
}

/// Rule: whoever relies on `--owner-alive` is told of the locks that it says nothing about. Revert:
/// without `without_owner`.
#[test]
fn a_lock_without_owner_that_is_swept_all_the_same_is_warned_of() {
    let server = Server::holding(&[("idem:k", r#"{"status":"IN_PROGRESS"}"#, FOREVER)]);
    let words = ["sweep", "--orphaned", "--schema", "express", "--owner-alive", "exit 0"];
    for confirm in ["--dry-run", "--yes"] {
        let run = server.idemctl(&[&words[..], &["--grace", "0s", confirm]].concat()).exits(0);
        run.says("warning: --owner-alive is not asked about 1 lock without an owner");
    }
    assert!(server.keys().is_empty());
    server.put("idem:started:k", "worker-1");
    let words = ["sweep", "--orphaned", "--schema", "event-driven", "--owner-alive", "exit 0"];
    let run = server.idemctl(&[&words[..], &["--grace", "0s", "--dry-run"]].concat()).exits(0);
    assert!(!run.all().contains("without an owner"), "{}", run.all());
}

/// Locks whose value has the owner and the time.
const TIMED: &str = r#"format = 2
name = "timed"
keys = { lock = "timed:{key}" }
ttl = { lock = "1h" }
[[value]]
name = "held"
has = ["/by"]
state = "in-progress"
fields = { owner = "/by", created_at = "/at" }
"#;

/// The script of docs/operations.md, which compares times.
fn documented_script() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operations.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, script) = page.split_once("```sh\n#!/bin/sh\n").expect("a script");
    script.split_once("```").unwrap().0.to_owned()
}

/// Rule: a process that started after the lock does not prove its owner alive, although it has the
/// owner's name. Revert: without IDEMCTL_LOCK_STARTED, the script of the document keeps both.
#[test]
fn a_process_that_is_younger_than_the_lock_is_not_its_owner() {
    let server = Server::start();
    server.describe("timed", &[("schema.toml", TIMED)]);
    let script = server.folder().join("owner-alive");
    fs::write(&script, documented_script()).unwrap();
    let seconds: Vec<u64> = server.send(&[b"TIME"]);
    let now = seconds[0] * 1_000;
    // This process has run for less than a day, and longer than no time at all.
    let host = std::process::Command::new("uname").arg("-n").output().unwrap().stdout;
    let me = format!("{}:{}", String::from_utf8(host).unwrap().trim(), std::process::id());
    for (key, at) in [("old", now - 86_400_000), ("new", now)] {
        server.put(&format!("timed:{key}"), format!(r#"{{"by":"{me}","at":{at}}}"#));
    }
    server.put("timed:elsewhere", format!(r#"{{"by":"no-such-host:1","at":{now}}}"#));
    let ask = format!("sh {} \"$1\"", script.display());
    let words = ["--owner-alive", &ask, "--schema", "timed", "-o", "json"];
    let run = sweep(&server, &[&WITHOUT_GRACE[..], &words].concat()).exits(3);
    let json = run.json();
    let counts = [&json["done"], &json["skipped_alive"], &json["owner_unknown"]];
    assert_eq!(counts, [1, 1, 1], "{}", run.all());
    assert_eq!(server.keys(), ["timed:elsewhere", "timed:new"]);
}

/// Rule: the command gets the known facts of the lock, and no variable that idemctl inherited.
#[test]
fn a_command_gets_the_facts_of_the_lock() {
    let server = Server::start();
    server.describe("timed", &[("schema.toml", TIMED)]);
    let calls = server.folder().join("calls");
    let ask = format!(
        "echo \"$IDEMCTL_KEY $IDEMCTL_SCHEMA $IDEMCTL_OWNER ${{IDEMCTL_LOCK_STARTED-none}} \
        ${{IDEMCTL_LOCK_STARTED_AFTER-none}} ${{IDEMCTL_DEADLINE-none}}\" > {}; exit 0",
        calls.display()
    );
    let asked = |more: &[&str]| {
        let words = ["sweep", "--schema", "timed", "--yes", "--grace", "0s"];
        let mut command = server.command();
        command.env("IDEMCTL_LOCK_STARTED", "7").env("IDEMCTL_DEADLINE", "7");
        command.args([&words[..], &["--owner-alive", &ask], more].concat()).run().exits(0);
        fs::read_to_string(&calls).unwrap().trim().to_owned()
    };
    server.put("timed:a", r#"{"by":"w 1","at":1700000000000}"#);
    assert_eq!(asked(&["--orphaned"]), "a timed w 1 1700000000000 none none");
    server.put("timed:a", r#"{"by":"w 1"}"#);
    assert_eq!(asked(&["--orphaned"]), "a timed w 1 none none none");
    let seconds: Vec<u64> = server.send(&[b"TIME"]);
    let end = seconds[0] * 1_000 + 3_600_000;
    server.send::<()>(&[b"PEXPIREAT", b"timed:a", end.to_string().as_bytes()]);
    let got = asked(&["--older-than", "1s", "--lock-ttl", "2h"]);
    let times = got.strip_prefix("a timed w 1 none ").expect("no time of its own");
    let (after, deadline) = times.split_once(' ').unwrap();
    // idemctl computes both from the time left, in milliseconds.
    for (got, wanted) in [(after, end - 7_200_000), (deadline, end)] {
        assert!(got.parse::<u64>().unwrap().abs_diff(wanted) < 50, "{got} {wanted}");
    }
}
