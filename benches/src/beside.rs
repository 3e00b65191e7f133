//! The other commands beside what one would use without them.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::goal::Goal;
use crate::measure::{self, middle};
use crate::resp::{Connection, pack};
use crate::scale::{PURGE, StateFolder};
use crate::server::{self, Lives};
use crate::{Setup, words};

/// How often a short command is started.
const STARTS: usize = 100;

/// Workers of a race.
const WORKERS: &str = "50";

/// `inspect` beside `redis-cli get`: one key, the whole process, of a record and of nothing; the static binary as well where a
/// release of it is built.
pub fn inspect(setup: &Setup, socket: &Path) -> io::Result<Vec<Goal>> {
    let (path, record) = (socket.display().to_string(), server::first_result());
    let theirs = words(&["redis-cli", "-s", &path, "get", &record]);
    let mut goals = Vec::new();
    println!("\n{:<44} {:>8} {:>14}", "One key", "ms", "x redis-cli get");
    for (name, program) in
        [("idemctl", Some(&setup.idemctl)), ("static idemctl", setup.statically.as_ref())]
    {
        let Some(program) = program else { continue };
        for (what, key, more) in [
            ("inspect KEY", record.as_str(), &[][..]),
            ("inspect KEY --schema", &record, &["--schema", "go-middleware"]),
            ("inspect KEY of nothing", "no-such-key", &[]),
        ] {
            let ours = words(&[&[program, "-s", &path, "inspect", key][..], more].concat());
            let (mut our_times, mut their_times) = (Vec::new(), Vec::new());
            for _ in 0..STARTS {
                our_times.push(timed(&ours)?);
                their_times.push(timed(&theirs)?);
            }
            let (ours, theirs) = (middle(our_times), middle(their_times));
            println!(
                "{:<44} {:>8.2} {:>14.2}",
                format!("{name} {what}"),
                ours * 1e3,
                ours / theirs
            );
            let limit = if name == "idemctl" { 0.45 } else { 0.36 };
            goals.push(Goal::ratio(
                format!("{name} {what}: time of `redis-cli get`"),
                limit,
                ours / theirs,
            ));
        }
    }
    Ok(goals)
}

/// `race` beside `redis-benchmark` with the same script and as many clients.
pub fn race(setup: &Setup, socket: &Path) -> io::Result<Vec<Goal>> {
    let path = socket.display().to_string();
    let script = include_bytes!("../../lua/go-middleware/check_and_lock.lua");
    let sha = loaded(socket, script)?;
    let theirs = words(&[
        "redis-benchmark",
        "-s",
        &path,
        "-c",
        WORKERS,
        "-n",
        "50000",
        "-P",
        "1",
        "-q",
        "--csv",
        "evalsha",
        &sha,
        "1",
        "idempotency:bench-race",
        "1000",
        "{\"status\":\"PENDING\"}",
    ]);
    let race = [
        "race",
        "--schema",
        "go-middleware",
        "--strategy",
        "schema",
        "--concurrency",
        WORKERS,
        "--rounds",
        "400",
        "-o",
        "jsonl",
    ];
    let ours = setup.idemctl(socket, &race);
    let (mut our_rates, mut their_rates) = (Vec::new(), Vec::new());
    for _ in 0..setup.rounds {
        our_rates.extend(number_after(&said(&ours)?, "\"ops_per_second\":"));
        let csv = said(&theirs)?;
        their_rates.extend(
            csv.lines()
                .rev()
                .find_map(|line| line.split(',').nth(1)?.trim_matches('"').parse::<f64>().ok()),
        );
    }
    let (ours, theirs) = (middle(our_rates), middle(their_rates));
    println!(
        "A race of {WORKERS}: {ours:.0} steps a second, redis-benchmark {theirs:.0} calls of its script a second ({:.2}x)",
        ours / theirs
    );
    Ok(vec![Goal::ratio("race: the time of a call of redis-benchmark", 1.05, theirs / ours)])
}

