//! Locks that the operator names: as arguments, in a file, on stdin, or in a provider's file.

use std::fs;
use std::process::Stdio;

use crate::provider::{BY_KEY, LOCK, lock, program, state, words};
use crate::support::terminal::{answered, on_terminal};
use crate::support::{FOREVER, Running as _, Runs as _, Server, binary};

fn seeded() -> Server {
    Server::holding(&[
        ("idem:done-1", LOCK, FOREVER),
        ("idem:done-2", LOCK, FOREVER),
        ("idem:not-1", LOCK, FOREVER),
        ("idem:young", LOCK, 299_000),
    ])
}

/// Rule: only the locks of the keys are taken, each once, and what is left is named.
#[test]
fn only_the_locks_of_the_keys_are_taken() {
    let server = seeded();
    let ask = program(server.folder(), BY_KEY);
    let keys = server.folder().join("keys");
    fs::write(&keys, "done-1\r\nexpress/done-1\nidem:not-1\n\nnowhere\nyoung").unwrap();
    let file = keys.display().to_string();
    let more = ["--lock-ttl", "5m", "-o", "json"];
    for named in [&["--key-file", &file][..], &["--key-file", "-"], &["-"]] {
        for key in ["done-1", "not-1"] {
            server.put(&format!("idem:{key}"), LOCK);
        }
        let all = [&words(&ask, &more)[..], named].concat();
        let stdin = Stdio::from(fs::File::open(&keys).unwrap());
        let ran = server.command().args(all).start_with(stdin).ends().exits(3);
        let report = ran.json();
        assert_eq!(report["locks"].as_array().unwrap().len(), 2, "{report}");
        assert_eq!(lock(&report, "done-1")["outcome"], "completed");
        assert_eq!(lock(&report, "not-1")["outcome"], "released");
        ran.says("nowhere: no record")
            .says("Not reconciled: young (express): it is younger than --older-than");
        assert_eq!(server.get("idem:done-2").unwrap(), LOCK.as_bytes());
    }
    let all = [&words(&ask, &[])[..], &["done-2"]].concat();
    server.idemctl(&all).exits(0).says("completed 1, released 0, left 0");
    assert_eq!(state(&server, "express", "done-2"), "completed");
}

/// Rule: keys that cannot be read stop the command before anything is done.
#[test]
fn keys_that_cannot_be_read_stop_the_command() {
    let server = seeded();
    let ask = program(server.folder(), BY_KEY);
    fs::write(server.folder().join("none"), "\n\n").unwrap();
    let many: String = (0..10_001).map(|index| format!("k-{index}\n")).collect();
    fs::write(server.folder().join("many"), many).unwrap();
    for (named, says) in [
        (&["--key-file", "nowhere"][..], "cannot read keys from nowhere"),
        (&["--key-file", "none"], "no KEY was given"),
        (&["--key-file", "many"], "more than 10000 keys"),
        (&["done-1", "--key-file", "many"], "cannot be used with"),
        (&["-0"], "neither is given"),
    ] {
        server.idemctl(&[&words(&ask, &[])[..], named].concat()).exits(2).says(says);
    }
    let from = ["reconcile", "--from", "p.csv", "--older-than", "1m"];
    for named in [&["done-1"][..], &["--key-file", "many"], &["-0"]] {
        server.idemctl(&[&from[..], named].concat()).exits(2).says("cannot be used with");
    }
    assert!(server.audited().is_empty());
}

/// Rule: the provider's file may be stdin; then body files are in the current folder, and the question
/// is asked on the terminal.
#[test]
fn the_file_of_the_provider_may_be_stdin() {
    let server = seeded();
    fs::write(server.folder().join("body.json"), r#"{"id":"ch_9"}"#).unwrap();
    let csv = server.folder().join("provider.csv");
    let heading = "key,outcome,status,body_file\n";
    fs::write(&csv, format!("{heading}done-1,done,201,body.json\n")).unwrap();
    let all = ["reconcile", "--from", "-", "--older-than", "1m", "--schema", "express"];
    let mut command = server.command();
    command.args(all).arg("--yes");
    let stdin = Stdio::from(fs::File::open(&csv).unwrap());
    command.start_with(stdin).ends().exits(0).says("completed 1");
    assert!(String::from_utf8(server.get("idem:done-1").unwrap()).unwrap().contains("ch_9"));

    fs::write(&csv, format!("{heading}done-2,perhaps,,\n")).unwrap();
    let mut command = server.command();
    command.args(all).arg("--yes");
    let stdin = Stdio::from(fs::File::open(&csv).unwrap());
    command.start_with(stdin).ends().exits(2).says("--from -: line 2: the outcome must be");

    fs::write(&csv, format!("{heading}done-2,done,201,body.json\n")).unwrap();
    let mut shell = std::process::Command::new("sh");
    shell.env_clear().env("HOME", server.folder()).env("IDEMCTL_URL", server.url());
    shell.env("PATH", "/usr/bin:/bin").current_dir(server.folder());
    let line = format!("cat provider.csv | {} {}", binary().display(), all.join(" "));
    answered(on_terminal(shell, &["-c", &line]), "Complete 1 lock, and release 0 locks", "y\r")
        .exits(0);
    assert_eq!(state(&server, "express", "done-2"), "completed");
}
