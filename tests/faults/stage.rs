//! A server with something for every command to do, and what must be there still when a command could do nothing.

use std::collections::BTreeMap;
use std::process::Command;

use crate::support::{self, PENDING, Run, Server, at_once};

/// Commands that read.
pub const READS: &[&[&str]] = &[&["inspect", "stuck"], &["list"]];

/// Commands that remove.
pub const REMOVALS: &[&[&str]] = &[
    &["force-unlock", "stuck", "--yes"],
    &["sweep", "--orphaned", "--yes", "--grace", "0"],
    &["purge", "--state", "in-progress", "--all", "--yes"],
    &["release", "held", "--schema", "go-chi", "--yes"],
];

/// Commands that write something new.
pub const ADDITIONS: &[&[&str]] = &[
    &["restore", "backup", "--yes"],
    &["begin", "fresh", "--schema", "go-chi", "--yes"],
    &[
        "complete",
        "stuck",
        "--schema",
        "go-middleware",
        "--yes",
        "--status",
        "201",
        "--body",
        "paid",
    ],
];

/// Commands that give time, or take back what the log says.
pub const AMENDMENTS: &[&[&str]] =
    &[&["extend", "held", "--schema", "go-chi", "--for", "1h", "--yes"], &["undo", "--yes"]];

/// Commands that play services.
pub const PLAYS: &[&[&str]] = &[
    &["race", "--schema", "express", "--rounds", "1", "--concurrency", "2"],
    &["simulate", "first-then-retry", "--schema", "express"],
];

/// Memory for a command that deals with large things, in KiB.
const MAX_MEMORY: u64 = 100_000;

/// Time that no Redis key of the stage has left but one that was extended, in milliseconds.
const LONG: i64 = 600_000;

/// Redis keys and what they hold, and whether they do so for long.
pub type Contents = BTreeMap<Vec<u8>, (Vec<u8>, bool)>;

/// A server, what it holds, and the files idemctl made.
pub struct Stage {
    pub server: Server,
    contents: Contents,
}

impl Stage {
    /// Sets it up; `backup` in the server's folder holds one Redis key that is gone.
    pub fn new(config: &[&str]) -> Self {
        let server = Server::start_with(config);
        server.set("idempotency:stuck", PENDING, 90_000);
        server.set("idempotency:gone", PENDING, 90_000);
        server.set("held", r#"{"status":0}"#, 50_000);
        server
            .idemctl(&[
                "force-unlock",
                "gone",
                "--yes",
                "--backup",
                "backup",
                "--schema",
                "go-middleware",
            ])
            .exits(0);
        server.send::<()>(&[b"PERSIST", b"idempotency:stuck"]);
        let contents = contents(&server);
        server.send::<()>(&[b"CONFIG", b"RESETSTAT"]);
        Self { server, contents }
    }

    /// Every command on the server, with these options.
    pub fn all(&self, commands: &[&[&[&str]]], options: &[&str]) -> Vec<Run> {
        let run = |words: &[&str]| self.server.idemctl(&[options, words].concat());
        commands.iter().flat_map(|group| *group).map(|words| run(words)).collect()
    }

    /// Every command on a port, all at a time, for most of them wait.
    pub fn all_at(
        &self,
        port: u16,
        commands: &[&[&'static [&'static str]]],
        options: &[&str],
    ) -> Vec<Run> {
        at_once(commands.iter().flat_map(|group| *group), |words| {
            self.at(port, &[options, words].concat())
        })
    }

    /// The binary on a port.
    pub fn at(&self, port: u16, words: &[&str]) -> Run {
        self.server.at(port, words)
    }

    /// The same, before it runs.
    pub fn command_at(&self, port: u16, words: &[&str]) -> Command {
        let mut command = support::idemctl(self.server.folder());
        command.args(["-p", &port.to_string()]).args(words);
        command
    }

    /// Asserts that the server holds what it held, and that no backup or audit line claims a change.
    #[track_caller]
    pub fn is_untouched(&self) {
        assert_eq!(contents(&self.server), self.contents);
        assert_eq!(self.audited(), 1);
        let backups = self.server.state("backups");
        assert_eq!(
            std::fs::read_dir(backups).into_iter().flatten().count(),
            0,
            "no backup is left"
        );
    }

    /// What it held when it was set up.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// How many changes the audit log knows of.
    pub fn audited(&self) -> usize {
        self.server.audited().len()
    }
}

/// Runs a command that gets little memory, and crashes when it wants more.
pub fn bounded(whole: &Command) -> Run {
    support::bounded(whole, &format!("ulimit -d {MAX_MEMORY}"))
}

/// What a server holds.
pub fn contents(server: &Server) -> Contents {
    let keys: Vec<Vec<u8>> = server.send(&[b"KEYS", b"*"]);
    let held = |key: Vec<u8>| {
        let is_long = server.send::<i64>(&[b"PTTL", &key]) > LONG;
        (key.clone(), (server.send(&[b"DUMP", &key]), is_long))
    };
    keys.into_iter().map(held).collect()
}

/// Asserts that each ended with this code, and said all of these words.
#[track_caller]
pub fn each(runs: &[Run], code: i32, words: &[&str]) {
    for run in runs {
        assert_eq!(run.code, code, "{}", run.all());
        assert!(words.iter().all(|word| run.stderr.contains(word)), "{words:?}: {}", run.all());
    }
}
