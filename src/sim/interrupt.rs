//! Ctrl-C, asked for between two phases, so that nothing is in flight when a run stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the operator wants to stop.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens for Ctrl-C from here on; it no longer ends the process by itself.
    pub fn listen() -> Self {
        let interrupt = Self::default();
        let flag = Arc::clone(&interrupt.0);
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                flag.store(true, Ordering::Relaxed);
            }
        });
        interrupt
    }

    /// True when Ctrl-C was pressed.
    pub fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
