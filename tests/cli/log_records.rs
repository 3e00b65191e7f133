//! `idemctl log --records` from the outside.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::support::{self, Run, Runs, Server, audit};

/// A home with a log of one operation that did not end; the command needs no server.
struct Home(tempfile::TempDir);

const OP: &str = "0123456789abcdef";

const DETAILS: &str = "0123456789abcdef.jsonl";

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn audit(&self, file: &str) -> PathBuf {
        audit::folder(self.0.path()).join(file)
    }

    fn write(&self, file: &str, text: &[u8]) {
        let path = self.audit(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(text).unwrap();
    }

    fn begin(&self) {
        let line = json!({
            "mark": "begin", "op": OP, "at": "2026-01-01T00:00:00Z", "who": "ops", "host": "h",
            "server": "127.0.0.1:1/0", "command": "sweep", "reason": "INC-1", "backup": null,
        });
        self.write("log.jsonl", format!("{line}\n").as_bytes());
    }

    fn add(&self, key: &str, ago: Duration) {
        let at = humantime::format_rfc3339_millis(SystemTime::now() - ago).to_string();
        let line = json!({
            "at": at, "who": "ops", "host": "h", "server": "127.0.0.1:1/0", "command": "sweep", "schema": "express",
            "key": key, "redis_key": format!("idem:{key}"), "what": "unlocked", "reason": "INC-1", "backup": null,
            "op": OP,
        });
        if !self.audit("log.jsonl").exists() {
            self.begin();
        }
        self.write(DETAILS, format!("{line}\n").as_bytes());
    }

    fn records(&self, words: &[&str]) -> Run {
        support::idemctl(self.0.path()).args(["log", "--records"]).args(words).run()
    }

    fn keys(&self, words: &[&str]) -> Vec<String> {
        let run = self.records(&[words, &["-o", "jsonl"]].concat()).exits(0);
        run.json_lines().iter().map(|line| line["key"].as_str().unwrap().to_owned()).collect()
    }
}

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn nothing_changed_yet_is_no_error() {
    let run = Home::new().records(&[]).exits(0);
    assert!(run.stdout.is_empty(), "{}", run.all());
    run.says("No change was found in the audit log");
    assert_eq!(
        Home::new().records(&["-o", "json"]).exits(0).json(),
        json!({"format": 1, "changes": []})
    );
}

#[test]
fn shows_what_commands_did_the_newest_last() {
    let server =
        Server::holding(&[("idem:started:a", "w", 20_000), ("idem:started:b", "w", 20_000)]);
    server.idemctl(&["force-unlock", "a", "--yes", "--reason", "INC-7"]).exits(0);
    server.idemctl(&["force-unlock", "b", "--yes"]).exits(0);
    let run = server.idemctl(&["log", "--records"]).exits(0);
    let text = run.text();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{}", run.all());
    assert!(lines[0].starts_with("TIME") && lines[0].ends_with("REASON"), "{}", run.all());
    for word in ["tester", "force-unlock", "unlocked", "event-driven", " a ", "INC-7"] {
        assert!(lines[1].contains(word), "{word}: {}", run.all());
    }
    let json = server.idemctl(&["log", "--records", "-o", "json"]).exits(0).json();
    assert_eq!(json["changes"][1]["key"], "b");
    assert!(json["changes"][1]["backup"].as_str().unwrap().ends_with(".jsonl"));
}

#[test]
fn chooses_by_key_time_and_number() {
    let home = Home::new();
    for (key, minutes) in [("a", 90), ("b", 50), ("a", 20), ("c", 1)] {
        home.add(key, MINUTE * minutes);
    }
    assert_eq!(home.keys(&[]), ["a", "b", "a", "c"]);
    assert_eq!(home.keys(&["--only", "a"]), ["a", "a"]);
    assert_eq!(home.keys(&["--only", "idem:b"]), ["b"]);
    assert_eq!(home.keys(&["--since", "1h"]), ["b", "a", "c"]);
    assert_eq!(home.keys(&["--since", "1h", "--only", "a", "--limit", "5"]), ["a"]);
    home.records(&["--limit", "2"]).exits(0).says("2 of 4 shown; --limit shows more.");
    assert_eq!(home.keys(&["--limit", "2"]), ["a", "c"]);
    assert!(
        home.records(&["--only", "z"])
            .exits(0)
            .stderr
            .contains("No change was found in the audit log")
    );
    home.records(&["--limit", "0"]).exits(2);
    (0..60).for_each(|_| home.add("d", MINUTE));
    assert_eq!(home.keys(&[]).len(), 50);
}

