//! How much memory a run takes.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{Run, Runs, Signal, signal};

/// How often a command that ended at once is started anew.
const TRIES: u32 = 20;

/// Longer than any command takes. One that reads without end is killed then, so that its test fails and does not wait.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs a command with nothing on stdin; the most memory it held at a time, in bytes, comes with what it gave.
///
/// The kernel keeps the highest mark as long as the process runs, so that looking every millisecond misses at most what is
/// taken in the last one.
pub fn peak_of(command: &mut Command) -> (Run, u64) {
    for _ in 0..TRIES {
        let (child, began) = (command.start(), Instant::now());
        let pid = child.id();
        let status = format!("/proc/{pid}/status");
        let output = std::thread::spawn(move || child.wait_with_output().unwrap());
        let (mut peak, mut is_killed) = (0, false);
        while !output.is_finished() {
            peak = peak.max(high_water(&status).unwrap_or_default());
            if began.elapsed() > LIMIT && !is_killed {
                signal(pid, Signal::KILL);
                is_killed = true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let run = Run::from(output.join().unwrap());
        // A command that ends before the first look, on a busy machine, is started again.
        if peak > 0 {
            return (run, peak);
        }
    }
    panic!("the command ends each time before anybody can look how much memory it takes");
}

fn high_water(status: &str) -> Option<u64> {
    let status = std::fs::read_to_string(status).ok()?;
    // Until the child has become idemctl its memory is that of the test, which holds large values.
    status.strip_prefix("Name:\tidemctl\n")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}
