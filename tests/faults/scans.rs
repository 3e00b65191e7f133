//! Every command that scans the keyspace, in each way in which a scan can end. The commands share one scan: none of them has
//! rules of its own for what could not be read.
//!
//! docs/architecture.md has the table that these tests hold the commands to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::cluster::Cluster;
use crate::support::proxy::{Hook, hooked_socket, says};
use crate::support::{
    FOREVER, LOCK, Run, Running, Runs, Server, Signal, at_once, idemctl, signal, until,
};

/// A list of before, for `diff`.
const BEFORE: &str = "before";

/// The schema that `schema check` counts by.
const EXPRESS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/lua/express");

/// A command that scans.
struct Scanning {
    words: &'static [&'static str],
    /// The exit code if a node of a cluster does not answer, and if the server goes away in the middle.
    unreachable: i32,
    gone: i32,
    /// The exit code of Ctrl-C.
    interrupted: i32,
    /// False for a command that does not decode records, and for one that has no rate for its scan.
    notes_contradictions: bool,
    has_rate: bool,
    /// Records that a run shows; `None` if it shows nothing that can be counted.
    shown: fn(&Run) -> Option<u64>,
}

fn length(of: &serde_json::Value) -> Option<u64> {
    of.as_array().map(|values| values.len() as u64)
}

fn sum(of: &serde_json::Value, field: &str) -> Option<u64> {
    of.as_array()?.iter().map(|value| value[field].as_u64()).sum()
}

/// The number behind a word, or before it.
fn number_after(text: &str, word: &str) -> Option<u64> {
    let rest = text.split_once(word)?.1;
    rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse().ok()
}

const COMMANDS: [Scanning; 10] = [
    Scanning {
        words: &["list", "-o", "json"],
        unreachable: 3,
        gone: 3,
        interrupted: 130,
        notes_contradictions: true,
        has_rate: true,
        shown: |run| length(&run.json()["records"]),
    },
    Scanning {
        words: &["stats", "-o", "json"],
        unreachable: 3,
        gone: 3,
        interrupted: 130,
        notes_contradictions: true,
        has_rate: true,
        shown: |run| sum(&run.json()["rows"], "records"),
    },
    // A plugin has no other code for what it does not know.
    Scanning {
        words: &["check", "--critical", "1000000"],
        unreachable: 3,
        gone: 3,
        interrupted: 3,
        // Its line says so instead.
        notes_contradictions: false,
        has_rate: true,
        shown: |run| number_after(&run.text(), "keys="),
    },
    Scanning {
        words: &["diff", BEFORE, "-o", "json"],
        unreachable: 3,
        gone: 3,
        interrupted: 130,
        notes_contradictions: true,
        has_rate: true,
        shown: |run| run.json()["same"].as_u64(),
    },
    Scanning {
        words: &["duplicates", "--same", "/id", "-o", "json"],
        unreachable: 3,
        gone: 3,
        interrupted: 130,
        notes_contradictions: true,
        has_rate: true,
        shown: |run| run.json()["records"].as_u64(),
    },
    Scanning {
        words: &["inspect", "--find", "web-001", "-o", "jsonl"],
        unreachable: 3,
        gone: 3,
        interrupted: 130,
        notes_contradictions: true,
        has_rate: true,
        shown: |run| Some(run.json_lines().len() as u64),
    },
    Scanning {
        words: &["schema", "check", EXPRESS],
        unreachable: 3,
        gone: 3,
        interrupted: 130,
        notes_contradictions: true,
        has_rate: true,
        shown: |run| number_after(&run.text(), "ok, "),
    },
    // What is counted before a change is of no use if the count is not whole: nothing was changed, and the code says why.
    Scanning {
        // Locks without an expiry need no lock TTL, and only they are read.
        words: &["sweep", "--orphaned", "--dry-run", "-o", "json"],
        unreachable: 3,
        gone: 5,
        interrupted: 130,
        notes_contradictions: false,
        has_rate: true,
        shown: |run| run.json()["total"].as_u64(),
    },
    // --rate is the rate of removals.
    Scanning {
        words: &["purge", "--all", "--state", "in-progress", "--dry-run", "-o", "json"],
        unreachable: 3,
        gone: 5,
        interrupted: 130,
        notes_contradictions: true,
        has_rate: false,
        shown: |run| run.json()["total"].as_u64(),
    },
    // Groups of Redis keys are no records yet.
    Scanning {
        words: &["detect", "-o", "json"],
        unreachable: 3,
        gone: 3,
        interrupted: 130,
        notes_contradictions: false,
        has_rate: true,
        shown: |run| run.json()["sampled"].as_u64(),
    },
];

