//! Ctrl-C, heeded between two batches: the batch in hand ends, and what was done is known.

use std::future;
use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Listens for Ctrl-C, which from then on ends nothing by itself.
#[derive(Debug, Clone)]
pub struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Starts to listen.
    ///
    /// # Errors
    /// When the system does not let it.
    pub fn listen() -> io::Result<Self> {
        let mut interrupts = signal(SignalKind::interrupt())?;
        let (raise, raised) = watch::channel(false);
        tokio::spawn(async move {
            interrupts.recv().await;
            // Nobody is left to tell when the command is over.
            let _ = raise.send(true);
        });
        Ok(Self(raised))
    }

    /// True once Ctrl-C came.
    pub fn is_raised(&self) -> bool {
        *self.0.borrow()
    }

    /// Does what can be given up at any moment: `None` when Ctrl-C comes first.
    pub async fn unless_raised<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.raised() => None,
            done = work => Some(done),
        }
    }

    async fn raised(&self) {
        let mut raised = self.0.clone();
        if raised.wait_for(|raised| *raised).await.is_err() {
            future::pending::<()>().await;
        }
    }
}
