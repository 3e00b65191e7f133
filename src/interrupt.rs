//! Ctrl-C, heeded between two pieces of work: the piece in hand ends, and what was done is known.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

#[derive(Debug, Clone)]
pub struct Interrupt(CancellationToken);

impl Interrupt {
    /// Listens for Ctrl-C, which from then on ends nothing by itself.
    pub fn listen() -> io::Result<Self> {
        let interrupt = Self(CancellationToken::new());
        interrupt.heed(SignalKind::interrupt())?;
        Ok(interrupt)
    }

    /// Listens for SIGTERM, too, for what comes next has to end in good order. Before this call SIGTERM ends the process at
    /// once, even at a prompt.
    pub fn heed_terminate(&self) -> io::Result<()> {
        self.heed(SignalKind::terminate())
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
