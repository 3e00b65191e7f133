//! Another client, who reads one key every 5 ms and does not want to be kept waiting.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::resp::{Connection, pack};

pub struct Bystander {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Duration>>,
}

impl Bystander {
    pub fn start(socket: &Path) -> io::Result<Self> {
        let mut connection = Connection::open(socket)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut waits = Vec::new();
            let mut out = Vec::new();
            pack(&mut out, &[b"GET", b"session:1"]);
            while !stopped.load(Ordering::Relaxed) {
                let asked = Instant::now();
                if connection.send(&out).is_err() {
                    break;
                }
                // A node of a cluster may name another one, which takes as long.
                let _ = connection.item();
                waits.push(asked.elapsed());
                std::thread::sleep(Duration::from_millis(5));
            }
            waits
        });
        Ok(Self { stop, thread })
    }

    /// Stops; the 99th percentile of the waits.
    pub fn p99(self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        let mut waits = self.thread.join().unwrap_or_default();
        waits.sort_unstable();
        waits.get(waits.len() * 99 / 100).copied().unwrap_or_default()
    }
}