impl Scanning {
    fn name(&self) -> String {
        self.words.join(" ")
    }

    fn counts_before_a_change(&self) -> bool {
        ["sweep", "purge"].contains(&self.words[0])
    }
}

fn key(number: usize) -> String {
    format!("idem:web-{number:04}")
}

fn locks(count: usize) -> impl Iterator<Item = (String, &'static str)> {
    (0..count).map(|number| (key(number), LOCK))
}

/// A server with so many locks, and a list of them.
fn listed(count: usize, ttl_ms: u64) -> Server {
    let server = Server::filled(locks(count), ttl_ms);
    let list = server.idemctl(&["list", "-o", "json"]).exits(0).stdout;
    std::fs::write(server.folder().join(BEFORE), list).unwrap();
    server
}

/// Rule: a node of a cluster that does not answer is named, the records of the others are shown, and nothing is called
/// complete, absent or gone.
#[test]
fn a_node_that_does_not_answer_is_named_and_the_others_are_read() {
    const COUNT: usize = 60;
    let mut cluster = Cluster::start(3);
    cluster.fill(locks(COUNT), FOREVER);
    let list = cluster.idemctl(&["list", "-o", "json"]).exits(0).stdout;
    std::fs::write(cluster.node(0).folder().join(BEFORE), list).unwrap();
    let there = |number: &usize| cluster.owner(&key(*number)) != 1;
    let all = (0..COUNT).filter(there).count() as u64;
    let found = (10..20).filter(there).count() as u64;
    assert!(all < COUNT as u64 && found > 0);
    cluster.kill(1);
    let gone = format!("127.0.0.1:{}", cluster.port(1));
    for command in &COMMANDS {
        let run = cluster.idemctl(command.words).exits(command.unreachable);
        assert!(run.all().contains(&gone), "{} names {gone}: {}", command.name(), run.all());
        let expected = if command.words[0] == "inspect" { found } else { all };
        assert_eq!((command.shown)(&run), Some(expected), "{}: {}", command.name(), run.all());
        if run.stdout.starts_with(b"{")
            && ["list", "stats", "diff", "duplicates"].contains(&command.words[0])
        {
            assert_eq!(run.json()["complete"], false, "{}", run.all());
        }
        if command.words[0] == "diff" {
            assert_eq!(run.json()["went"], 0, "{}", run.all());
        }
    }
}

/// Rule: every command that decodes records says that they contradict a default TTL, because all of them judge by it.
#[test]
fn a_default_ttl_that_does_not_hold_is_reported_by_every_command() {
    let server = listed(30, 36_000_000);
    let note = "note: 30 locks with up to 9h 5";
    let found = "note: 10 locks with up to 9h 5";
    for command in &COMMANDS {
        let run = server.idemctl(command.words);
        let expected = if command.words[0] == "inspect" { found } else { note };
        let count = run.stderr.matches(expected).count();
        assert_eq!(
            count,
            usize::from(command.notes_contradictions),
            "{}: {}",
            command.name(),
            run.all()
        );
    }
}

/// Rule: a `check` that may read all values counts all locks, and otherwise says that it does not know.
#[test]
fn a_check_that_samples_does_not_say_how_many() {
    let server = Server::filled(locks(2_500), 36_000_000);
    // CLIENT NO-TOUCH is of Redis 7.2 and later.
    let no_touch =
        redis::cmd("CLIENT").arg("NO-TOUCH").arg("ON").query::<()>(&mut server.connect());
    let run = server.idemctl(&["check", "-o", "json"]).exits(0);
    let json = run.json();
    server
        .idemctl(&["check"])
        .exits(0)
        .shows("\nlocks of express may outlast the default lock TTL (set lock_ttl)\n");
    if no_touch.is_ok() {
        assert_eq!(json["outlasting"][0]["locks"], 2500, "{json}");
    } else {
        assert_eq!(json["outlasting_partial"], true, "{json}");
    }
}

