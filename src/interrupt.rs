//! Ctrl-C, heeded between two pieces of work: the piece in hand ends, and what was done is known.

use std::fs;
use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Lets a write fail that exceeds the limit for the size of a file (`ulimit -f`, LimitFSIZE), as on a full disk. Without this
/// SIGXFSZ ends the process between a change and its line in the audit log. Programs that idemctl starts are not concerned.
pub fn outlive_file_size_limit() -> io::Result<()> {
    // A handler stays for the rest of the process, whoever waits for it.
    signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop)
}

#[derive(Debug, Clone)]
pub struct Interrupt(CancellationToken);

impl Interrupt {
    /// Listens for Ctrl-C, which from then on ends nothing by itself.
    pub fn listen() -> io::Result<Self> {
        let interrupt = Self(CancellationToken::new());
        interrupt.heed(SignalKind::interrupt())?;
        Ok(interrupt)
    }

    /// Listens for SIGTERM, SIGQUIT and SIGHUP, too, because what comes next has to end in good order. Before this call
    /// each of them ends the process at once, even at a prompt.
    pub fn heed_terminate(&self) -> io::Result<()> {
        self.heed(SignalKind::terminate())?;
        self.heed(SignalKind::quit())?;
        // A handler would replace what `nohup` set up: under it a run survives the end of the session.
        if !ignores_hangup() {
            self.heed(SignalKind::hangup())?;
        }
        Ok(())
    }

    fn heed(&self, kind: SignalKind) -> io::Result<()> {
        let mut signals = signal(kind)?;
        let token = self.0.clone();
        tokio::spawn(async move {
            signals.recv().await;
            token.cancel();
        });
        Ok(())
    }

    pub fn is_raised(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Does work that can be given up at any moment; `None` when Ctrl-C comes first, or at the same moment.
    pub async fn unless_raised<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.0.cancelled() => None,
            done = work => Some(done),
        }
    }
}

/// True if SIGHUP was ignored when this process started, or if the system does not tell.
fn ignores_hangup() -> bool {
    let Ok(status) = fs::read_to_string("/proc/self/status") else { return true };
    ignored(&status)
        .is_none_or(|signals| signals & (1 << (SignalKind::hangup().as_raw_value() - 1)) != 0)
}

/// The set of ignored signals in a process status of Linux, a bit for each signal.
fn ignored(status: &str) -> Option<u64> {
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(set.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::ignored;

    #[test]
    fn the_ignored_signals_are_read_from_the_process_status() {
        assert_eq!(
            ignored("Name:\tx\nSigBlk:\t0000000000000002\nSigIgn:\t0000000000001001\n"),
            Some(0x1001)
        );
        assert_eq!(ignored("Name:\tx\n"), None);
        assert_eq!(ignored("SigIgn:\tx\n"), None);
    }
}
