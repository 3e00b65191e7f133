//! Latencies of steps.

use std::time::Duration;

use hdrhistogram::Histogram;

/// The latencies of many steps, with a precision of three digits.
#[derive(Debug, Clone)]
pub(crate) struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

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

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// At most this many rows, evenly spaced from the shortest latency to the 99th percentile. The
    /// last row contains all longer latencies. Each row is its upper limit, and the number of steps
    /// between the previous limit and this one.
    pub(crate) fn rows(&self, rows: usize) -> Vec<(Duration, u64)> {
        if self.is_empty() || rows == 0 {
            return Vec::new();
        }
        let low = self.0.min();
        // The slowest percent would make the other rows too wide. Equal latencies still need a
        // width.
        let high = self.0.value_at_quantile(0.99).max(low + 1);
        let width = (high - low).div_ceil(rows as u64).max(1);
        let mut counts = vec![0; rows];
        for value in self.0.iter_recorded() {
            let above_low = value.value_iterated_to().saturating_sub(low + 1);
            // Everything above the 99th percentile belongs to the last row.
            let row = usize::try_from(above_low / width).unwrap_or(rows - 1).min(rows - 1);
            counts[row] += value.count_since_last_iteration();
        }
        let mut table = Vec::with_capacity(rows);
        for (row, count) in counts.into_iter().enumerate() {
            let is_last = row + 1 == rows;
            let limit = if is_last {
                self.max()
            } else {
                Duration::from_nanos(low + width * (row as u64 + 1))
            };
            table.push((limit, count));
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_falls_into_a_row() {
        let mut latencies = Latencies::new();
        (1..=1000).for_each(|micros| latencies.add(micros * 1000));
        latencies.add(1_000_000_000);
        let rows = latencies.rows(8);
        assert_eq!(rows.len(), 8);
        assert_eq!(rows.iter().map(|(_, count)| count).sum::<u64>(), 1001);
        assert!(rows.windows(2).all(|pair| pair[0].0 < pair[1].0), "{rows:?}");
        assert!(rows[7].0 >= Duration::from_secs(1));
    }

    #[test]
    fn no_latencies_and_a_single_latency_have_their_rows() {
        assert!(Latencies::new().rows(8).is_empty());
        let mut latencies = Latencies::new();
        latencies.add(0);
        assert_eq!(latencies.rows(8).iter().map(|(_, count)| count).sum::<u64>(), 1);
    }
}
