//! Reading every record: idemctl, what comes with Redis, a script of one's own, and the limit.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::goal::Goal;
use crate::measure::{self, Run};
use crate::reference::{self, EXPIRIES, HASHES, Reads, STRINGS, WHOLE, WITH_LENGTHS};
use crate::{Setup, proxy, server, words};

/// What is added to a round trip to a server far away, each way.
const ONE_WAY: Duration = Duration::from_micros(500);

/// What idemctl is compared with.
const RAW: &str = "raw socket";
/// The same with the commands of a list, and of a sweep: what they cannot be faster than.
const RAW_LIST: &str = "raw socket, commands of list";
const RAW_SWEEP: &str = "raw socket, commands of sweep";
const BIGKEYS: &str = "redis-cli --bigkeys";
const REDIS_PY: &str = "redis-py";

/// A scan with redis-py, as one would write it.
const PYTHON: &str = "
import itertools, redis, sys
client = redis.Redis(unix_socket_path=sys.argv[1])
keys = client.scan_iter(match='idempotency:*', count=500)
while page := list(itertools.islice(keys, 500)):
    pipe = client.pipeline(transaction=False)
    for key in page:
        pipe.get(key).pttl(key)
    pipe.execute()
";

/// Something that reads every record.
enum Contender {
    Program(Vec<String>),
    Reference(&'static Reads),
}

impl Contender {
    fn run(&self, socket: &Path) -> io::Result<Run> {
        match self {
            Self::Program(words) => measure::program(words, socket),
            Self::Reference(reads) => measure::function(|| reference::scan(socket, reads), socket),
        }
    }
}

/// Runs all of them in turn, and prints a table.
pub fn scan(setup: &Setup, socket: &Path) -> io::Result<Vec<Goal>> {
    let contenders = contenders(setup, socket);
    let mut runs = vec![Vec::new(); contenders.len()];
    for _ in 0..setup.rounds {
        for (contender, runs) in contenders.iter().zip(&mut runs) {
            runs.push(contender.1.run(socket)?);
        }
    }
    let others = [RAW, BIGKEYS, REDIS_PY]
        .map(|name| contenders.iter().position(|contender| contender.0 == name));
    let ratios =
        |ours: &[Run]| others.map(|other| other.map(|other| measure::ratio(ours, &runs[other])));
    println!(
        "\n{:<36} {:>8} {:>8} {:>8} {:>8} {:>10} {:>10} {:>9} {:>8}",
        "Reading every record",
        "wall s",
        "x raw",
        "server s",
        "x raw",
        "x bigkeys",
        "x redis-py",
        "peak MB",
        "p99 ms"
    );
    let raw_runs = contenders.iter().position(|contender| contender.0 == RAW);
    let mut goals = Vec::new();
    for ((name, _), ours) in contenders.iter().zip(&runs) {
        let run = measure::median(ours);
        let ratios = ratios(ours);
        let [raw, bigkeys, python] =
            ratios.map(|x| x.map_or_else(|| "-".to_owned(), |x| format!("{x:.2}")));
        let peak = if run.peak_kib == 0 { "-".to_owned() } else { format!("{:.1}", run.peak_mb()) };
        let wall = run.wall.as_secs_f64();
        let server = raw_runs.map_or(f64::NAN, |index| measure::server_ratio(ours, &runs[index]));
        println!(
            "{name:<36} {wall:>8.3} {raw:>8} {:>8.3} {server:>8.2} {bigkeys:>10} {python:>10} {peak:>9} {:>8.1}",
            run.server_s,
            run.p99_ms()
        );
        if name.contains("idemctl") {
            let limits =
                [(RAW, limit_of(name)), (BIGKEYS, 0.4), (REDIS_PY, 0.25)].into_iter().zip(ratios);
            goals.extend(limits.filter_map(|((other, limit), x)| {
                Some(Goal::ratio(format!("{name}: {other}"), limit, x?))
            }));
            goals.push(Goal::millis(
                format!("{name}: another client's GET, p99"),
                3.0,
                run.p99_ms(),
            ));
            goals.push(Goal::megabytes(format!("{name}: peak memory"), 16.0, run.peak_mb()));
        }
    }
    println!(
        "p99: another client's GET every 5 ms meanwhile. Medians, of ratios those of each round; peak: the highest."
    );
    Ok(goals)
}

/// How many times as long as the raw socket a command may take. A sweep reads only the deadlines of keys that expire; musl
/// copies memory more slowly.
fn limit_of(name: &str) -> f64 {
    match name {
        _ if name.starts_with("static") => 1.15,
        _ if name.contains("sweep") => 0.65,
        _ if name.contains("stats") => 1.05,
        _ => 1.10,
    }
}

fn contenders(setup: &Setup, socket: &Path) -> Vec<(&'static str, Contender)> {
    let path = socket.display().to_string();
    let idemctl = |words: &[&str]| Contender::Program(setup.idemctl(socket, words));
    let mut contenders = vec![
        ("idemctl list -o jsonl", idemctl(&["list", "-o", "jsonl"])),
        ("idemctl list", idemctl(&["list"])),
        ("idemctl list -o csv", idemctl(&["list", "-o", "csv"])),
        ("idemctl stats", idemctl(&["stats"])),
        ("idemctl sweep --orphaned --dry-run", idemctl(&["sweep", "--orphaned", "--dry-run"])),
        (RAW, Contender::Reference(&STRINGS)),
        (RAW_LIST, Contender::Reference(&WITH_LENGTHS)),
        (RAW_SWEEP, Contender::Reference(&EXPIRIES)),
        (BIGKEYS, Contender::Program(words(&["redis-cli", "-s", &path, "--bigkeys"]))),
    ];
    if let Some(program) = &setup.statically {
        let list = words(&[program, "-s", &path, "list", "-o", "jsonl"]);
        contenders.push(("static idemctl list -o jsonl", Contender::Program(list)));
    }
    if setup.python.is_empty() {
        println!("Left out: redis-py, which is not to be had here.");
    } else {
        contenders
            .push((REDIS_PY, Contender::Program(words(&[&setup.python, "-c", PYTHON, &path]))));
    }
    contenders
}

/// The same with a millisecond more for each round trip.
pub fn far_away(setup: &Setup, socket: &Path) -> io::Result<Vec<Goal>> {
    let port = proxy::start(socket, ONE_WAY)?.to_string();
    // It takes long enough to be steady.
    let theirs = [measure::program(&words(&["redis-cli", "-p", &port, "--scan"]), socket)?];
    let theirs_s = theirs[0].wall.as_secs_f64();
    println!("\nWith 1 ms more for each round trip: redis-cli --scan {theirs_s:.2} s");
    let mut goals = Vec::new();
    for command in ["list -o jsonl", "sweep --orphaned --dry-run"] {
        let mut ours = words(&[&setup.idemctl, "-p", &port]);
        ours.extend(command.split(' ').map(str::to_owned));
        let runs = (0..setup.rounds)
            .map(|_| measure::program(&ours, socket))
            .collect::<io::Result<Vec<_>>>()?;
        let ours_s = measure::median(&runs).wall.as_secs_f64();
        println!("  idemctl {command} {ours_s:.2} s ({:.2}x)", ours_s / theirs_s);
        goals.push(Goal::ratio(
            format!("idemctl {command}, 1 ms away: redis-cli --scan"),
            0.1,
            ours_s / theirs_s,
        ));
    }
    Ok(goals)
}

/// Comparing the responses of all records, beside the limit for reading whole values.
pub fn duplicates(setup: &Setup, socket: &Path) -> io::Result<Vec<Goal>> {
    let (mut raw, mut ours) = (Vec::new(), Vec::new());
    // No two records of the seed agree, and every response has the value.
    let words =
        setup.idemctl(socket, &["duplicates", "--schema", "go-middleware", "--same", "/id"]);
    for _ in 0..setup.rounds {
        raw.push(measure::function(|| reference::scan(socket, &WHOLE), socket)?);
        ours.push(measure::program(&words, socket)?);
    }
    let (run, ratio) = (measure::median(&ours), measure::ratio(&ours, &raw));
    println!(
        "\nReading whole values: a raw socket {:.3} s; idemctl duplicates --same {:.3} s ({ratio:.2}x), {:.1} MB",
        measure::median(&raw).wall.as_secs_f64(),
        run.wall.as_secs_f64(),
        run.peak_mb()
    );
    // 32 bytes for each value that is compared, and what a scan takes.
    let most_mb = 40.0 + setup.records as f64 * 64.0 / (1024.0 * 1024.0);
    Ok(vec![
        Goal::ratio(format!("idemctl duplicates --same: {RAW}, whole values"), 1.3, ratio),
        Goal::megabytes("idemctl duplicates --same: peak memory", most_mb.round(), run.peak_mb()),
    ])
}

/// Reading records that are hashes, on a server of their own, beside the limit.
pub fn hashes(setup: &Setup) -> io::Result<Vec<Goal>> {
    let server = server::Server::start(&setup.server, 0, &[])?;
    let socket = server.socket();
    server::seed_hashes(&socket, setup.records)?;
    let commands =
        [&["list", "-o", "jsonl"][..], &["stats"], &["sweep", "--orphaned", "--dry-run"]];
    let (mut raw, mut ours) = (Vec::new(), vec![Vec::new(); commands.len()]);
    for _ in 0..setup.rounds {
        raw.push(measure::function(|| reference::scan(&socket, &HASHES), &socket)?);
        for (command, runs) in commands.iter().zip(&mut ours) {
            let words = [command, &["--schema", "bullmq-job"][..]].concat();
            runs.push(measure::program(&setup.idemctl(&socket, &words), &socket)?);
        }
    }
    println!(
        "\nReading hashes of seven fields: a raw socket {:.3} s",
        measure::median(&raw).wall.as_secs_f64()
    );
    let mut goals = Vec::new();
    for (command, runs) in commands.iter().zip(&ours) {
        let (run, ratio) = (measure::median(runs), measure::ratio(runs, &raw));
        let name = format!("idemctl {}", command.join(" "));
        println!(
            "  {name:<34} {:.3} s ({ratio:.2}x), {:.1} MB",
            run.wall.as_secs_f64(),
            run.peak_mb()
        );
        goals.push(Goal::ratio(format!("{name}, hashes: {RAW}"), 1.5, ratio));
        goals.push(Goal::megabytes(format!("{name}, hashes: peak memory"), 32.0, run.peak_mb()));
    }
    Ok(goals)
}
