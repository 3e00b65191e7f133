//! The benchmarks of idemctl beside what one would use without it, in one run on a seeded server of their own. They
//! print ratios and never fail on time.

mod beside;
mod bystander;
mod cluster;
mod goal;
mod measure;
mod proxy;
mod reference;
mod resp;
mod scale;
mod scans;
mod server;

use std::io;
use std::path::Path;

/// The programs, and how much is to be done.
pub struct Setup {
    /// The program under test.
    pub idemctl: String,
    /// The same, as a release packs it, where that is built.
    pub statically: Option<String>,
    /// An older release, to compare the server's work with, where one is named.
    pub older: Option<String>,
    /// A server program.
    pub server: String,
    /// A Python with the redis package; none is there when it is empty.
    pub python: String,
    /// Idempotency records to seed, and as many unrelated keys.
    pub records: usize,
    /// How often everything is run, one after another.
    pub rounds: usize,
}

impl Setup {
    /// From the environment, as scripts/bench.sh sets it.
    fn read() -> Option<Self> {
        let variable = |name: &str| std::env::var(name).ok();
        Some(Self {
            idemctl: variable("BENCH_IDEMCTL")?,
            statically: variable("BENCH_STATIC").filter(|path| Path::new(path).exists()),
            older: variable("OLDER").filter(|path| Path::new(path).exists()),
            server: variable("BENCH_SERVER")?,
            python: variable("BENCH_PYTHON").unwrap_or_default(),
            records: variable("N")?.parse().ok()?,
            rounds: variable("ROUNDS")?.parse().ok()?,
        })
    }

    /// A run of idemctl on the server at this socket.
    pub fn idemctl(&self, socket: &Path, words: &[&str]) -> Vec<String> {
        let mut command = vec![self.idemctl.clone(), "-s".to_owned(), socket.display().to_string()];
        command.extend(words.iter().map(|word| (*word).to_owned()));
        command
    }
}

/// The words of a command.
pub fn words(command: &[&str]) -> Vec<String> {
    command.iter().map(|word| (*word).to_owned()).collect()
}

fn main() -> io::Result<()> {
    let Some(setup) = Setup::read() else {
        eprintln!("run this by scripts/bench.sh, which says what is where");
        std::process::exit(2);
    };
    if std::env::var_os("SCALE").is_some() {
        goal::print(&scale::ten_times(&setup)?);
        return Ok(());
    }
    let server = server::Server::start(&setup.server, 0, &[])?;
    let socket = server.socket();
    println!(
        "{} records of one schema, 1 in 10 a lock, beside as many unrelated keys; {} rounds.",
        setup.records, setup.rounds
    );
    server::seed(&socket, setup.records, server::Lives::Minutes)?;
    let mut goals = scans::scan(&setup, &socket)?;
    goals.extend(scans::duplicates(&setup, &socket)?);
    goals.extend(scans::far_away(&setup, &socket)?);
    goals.extend(beside::inspect(&setup, &socket)?);
    goals.extend(beside::race(&setup, &socket)?);
    goals.extend(beside::purge(&setup, &socket)?);
    goals.extend(scale::busy_day(&setup, &socket)?);
    drop(server);
    goals.extend(scans::hashes(&setup)?);
    goals.extend(cluster::beside_one_server(&setup)?);
    goal::print(&goals);
    Ok(())
}
