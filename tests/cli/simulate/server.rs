//! A server that somebody owns: what it is put through, and what stays.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use super::variant::path;
use crate::support::{Running, Runs, Server, Signal, until};

fn command(server: &Server, words: &[&str]) -> Command {
    let mut command = server.command();
    command.env("PATH", path()).env("TMPDIR", server.folder()).arg("simulate").args(words);
    command
}

fn nothing_is_left(server: &Server) {
    assert_eq!(server.send::<Vec<String>>(&[b"KEYS", b"*"]), [""; 0]);
}

/// Waits until the simulation has written something.
fn begins(server: &Server) {
    until("the simulation begins", || server.size() > 0);
}

/// The commands that a server gets while this happens, without those of scripts.
fn commands(server: &Server, happens: impl FnOnce()) -> BTreeSet<String> {
    let mut monitor = UnixStream::connect(server.socket()).unwrap();
    monitor.write_all(b"MONITOR\r\n").unwrap();
    let mut lines = BufReader::new(monitor).lines().map_while(Result::ok);
    assert_eq!(lines.next().unwrap(), "+OK");
    let listener = std::thread::spawn(move || {
        let sent = lines
            .take_while(|line| !line.ends_with("\"ECHO\" \"over\""))
            .filter(|line| !line.contains(" lua] "));
        let words = |line: String| {
            line.split('"').skip(1).step_by(2).take(2).map(str::to_uppercase).collect::<Vec<_>>()
        };
        let named = |words: Vec<String>| match words[0].as_str() {
            "SCRIPT" | "CLIENT" | "CLUSTER" => words.join(" "),
            _ => words[0].clone(),
        };
        sent.map(words).map(named).collect()
    });
    happens();
    server.send::<String>(&[b"ECHO", b"over"]);
    listener.join().unwrap()
}

#[test]
fn what_it_is_put_through_is_what_services_do() {
    let server = Server::start();
    let theirs =
        ["order-1", "idemkey:order-1", "idem:lock:order-1", "idempotency:x", "idem:done:x"];
    for key in theirs {
        server.set(key, "theirs", 600_000);
    }
    let sent = commands(&server, || {
        let run = command(&server, &["--all", "--schema", "all", "-o", "json"]).run().exits(1);
        assert_eq!(run.json()["cells"].as_array().unwrap().len(), 7 * 22);
    });
    let of_two =
        ["CLIENT NO-TOUCH", "CLIENT SETNAME", "CLIENT SETINFO", "CLUSTER SLOTS", "SCRIPT LOAD"];
    let of_one = "DEL EVAL EVALSHA EXISTS GET HELLO INFO PEXPIRE PING PTTL SELECT SET TIME UNLINK";
    let allowed: BTreeSet<_> = of_one.split(' ').chain(of_two).map(str::to_owned).collect();
    assert!(sent.is_subset(&allowed), "{:?}", sent.difference(&allowed));
    let mut left: Vec<String> = server.send(&[b"KEYS", b"*"]);
    left.sort();
    let mut expected = theirs.to_vec();
    expected.sort();
    assert_eq!(left, expected);
    assert!(theirs.iter().all(|key| server.get(key).unwrap() == b"theirs"));
}

#[test]
fn interrupted_it_says_how_far_it_got_and_leaves_nothing() {
    for signal in [Signal::INT, Signal::TERM] {
        let server = Server::start();
        let child = command(&server, &["--all", "--schema", "all"]).start();
        begins(&server);
        child.signal(signal);
        let run = child.ends().exits(130);
        assert!(run.stderr.contains("of 154 cells"), "{}", run.stderr);
        assert_eq!(run.text(), "");
        nothing_is_left(&server);
        let left: Vec<_> = std::fs::read_dir(server.folder())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["s"], "private servers are gone");
    }
}

