//! Running a program and watching it.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::bystander::Bystander;
use crate::resp::{Connection, pack};

/// What one run took.
#[derive(Clone, Copy, Default)]
pub struct Run {
    pub wall: Duration,
    /// Processor time of the server meanwhile, in seconds, which is steadier than wall time.
    pub server_s: f64,
    /// Peak resident memory in KiB; 0 where /proc does not say.
    pub peak_kib: u64,
    /// What a bystander's GET took, at the 99th percentile.
    pub p99: Duration,
}

impl Run {
    /// Peak resident memory in megabytes.
    pub fn peak_mb(&self) -> f64 {
        self.peak_kib as f64 / 1024.0
    }

    /// What the bystander waited, in milliseconds.
    pub fn p99_ms(&self) -> f64 {
        self.p99.as_secs_f64() * 1e3
    }
}

/// Runs a program to its end, its output thrown away.
///
/// # Errors
/// It cannot be started, or fails.
pub fn program(words: &[String], socket: &Path) -> io::Result<Run> {
    let bystander = Bystander::start(socket)?;
    let server_before = server_s(socket)?;
    let started = Instant::now();
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let watch = Watch::start(child.id());
    let code = child.wait()?;
    let wall = started.elapsed();
    let server_s = server_s(socket)? - server_before;
    let run = Run { wall, server_s, peak_kib: watch.peak(), p99: bystander.p99() };
    if code.success() {
        return Ok(run);
    }
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        io::Read::read_to_string(&mut stderr, &mut said)?;
    }
    Err(io::Error::other(format!(
        "{}: {}",
        words.join(" "),
        said.lines().next().unwrap_or("failed")
    )))
}

/// Runs a function of our own.
pub fn function(work: impl FnOnce() -> io::Result<usize>, socket: &Path) -> io::Result<Run> {
    let bystander = Bystander::start(socket)?;
    let server_before = server_s(socket)?;
    let started = Instant::now();
    work()?;
    let wall = started.elapsed();
    let server_s = server_s(socket)? - server_before;
    Ok(Run { wall, server_s, peak_kib: 0, p99: bystander.p99() })
}

/// The processor time of the server since its start, in seconds.
fn server_s(socket: &Path) -> io::Result<f64> {
    let mut connection = Connection::open(socket)?;
    let mut out = Vec::new();
    pack(&mut out, &[b"INFO", b"cpu"]);
    connection.send(&out)?;
    let info = connection.text()?;
    let mut seconds = 0.0;
    for line in info.lines() {
        if let Some((name @ ("used_cpu_sys" | "used_cpu_user"), value)) = line.split_once(':') {
            seconds += value
                .parse::<f64>()
                .map_err(|error| io::Error::other(format!("{name}: {error}")))?;
        }
    }
    Ok(seconds)
}

/// Looks at a program's memory from time to time: so seldom that it does not slow the program down.
struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Watch {
    fn start(process: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let status = format!("/proc/{process}/status");
            let mut highest = 0;
            while !stopped.load(Ordering::Relaxed) {
                highest = highest.max(peak(&status));
                std::thread::sleep(Duration::from_millis(20));
            }
            highest
        });
        Self { stop, thread }
    }

    /// Stops; the highest in KiB.
    fn peak(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

fn peak(status: &str) -> u64 {
    let text = std::fs::read_to_string(status).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// How many times as long as the other's our runs took, each beside the one of its round; the middle of them.
pub fn ratio(ours: &[Run], theirs: &[Run]) -> f64 {
    let pairs = ours.iter().zip(theirs);
    middle(
        pairs.map(|(ours, theirs)| ours.wall.as_secs_f64() / theirs.wall.as_secs_f64()).collect(),
    )
}

/// The same of the server's processor time.
pub fn server_ratio(ours: &[Run], theirs: &[Run]) -> f64 {
    let pairs = ours.iter().zip(theirs);
    middle(pairs.map(|(ours, theirs)| ours.server_s / theirs.server_s).collect())
}

/// The number in the middle.
pub fn middle(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The run in the middle by wall time, the p99 in the middle, and the highest peak.
pub fn median(runs: &[Run]) -> Run {
    let mut walls: Vec<_> = runs.iter().map(|run| run.wall).collect();
    walls.sort_unstable();
    let mut p99s: Vec<_> = runs.iter().map(|run| run.p99).collect();
    p99s.sort_unstable();
    Run {
        server_s: middle(runs.iter().map(|run| run.server_s).collect()),
        wall: walls.get(walls.len() / 2).copied().unwrap_or_default(),
        p99: p99s.get(p99s.len() / 2).copied().unwrap_or_default(),
        peak_kib: runs.iter().map(|run| run.peak_kib).max().unwrap_or(0),
    }
}
