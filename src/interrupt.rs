//! Ctrl-C, heeded between two steps of a piece of work: the one in hand ends, and what was done is known.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

#[derive(Debug, Clone)]
pub struct Interrupt(watch::Sender<bool>);

impl Interrupt {
    /// Listens for Ctrl-C, which from then on ends nothing by itself.
    pub fn listen() -> io::Result<Self> {
        let interrupt = Self(watch::Sender::new(false));
        interrupt.heed(SignalKind::interrupt())?;
        Ok(interrupt)
    }

    /// Listens for SIGTERM too, for what is to come has to end in good order. Before, it ends the process at once, at a
    /// prompt too.
    pub fn heed_terminate(&self) -> io::Result<()> {
        self.heed(SignalKind::terminate())
    }

    fn heed(&self, kind: SignalKind) -> io::Result<()> {
        let mut signals = signal(kind)?;
        let raise = self.0.clone();
        tokio::spawn(async move {
            signals.recv().await;
            raise.send_replace(true);
        });
        Ok(())
    }

    pub fn is_raised(&self) -> bool {
        *self.0.borrow()
    }

    /// Does what can be given up at any moment: `None` when Ctrl-C comes first.
    pub async fn unless_raised<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut raised = self.0.subscribe();
        tokio::select! {
            biased;
            // It cannot fail, for the sender is here.
            _ = raised.wait_for(|raised| *raised) => None,
            done = work => Some(done),
        }
    }
}
