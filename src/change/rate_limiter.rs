//! How fast many records are changed.

use tokio::time::{Instant, sleep_until};

use crate::domain::select::Rate;

/// Records that are rechecked and changed at a time. One sync of the disk backs up as many Redis
/// keys (`MAX_SAVED` in `store/backup/entry.rs`), and one script call compares fewer (`MAX_KEYS`
/// in `store/change/batch.rs`), so that other clients do not wait.
const BATCH: usize = 500;

/// Spaces batches out, so that a run changes no more records per second than the operator allows.
#[derive(Debug)]
pub struct RateLimiter {
    rate: Option<Rate>,
    /// When the next batch may be changed.
    next: Instant,
}

impl RateLimiter {
    /// Without a rate nothing ever waits.
    pub fn new(rate: Option<Rate>) -> Self {
        Self { rate, next: Instant::now() }
    }

    /// True if the operator set a rate.
    pub fn is_limited(&self) -> bool {
        self.rate.is_some()
    }

    /// Records per batch: fewer if the rate is low, so that the changes are spread evenly.
    pub fn batch(&self) -> usize {
        self.rate.map_or(BATCH, |rate| rate.at_a_time(BATCH))
    }

    /// Waits after a batch of this many records until the next may be changed.
    pub async fn wait(&mut self, records: usize) {
        let Some(rate) = self.rate else { return };
        self.next = self.next.max(Instant::now()) + rate.time_for(records);
        sleep_until(self.next).await;
    }
}