#[test]
fn keys_of_a_killed_simulation_live_minutes() {
    let server = Server::start();
    let mut seen = 0;
    for moment in 0..6 {
        let mut child = command(&server, &["--all", "--schema", "all"]).start();
        begins(&server);
        std::thread::sleep(Duration::from_millis(moment * 300));
        child.kill().unwrap();
        child.wait().unwrap();
        seen += server.keys_live_at_most(Duration::from_secs(360));
        server.send::<()>(&[b"FLUSHALL"]);
    }
    assert!(seen > 30, "the killed simulations left {seen} keys");
}

#[test]
fn a_server_that_goes_away_is_exit_status_5() {
    let mut server = Server::start();
    let words = ["crash-before-complete", "--schema", "all"];
    let child = command(&server, &words).start();
    begins(&server);
    server.kill();
    let run = child.ends().exits(5);
    assert!(run.stderr.contains("may remain until they expire"), "{}", run.stderr);
}

#[test]
fn without_a_server_program_the_others_are_still_played() {
    let server = Server::start();
    let document = command(&server, &["--all", "--schema", "reference", "-o", "json"])
        .env("PATH", "/nowhere")
        .run()
        .exits(0)
        .json();
    let private = |cell: &&Value| {
        cell["why"].as_str().unwrap().starts_with("it needs a temporary local Redis: ")
    };
    let cells = document["cells"].as_array().unwrap();
    let skipped: Vec<_> =
        cells.iter().filter(private).map(|cell| cell["scenario"].as_str().unwrap()).collect();
    assert_eq!(
        skipped,
        [
            "lock-without-expiry",
            "script-flush",
            "cluster-slots",
            "evicted-lock",
            "failover-loses-lock"
        ]
    );
    assert!(cells.iter().filter(private).all(|cell| cell["verdict"] == "n/a"));
    assert!(cells.iter().any(|cell| cell["verdict"] == "safe") && cells.len() == 22);
    nothing_is_left(&server);
}

#[test]
fn a_password_and_a_database_are_heeded() {
    let server = Server::start_with(&["requirepass s3cret"]);
    let simulate = |words: &[&str]| {
        command(&server, &[&["first-then-retry", "--schema", "reference"], words].concat()).run()
    };
    simulate(&[]).exits(4);
    simulate(&["-a", "s3cret", "-n", "3"]).exits(0);
}

#[test]
fn a_server_that_refuses_writes_is_no_verdict() {
    let server = Server::start_with(&["maxmemory 1", "maxmemory-policy noeviction"]);
    let run = command(&server, &["first-then-retry", "--schema", "go-chi"]).run();
    assert!(run.code == 6 && run.stderr.contains("OOM"), "{}", run.all());
}

/// The arguments of all processes below this one, a line for each.
#[cfg(target_os = "linux")]
fn arguments_below(pid: &str) -> String {
    let read = |path: String| {
        String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
    };
    let mut told = String::new();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        for child in read(format!("{}/children", thread.path().display())).split_whitespace() {
            told += &read(format!("/proc/{child}/cmdline")).replace('\0', " ");
            told += "\n";
            told += &arguments_below(child);
        }
    }
    told
}

/// Rule: everyone on a machine may read the arguments of its processes, so that no password is among them.
#[test]
#[cfg(target_os = "linux")]
fn the_password_of_a_server_on_a_port_is_in_no_list_of_processes() {
    let home = tempfile::tempdir().unwrap();
    let words = ["simulate", "cluster-slots", "--schema", "event-driven"];
    let mut child = crate::support::idemctl(home.path()).env("PATH", path()).args(words).start();
    let mut told = String::new();
    while child.try_wait().unwrap().is_none() {
        told += &arguments_below(&child.id().to_string());
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(
        told.contains("idemctl-sandbox") && told.contains("127.0.0.1:"),
        "servers on ports were seen: {told}"
    );
    assert!(!told.contains("requirepass") && !told.contains("masterauth"), "{told}");
}
