//! How much memory a run takes.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::Run;

/// Runs a command with nothing on stdin; the most memory it held at a time, in bytes, comes with what it gave.
///
/// The kernel keeps the highest mark as long as the process runs, so that looking every millisecond misses at most what is
/// taken in the last one.
pub fn peak_of(mut command: Command) -> (Run, u64) {
    let started = Instant::now();
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let output = std::thread::spawn(move || child.wait_with_output().unwrap());
    let mut peak = 0;
    while !output.is_finished() {
        peak = peak.max(high_water(&status).unwrap_or_default());
        std::thread::sleep(Duration::from_millis(1));
    }
    // What ends before the first look has had no time to take much.
    assert!(peak > 0 || started.elapsed() < Duration::from_millis(100), "{status} tells no VmHWM");
    (Run::from(output.join().unwrap()), peak)
}

fn high_water(status: &str) -> Option<u64> {
    let status = std::fs::read_to_string(status).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}
