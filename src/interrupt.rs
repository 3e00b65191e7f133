//! Ctrl-C. While records change, it takes effect between two steps: the current step is completed,
//! so that its outcome is known. Work that only reads is cancelled at once.

use std::fs;
use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Makes a write fail when it exceeds the file size limit (`ulimit -f`, LimitFSIZE), as on a full
/// disk. Otherwise SIGXFSZ would end the process between a change and its line in the audit log.
/// Programs that idemctl starts are not affected.
pub fn outlive_file_size_limit() -> io::Result<()> {
    // The handler remains for the rest of the process, even without a receiver.
    signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop)
}

#[derive(Debug, Clone)]
pub struct Interrupt(CancellationToken);

impl Interrupt {
    /// Handles Ctrl-C, which from then on does not end the process.
    pub fn listen() -> io::Result<Self> {
        let interrupt = Self(CancellationToken::new());
        interrupt.heed(SignalKind::interrupt())?;
        Ok(interrupt)
    }

    /// Handles SIGTERM, SIGQUIT and SIGHUP as well, because the next steps must be completed in
    /// order, or the terminal must be restored after a prompt. Before this call, each of them ends
    /// the process immediately.
    pub fn handle_terminate(&self) -> io::Result<()> {
        self.heed(SignalKind::terminate())?;
        self.heed(SignalKind::quit())?;
        // A handler would replace the setting of `nohup`, which lets a run survive the end of the
        // session.
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

    /// Runs work that may be cancelled at any time; `None` if Ctrl-C comes first or at the same
    /// time.
    pub async fn unless_raised<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.0.cancelled() => None,
            done = work => Some(done),
        }
    }
}

/// True if SIGHUP was ignored when this process started, or if the system does not show that.
fn ignores_hangup() -> bool {
    let Ok(status) = fs::read_to_string("/proc/self/status") else { return true };
    ignored(&status)
        .is_none_or(|signals| signals & (1 << (SignalKind::hangup().as_raw_value() - 1)) != 0)
}

/// The set of ignored signals in a process status of Linux, with one bit per signal.
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