/// How far a scan of the server may get.
#[derive(Clone, Default)]
struct Way {
    scans: Arc<AtomicUsize>,
    is_cut: Arc<AtomicBool>,
}

impl Way {
    fn scans(&self) -> usize {
        self.scans.load(Ordering::SeqCst)
    }

    /// A command by a way to the server on which each SCAN takes a while. If `cuts`, the server is gone after the third.
    fn command(&self, server: &Server, words: &[&str], cuts: bool) -> std::process::Command {
        let Self { scans, is_cut } = self.clone();
        let socket = hooked_socket(server, move |sent| {
            if says(sent, "SCAN\r\n") {
                let before = scans.fetch_add(1, Ordering::SeqCst);
                is_cut.fetch_or(cuts && before == 3, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(50));
            }
            if is_cut.load(Ordering::SeqCst) { Hook::Cut } else { Hook::Pass }
        });
        let mut command = idemctl(server.folder());
        command.args(["--timeout", "20s", "-s"]).arg(socket).args(words);
        if words[0] != "detect" {
            command.args(["--scan-count", "100"]);
        }
        command
    }
}

const MANY: usize = 3_000;

/// Rule: Ctrl-C ends every scan with what was read so far. A command that would change something has changed nothing.
#[test]
fn ctrl_c_in_the_middle_ends_every_scan_with_what_was_read() {
    at_once(&COMMANDS, |command| {
        let server = listed(MANY, 900_000);
        let way = Way::default();
        let child = way.command(&server, command.words, false).start();
        // Its stdout is read meanwhile: a list waits for whoever reads it.
        let pid = child.id();
        let run = std::thread::scope(|scope| {
            scope.spawn(|| {
                until("pages were read", || way.scans() >= 6);
                signal(pid, Signal::INT);
            });
            child.ends().exits(command.interrupted)
        });
        assert!(run.all().contains("interrupted"), "{}: {}", command.name(), run.all());
        if command.counts_before_a_change() {
            run.says("nothing was changed");
            assert!(run.stdout.is_empty() && server.size() == MANY, "{}", run.all());
            return;
        }
        // The only key that holds the text may come later.
        if command.words[0] != "inspect" {
            let shown = (command.shown)(&run).unwrap();
            assert!(shown > 0 && shown < MANY as u64, "{}: {shown}: {}", command.name(), run.all());
        }
        if command.words[0] == "diff" {
            assert_eq!((&run.json()["went"], &run.json()["complete"]), (&0.into(), &false.into()));
        }
    });
}

/// Rule: if the server goes away in the middle, what was read is shown and said to be incomplete.
#[test]
fn a_server_that_goes_away_in_the_middle_leaves_an_incomplete_result_that_says_so() {
    at_once(&COMMANDS, |command| {
        let server = listed(MANY, 900_000);
        let run = Way::default().command(&server, command.words, true).run().exits(command.gone);
        if command.counts_before_a_change() {
            run.says("cannot reach Redis");
            assert!(run.stdout.is_empty(), "{}", run.all());
            return;
        }
        match command.words[0] {
            "check" => run.shows("UNKNOWN").shows("cannot reach Redis"),
            _ => run.says("not complete, ").says("cannot reach Redis"),
        };
        if command.words[0] != "inspect" {
            let shown = (command.shown)(&run).unwrap();
            assert!(shown > 0 && shown < MANY as u64, "{}: {shown}: {}", command.name(), run.all());
        }
    });
}

/// Rule: `--rate` bounds how many Redis keys any scan reads per second.
#[test]
fn a_rate_bounds_every_scan() {
    let server = listed(300, 900_000);
    at_once(COMMANDS.iter().filter(|command| command.has_rate), |command| {
        let began = Instant::now();
        let run = server.idemctl(&[command.words, &["--rate", "200/s"]].concat());
        let took = began.elapsed();
        // Locks have no responses that could be compared.
        let is_unknown = command.words[0] == "duplicates" && run.code == 3;
        assert!(is_unknown || [0, 1].contains(&run.code), "{}", run.all());
        assert!(took > Duration::from_secs(1), "{}: {took:?}", command.name());
    });
}
