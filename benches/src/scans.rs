//! Reading every record: idemctl, what comes with Redis, a script of one's own, and the limit.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::measure::{self, Run};
use crate::{Setup, proxy, reference, words};

/// What is added to a round trip to a server far away, each way.
const ONE_WAY: Duration = Duration::from_micros(500);

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
    Reference,
}

impl Contender {
    fn run(&self, socket: &Path) -> io::Result<Run> {
        match self {
            Self::Program(words) => measure::program(words, socket),
            Self::Reference => measure::function(|| reference::scan(socket), socket),
        }
    }
}

/// Runs all of them in turn, and prints a table.
pub fn scan(setup: &Setup, socket: &Path) -> io::Result<()> {
    let contenders = contenders(setup, socket);
    let mut runs = vec![Vec::new(); contenders.len()];
    for _ in 0..setup.rounds {
        for (contender, runs) in contenders.iter().zip(&mut runs) {
            runs.push(contender.1.run(socket)?);
        }
    }
    let medians: Vec<_> = runs.iter().map(|runs| measure::median(runs)).collect();
    let of = |name: &str| contenders.iter().position(|contender| contender.0 == name).map(|index| medians[index].wall);
    let (limit, bigkeys, python) = (of("raw socket"), of("redis-cli --bigkeys"), of("redis-py"));
    println!(
        "\n{:<36} {:>8} {:>8} {:>10} {:>9} {:>9} {:>8}",
        "", "wall s", "x raw", "x bigkeys", "x redis-py", "peak MB", "p99 ms"
    );
    for ((name, _), run) in contenders.iter().zip(&medians) {
        let ratio = |other: Option<Duration>| {
            other.map_or_else(|| "-".to_owned(), |other| format!("{:.2}", run.wall.as_secs_f64() / other.as_secs_f64()))
        };
        let peak = if run.peak_kib == 0 { "-".to_owned() } else { format!("{:.1}", run.peak_kib as f64 / 1024.0) };
        println!(
            "{name:<36} {:>8.3} {:>8} {:>10} {:>9} {peak:>9} {:>8.1}",
            run.wall.as_secs_f64(),
            ratio(limit),
            ratio(bigkeys),
            ratio(python),
            run.p99.as_secs_f64() * 1e3,
        );
    }
    println!("p99: another client's GET every 5 ms meanwhile. Medians; peak: the highest.");
    Ok(())
}

fn contenders(setup: &Setup, socket: &Path) -> Vec<(&'static str, Contender)> {
    let path = socket.display().to_string();
    let idemctl = |words: &[&str]| Contender::Program(setup.idemctl(socket, words));
    let mut contenders = vec![
        ("idemctl list -o jsonl", idemctl(&["list", "-o", "jsonl"])),
        ("idemctl list --state in-progress", idemctl(&["list", "-o", "jsonl", "--state", "in-progress"])),
    ];
    if setup.knows("sweep") {
        contenders.push(("idemctl sweep --orphaned --dry-run", idemctl(&["sweep", "--orphaned", "--dry-run"])));
    } else {
        println!("Left out: sweep, which this idemctl does not have.");
    }
    contenders.push(("raw socket", Contender::Reference));
    contenders.push(("redis-cli --bigkeys", Contender::Program(words(&["redis-cli", "-s", &path, "--bigkeys"]))));
    if setup.python.is_empty() {
        println!("Left out: redis-py, which is not to be had here.");
    } else {
        contenders.push(("redis-py", Contender::Program(words(&[&setup.python, "-c", PYTHON, &path]))));
    }
    contenders
}

/// The same with a millisecond more for each round trip.
pub fn far_away(setup: &Setup, socket: &Path) -> io::Result<()> {
    let port = proxy::start(socket, ONE_WAY)?.to_string();
    let list = words(&[&setup.idemctl, "-p", &port, "list", "-o", "jsonl"]);
    let scan = words(&["redis-cli", "-p", &port, "--scan"]);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..setup.rounds {
        ours.push(measure::program(&list, socket)?);
    }
    // It takes long enough to be steady.
    theirs.push(measure::program(&scan, socket)?);
    let (ours, theirs) = (measure::median(&ours).wall.as_secs_f64(), measure::median(&theirs).wall.as_secs_f64());
    println!(
        "\nWith 1 ms more for each round trip: idemctl list -o jsonl {ours:.2} s, redis-cli --scan {theirs:.2} s ({:.2}x)",
        ours / theirs
    );
    Ok(())
}
