//! Ctrl-C. While records change, it takes effect between two steps: the current step is completed,
//! so that its outcome is known. Work that only reads is cancelled at once.

#[cfg(not(target_os = "macos"))]
use std::fs;
use std::io;
#[cfg(target_os = "macos")]
use std::process::{self, Command};

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
    ignored_signals()
        .as_deref()
        .and_then(signal_set)
        .is_none_or(|signals| signals & (1 << (SignalKind::hangup().as_raw_value() - 1)) != 0)
}

/// The signals that this process ignores, as the system shows them.
#[cfg(not(target_os = "macos"))]
fn ignored_signals() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("SigIgn:")).map(str::to_owned)
}

/// The signals that this process ignores. macOS has no /proc, and shows them only with `ps`.
#[cfg(target_os = "macos")]
fn ignored_signals() -> Option<String> {
    let id = process::id().to_string();
    let shown = Command::new("/bin/ps").args(["-o", "sigignore=", "-p", &id]).output().ok()?;
    String::from_utf8(shown.stdout).ok()
}

/// A set of signals in hexadecimal digits, with one bit per signal.
fn signal_set(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_ignored_signals_are_a_set() {
        assert_eq!(signal_set("\t0000000000001001\n"), Some(0x1001));
        assert_eq!(signal_set("1001\n"), Some(0x1001));
        assert_eq!(signal_set(""), None);
    }

    /// Rule: what `ps` shows of a process is what the process itself reads of Linux.
    #[test]
    fn a_shell_that_ignores_the_hangup_is_seen() {
        let script = "trap '' HUP; ps -o sigignore= -p $$ || sed -n 's/SigIgn://p' /proc/$$/status";
        let shown = Command::new("/bin/sh").args(["-c", script]).output().unwrap();
        let set = signal_set(std::str::from_utf8(&shown.stdout).unwrap()).unwrap();
        assert_eq!(set & 1, 1, "{set:x}");
    }
}