/// `purge` beside names piped into UNLINK. Both leave nothing, so the records are written anew for each. `undo` beside the purge that
/// it reverts.
pub fn purge(setup: &Setup, socket: &Path) -> io::Result<Vec<Goal>> {
    let path = socket.display().to_string();
    let state = StateFolder::new()?;
    let pipe = format!(
        "redis-cli -s {path} --scan --pattern 'idempotency:*' | xargs -L 1000 redis-cli -s {path} unlink"
    );
    let purge =
        |program: &str, more: &[&str]| state.run(program, &["-s", &path], &[&PURGE, more].concat());
    let undo = state.run(&setup.idemctl, &["-s", &path], &["undo", "--yes"]);
    let mut undos = Vec::new();
    let mut contenders = vec![
        ("idemctl purge --no-backup", purge(&setup.idemctl, &["--no-backup"])),
        ("idemctl purge", purge(&setup.idemctl, &[])),
        ("redis-cli --scan | xargs redis-cli unlink", words(&["sh", "-c", &pipe])),
    ];
    if let Some(older) = &setup.older {
        contenders.push(("older idemctl purge --no-backup", purge(older, &["--no-backup"])));
        contenders.push(("older idemctl purge", purge(older, &[])));
    }
    let mut runs = vec![Vec::new(); contenders.len()];
    for _ in 0..setup.rounds {
        for ((name, command), runs) in contenders.iter().zip(&mut runs) {
            server::seed(socket, setup.records, Lives::Minutes)?;
            runs.push(measure::program(command, socket)?);
            if *name == "idemctl purge" {
                undos.push(measure::program(&undo, socket)?);
            }
            state.clear();
        }
    }
    println!(
        "\n{:<44} {:>8} {:>9} {:>9} {:>9} {:>9} {:>8}",
        "Removing every record", "wall s", "x unlink", "server s", "x unlink", "peak MB", "p99 ms"
    );
    let rows = contenders.iter().map(|(name, _)| *name).zip(&runs);
    for (name, ours) in rows.chain([("idemctl undo", &undos)]) {
        let (run, ratio) = (measure::median(ours), measure::ratio(ours, &runs[2]));
        let (server, wall) = (measure::server_ratio(ours, &runs[2]), run.wall.as_secs_f64());
        // Of a pipe only the shell is watched.
        let peak =
            if name.contains("idemctl") { format!("{:.1}", run.peak_mb()) } else { "-".to_owned() };
        let p99 = run.p99_ms();
        println!(
            "{name:<44} {wall:>8.3} {ratio:>9.2} {:>9.3} {server:>9.2} {peak:>9} {p99:>8.1}",
            run.server_s
        );
    }
    let alone = measure::median(&runs[0]);
    // The server works two and a half times as long, and idemctl works meanwhile: the goals are for a machine whose two cores are
    // two. Where the processors are shared, they are missed.
    let pipe = "redis-cli --scan | xargs redis-cli unlink";
    let both = [("purge without backup", &runs[0], 1.0), ("purge", &runs[1], 1.15)];
    let mut goals = Vec::new();
    for (name, ours, limit) in both {
        goals.push(Goal::ratio(format!("{name}: {pipe}"), limit, measure::ratio(ours, &runs[2])));
        goals.push(Goal::megabytes(
            format!("{name}: peak memory"),
            16.0,
            measure::median(ours).peak_mb(),
        ));
    }
    if setup.older.is_some() {
        for ((name, ours, _), theirs) in both.into_iter().zip(&runs[3..]) {
            let what = format!("{name}: the server's time with the older idemctl");
            goals.push(Goal::ratio(what, 0.8, measure::server_ratio(ours, theirs)));
        }
    }
    let of_server = measure::server_ratio(&runs[1], &runs[2]);
    goals.push(Goal::ratio(format!("purge: the server's time for {pipe}"), 1.15, of_server));
    let p99 = alone.p99_ms().max(measure::median(&runs[1]).p99_ms());
    goals.push(Goal::millis("purge: another client's GET, p99", 3.0, p99));
    goals.push(Goal::ratio("undo: the purge", 1.5, measure::ratio(&undos, &runs[1])));
    goals.push(Goal::ratio(
        "undo: the server's time for the purge",
        1.5,
        measure::server_ratio(&undos, &runs[1]),
    ));
    goals.push(Goal::megabytes("undo: peak memory", 32.0, measure::median(&undos).peak_mb()));
    goals.push(Goal::millis(
        "undo: another client's GET, p99",
        5.0,
        measure::median(&undos).p99_ms(),
    ));
    Ok(goals)
}

/// Seconds a command takes; 1 is the exit status of "the answer is no".
fn timed(words: &[String]) -> io::Result<f64> {
    let started = Instant::now();
    let status = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    let took: Duration = started.elapsed();
    match status.code() {
        Some(0 | 1) => Ok(took.as_secs_f64()),
        _ => Err(io::Error::other(format!("`{}` failed", words.join(" ")))),
    }
}

fn said(words: &[String]) -> io::Result<String> {
    let output = Command::new(&words[0]).args(&words[1..]).stdin(Stdio::null()).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn loaded(socket: &Path, script: &[u8]) -> io::Result<String> {
    let mut connection = Connection::open(socket)?;
    let mut out = Vec::new();
    pack(&mut out, &[b"SCRIPT", b"LOAD", script]);
    connection.send(&out)?;
    connection.text()
}

fn number_after(text: &str, name: &str) -> Option<f64> {
    let (_, rest) = text.split_once(name)?;
    rest.split([',', '}']).next()?.parse().ok()
}
