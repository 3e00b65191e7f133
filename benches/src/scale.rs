//! What grows, and what does not: a busy day's operations in the state folder, and ten times as many records on the server.

use std::io;
use std::path::Path;

use crate::goal::Goal;
use crate::measure::{self, Run, middle};
use crate::reference::{self, STRINGS};
use crate::server::{self, Lives, Server};
use crate::{Setup, cluster, words};

/// How often a short command is timed.
const STARTS: usize = 20;

/// The same reading without idemctl.
const RAW: &str = "raw socket";

/// Removes every record of a seed.
pub const PURGE: [&str; 6] =
    ["purge", "--schema", "go-middleware", "--state", "completed,in-progress", "--yes"];

/// The commands that run at each size, in this order. The undo restores the purged records.
const COMMANDS: [(&str, &[&str]); 6] = [
    ("list -o jsonl", &["list", "-o", "jsonl"]),
    ("stats", &["stats"]),
    ("check", &["check"]),
    ("sweep --orphaned --dry-run", &["sweep", "--orphaned", "--dry-run"]),
    ("purge", &PURGE),
    ("undo", &["undo", "--yes"]),
];

/// The commands before and after three purges and three undos of all records.
pub fn busy_day(setup: &Setup, socket: &Path) -> io::Result<Vec<Goal>> {
    let state = StateFolder::new()?;
    let on = |command: &[&str]| {
        state.run(&setup.idemctl, &["-s", &socket.display().to_string()], command)
    };
    let record = server::first_result();
    let short: [&[&str]; 3] = [&["inspect", &record], &["check"], &["log"]];
    let dry_run: &[&str] = &["undo", "--dry-run"];
    let seconds = |command: &[&str], times| {
        let runs = (0..times)
            .map(|_| measure::program(&on(command), socket))
            .collect::<io::Result<Vec<_>>>()?;
        io::Result::Ok(middle(runs.iter().map(|run| run.wall.as_secs_f64()).collect()))
    };
    server::seed(socket, setup.records, Lives::Minutes)?;
    let mut before = Vec::new();
    for command in short {
        before.push(seconds(command, STARTS)?);
    }
    for day in 0..3 {
        measure::program(&on(&PURGE), socket)?;
        if day == 0 {
            before.push(seconds(dry_run, setup.rounds)?);
        }
        measure::program(&on(&["undo", "--yes"]), socket)?;
    }
    let mut after = Vec::new();
    for command in short {
        after.push(seconds(command, STARTS)?);
    }
    measure::program(&on(&PURGE), socket)?;
    after.push(seconds(dry_run, setup.rounds)?);

    println!(
        "\n{:<44} {:>8} {:>8} {:>6}",
        "Three purges and undos of all records", "before s", "after s", "x"
    );
    let mut goals = Vec::new();
    for ((command, before), after) in short.into_iter().chain([dry_run]).zip(before).zip(after) {
        let name = format!("idemctl {}", command.join(" "));
        println!("{name:<44} {before:>8.4} {after:>8.4} {:>6.2}", after / before);
        goals.push(Goal::ratio(format!("{name}, after: before"), 1.2, after / before));
    }
    Ok(goals)
}

/// One server, and a third as many records on three masters.
pub fn ten_times(setup: &Setup) -> io::Result<Vec<Goal>> {
    let mut goals = Vec::new();
    for (name, most) in [("one server", setup.records), ("three masters", setup.records / 10 * 3)] {
        let sizes = [most / 10, most];
        let mut runs = Vec::new();
        for size in sizes {
            let servers = if name == "one server" {
                vec![cluster::alone(setup)?]
            } else {
                cluster::start(setup)?
            };
            runs.push(all_commands(setup, &servers, size)?);
        }
        println!("\n{most} records and as many other keys on {name}, beside a tenth of them");
        println!(
            "{:<36} {:>13} {:>13} {:>6} {:>9} {:>9} {:>8} {:>8}",
            "", "s a million", "s a million", "x", "peak MB", "peak MB", "p99 ms", "p99 ms"
        );
        for ((command, few), (_, many)) in runs[0].iter().zip(&runs[1]) {
            let a_million = |run: &Run, size: usize| run.wall.as_secs_f64() / size as f64 * 1e6;
            let [short, long] = [a_million(few, sizes[0]), a_million(many, sizes[1])];
            println!(
                "{command:<36} {short:>13.2} {long:>13.2} {:>6.2} {:>9.1} {:>9.1} {:>8.1} {:>8.1}",
                long / short,
                few.peak_mb(),
                many.peak_mb(),
                few.p99_ms(),
                many.p99_ms()
            );
            if *command == RAW {
                continue;
            }
            goals.push(Goal::ratio(
                format!("{command}, {name}: time with a tenth"),
                1.25,
                long / short,
            ));
            goals.push(Goal::ratio(
                format!("{command}, {name}: memory with a tenth"),
                1.25,
                many.peak_mb() / few.peak_mb(),
            ));
            goals.push(Goal::millis(
                format!("{command}, {name}: another client's GET, p99"),
                5.0,
                many.p99_ms(),
            ));
        }
    }
    Ok(goals)
}

/// Runs the raw socket first if there is one server.
fn all_commands(
    setup: &Setup,
    servers: &[(Server, u16)],
    records: usize,
) -> io::Result<Vec<(&'static str, Run)>> {
    let state = StateFolder::new()?;
    for (server, _) in servers {
        server::seed(&server.socket(), records, Lives::Days)?;
    }
    let (first, port) = &servers[0];
    let (socket, port) = (first.socket(), port.to_string());
    let mut runs = Vec::new();
    if servers.len() == 1 {
        let raw = measure::function(|| reference::scan(&socket, &STRINGS), &socket)?;
        runs.push((RAW, raw));
    }
    for (name, command) in COMMANDS {
        let command = state.run(&setup.idemctl, &["-p", &port], command);
        let run = measure::program(&command, &socket)?;
        eprintln!("{records} records: {name} {:.1} s", run.wall.as_secs_f64());
        runs.push((name, run));
    }
    Ok(runs)
}

/// A folder for the log and the backups.
pub struct StateFolder(std::path::PathBuf);

impl StateFolder {
    pub fn new() -> io::Result<Self> {
        let folder =
            std::env::temp_dir().join(format!("idemctl-bench-state.{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    /// A run of an idemctl that uses the folder.
    pub fn run(&self, program: &str, server: &[&str], command: &[&str]) -> Vec<String> {
        let env = format!("XDG_STATE_HOME={}", self.0.display());
        words(&[&["env", &env, program], server, command].concat())
    }

    /// Removes everything in it.
    pub fn clear(&self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Drop for StateFolder {
    fn drop(&mut self) {
        self.clear();
    }
}
