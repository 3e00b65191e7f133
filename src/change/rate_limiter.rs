//! Batches over time.

use tokio::time::{Instant, sleep_until};

use crate::domain::select::Rate;

/// Records dealt with at a time: as many as are backed up with one sync of the disk.
const BATCH: usize = 500;

#[derive(Debug)]
pub struct RateLimiter {
    rate: Option<Rate>,
    next: Instant,
}

impl RateLimiter {
    /// Without a rate nothing ever waits.
    pub fn new(rate: Option<Rate>) -> Self {
        Self { rate, next: Instant::now() }
    }

    pub fn is_limited(&self) -> bool {
        self.rate.is_some()
    }

    /// Records a batch: fewer where the rate is low.
    pub fn batch(&self) -> usize {
        self.rate.map_or(BATCH, |rate| rate.at_a_time(BATCH))
    }

    /// Waits after a batch of this many records until the next may go.
    pub async fn wait(&mut self, records: usize) {
        let Some(rate) = self.rate else { return };
        self.next = self.next.max(Instant::now()) + rate.time_for(records);
        sleep_until(self.next).await;
    }
}
