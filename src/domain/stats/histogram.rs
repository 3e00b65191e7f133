//! The number of records by age or remaining time, in ranges that suit people.

/// The upper bounds of the ranges in milliseconds, with their names. Longer times form one more
/// range.
pub(crate) const BOUNDS: [(u64, &str); 7] = [
    (10_000, "10s"),
    (60_000, "1m"),
    (600_000, "10m"),
    (3_600_000, "1h"),
    (21_600_000, "6h"),
    (86_400_000, "1d"),
    (604_800_000, "7d"),
];

/// Counts by range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Histogram {
    counts: [u64; BOUNDS.len() + 1],
}

impl Histogram {
    /// Counts one time.
    pub(crate) fn add(&mut self, millis: u64) {
        let range = BOUNDS.iter().position(|(bound, _)| millis <= *bound).unwrap_or(BOUNDS.len());
        self.counts[range] += 1;
    }

    /// Adds the counts of another histogram.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
    }

    /// The counts of the ranges up to each of [`BOUNDS`], and of the longer times.
    pub(crate) fn counts(&self) -> [u64; BOUNDS.len() + 1] {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_range() {
        let mut histogram = Histogram::default();
        [0, 10_000, 10_001, 604_800_000, 604_800_001, u64::MAX]
            .into_iter()
            .for_each(|millis| histogram.add(millis));
        assert_eq!(histogram.counts(), [2, 1, 0, 0, 0, 0, 1, 2]);
        let mut twice = histogram;
        twice.merge(&histogram);
        assert_eq!(twice.counts()[0], 4);
    }
}
