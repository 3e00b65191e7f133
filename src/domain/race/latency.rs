//! Latencies of steps.

use std::time::Duration;

use hdrhistogram::Histogram;

/// The latencies of many steps, with a precision of three digits.
#[derive(Debug, Clone)]
pub(crate) struct Latencies(Histogram<u64>);

impl Latencies {
    #[expect(clippy::expect_used, reason = "the only error is more than 5 digits")]
    pub(crate) fn new() -> Self {
        Self(Histogram::new(3).expect("3 digits are allowed"))
    }

    /// Adds a latency in nanoseconds.
    pub(crate) fn add(&mut self, nanos: u64) {
        // The histogram grows as needed, so that no latency is too long and `record` cannot fail.
        let _ = self.0.record(nanos.max(1));
    }

    /// The latency that this share of the steps (0 to 1) did not exceed.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        Duration::from_nanos(self.0.value_at_quantile(share))
    }

    /// The longest latency.
    pub(crate) fn max(&self) -> Duration {
        Duration::from_nanos(self.0.max())
    }
}
