//! Going no faster than asked.

use std::num::NonZeroU32;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Records changed at a time: more would stall other clients.
pub const BATCH: usize = 100;

/// Records a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate(NonZeroU32);

impl Rate {
    /// Parses `500` or `500/s`.
    ///
    /// # Errors
    /// What is wrong, with an example.
    pub fn parse(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix("/s").unwrap_or(text);
        number.parse().map(Self).map_err(|_| "write a whole number of records a second above 0, e.g. 500/s".to_owned())
    }
}

/// Spreads batches over time.
#[derive(Debug)]
pub struct Pace {
    rate: Option<Rate>,
    next: Instant,
}

impl Pace {
    /// Starts; without a rate nothing ever waits.
    pub fn new(rate: Option<Rate>) -> Self {
        Self { rate, next: Instant::now() }
    }

    /// Records a batch: fewer where the rate is low, so that it is kept within each tenth of a second.
    pub fn batch(&self) -> usize {
        let tenth = |rate: Rate| usize::try_from(rate.0.get() / 10).unwrap_or(BATCH);
        self.rate.map_or(BATCH, |rate| tenth(rate).clamp(1, BATCH))
    }

    /// Waits after a batch of this many records until the next may go.
    pub async fn wait(&mut self, records: usize) {
        let Some(Rate(rate)) = self.rate else { return };
        let records = u32::try_from(records).unwrap_or(u32::MAX);
        self.next = self.next.max(Instant::now()) + Duration::from_secs(1) * records / rate.get();
        sleep_until(self.next).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_a_second() {
        assert_eq!(Rate::parse("500/s"), Rate::parse("500"));
        for wrong in ["", "0", "0/s", "-1", "5/m", "1.5", "/s", "99999999999"] {
            assert!(Rate::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_low_rate_makes_small_batches() {
        let batch = |rate| Pace::new(Some(Rate::parse(rate).unwrap())).batch();
        assert_eq!([batch("3"), batch("50"), batch("1000"), batch("100000")], [1, 5, 100, 100]);
        assert_eq!(Pace::new(None).batch(), 100);
    }
}