#[test]
fn damaged_lines_are_left_out_and_said() {
    let home = Home::new();
    home.add("a", MINUTE);
    home.write(DETAILS, b"not json\n{\"at\":\"yesterday\"}\n\xff\xfe\n");
    home.add("b", MINUTE);
    home.write(DETAILS, b"{\"at\":\"2026-");
    home.write("log.jsonl", b"not json\n{\"mark\":\"end\"}\n");
    let run = home.records(&["-o", "jsonl"]).exits(0);
    assert_eq!(run.json_lines().len(), 2);
    run.says("audit/log.jsonl: 2 lines cannot be read");
}

#[test]
fn a_torn_last_line_does_not_swallow_the_next_operation() {
    let server = Server::holding(&[("idem:started:a", "w", 20_000)]);
    let log = server.audit().join("log.jsonl");
    fs::create_dir_all(server.audit()).unwrap();
    fs::write(&log, "{\"mark\":\"beg").unwrap();
    server.idemctl(&["force-unlock", "a", "--yes"]).exits(0);
    let run = server.idemctl(&["log", "--records", "-o", "jsonl"]).exits(0);
    assert_eq!(run.json_lines().len(), 1, "{}", run.all());
}

/// A server with a lock, and the log of its operators, in which somebody is in the middle of a line.
fn another_in_the_middle_of_a_line() -> (Server, fs::File) {
    let server = Server::holding(&[("idem:started:a", "w", 20_000)]);
    let log = server.audit().join("log.jsonl");
    fs::create_dir_all(server.audit()).unwrap();
    let mut log = fs::OpenOptions::new().append(true).create(true).open(log).unwrap();
    log.lock().unwrap();
    log.write_all(b"{\"half\":").unwrap();
    (server, log)
}

/// Rule: half of the line that another idemctl is writing is no torn line.
#[test]
fn two_operators_lines_never_mix() {
    let (server, mut log) = another_in_the_middle_of_a_line();
    let mut unlocks = server.command().args(["force-unlock", "a", "--yes"]).start();
    // The line that says that a change begins waits for the other one's line.
    std::thread::sleep(Duration::from_millis(400));
    assert!(server.get("idem:started:a").is_some());
    log.write_all(b"true}\n").unwrap();
    log.unlock().unwrap();
    assert!(unlocks.wait().unwrap().success());
    let text = fs::read_to_string(server.audit().join("log.jsonl")).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert!(lines.len() == 3 && lines[0] == "{\"half\":true}", "{text}");
    assert!(lines[1].contains("\"begin\"") && lines[2].contains("\"end\""), "{text}");
}

#[test]
fn an_operator_that_was_stopped_in_the_middle_of_a_line_stops_nobody_else() {
    let (server, _log) = another_in_the_middle_of_a_line();
    server.idemctl(&["force-unlock", "a", "--yes"]).exits(0);
    assert_eq!(server.idemctl(&["log", "--records", "-o", "jsonl"]).exits(0).json_lines().len(), 1);
}

#[test]
fn a_log_that_cannot_be_read_is_an_error() {
    for file in ["log.jsonl", DETAILS] {
        let home = Home::new();
        let path = home.audit(file);
        fs::create_dir_all(&path).unwrap();
        if file == DETAILS {
            home.begin();
        }
        home.records(&[]).exits(2).says("cannot read the audit log");
        fs::remove_dir(&path).unwrap();
        // A pipe that nobody writes to is not waited for.
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let run = support::bounded(
            support::idemctl(home.0.path()).args(["log", "--records"]),
            "set -- timeout 20 \"$@\"",
        );
        run.exits(2).says("it is a pipe, not a regular file");
    }
}

#[test]
fn nothing_of_the_log_reaches_a_terminal_as_it_is() {
    let home = Home::new();
    home.add("a\u{1b}[31m\u{202e}\u{7}", MINUTE);
    home.add("b\\x1b\\xff", MINUTE);
    for output in ["table", "json", "jsonl"] {
        let text = home.records(&["-o", output]).exits(0).text();
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{text}");
    }
    // What was escaped when it was written is not escaped again.
    assert!(home.records(&[]).exits(0).text().contains(" b\\x1b\\xff "));
}
