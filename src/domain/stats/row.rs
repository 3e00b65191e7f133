//! The statistics of one group of records.

use super::histogram::Histogram;
use crate::domain::record::Record;
use crate::domain::record::age::Age;
use crate::domain::record::observation::TimeLeft;

/// The statistics of one group of records.
#[derive(Debug, Clone, Default)]
pub(crate) struct StatsRow {
    pub(crate) records: u64,
    /// The size of all values together, in bytes.
    pub(crate) bytes: u64,
    /// The greatest known age.
    pub(crate) oldest: Option<Age>,
    /// The number of records without expiry.
    pub(crate) no_expiry: u64,
    /// The number of records with an unknown age.
    pub(crate) ageless: u64,
    /// The remaining time of the records that expire.
    pub(crate) ttl: Histogram,
    /// The ages of the records with a known age.
    pub(crate) age: Histogram,
    weighed: Weighed,
    /// True if a merged group was only sampled for its memory.
    has_sampled: bool,
}

/// The sampled records, and the memory that they take in addition to the bytes of their values.
#[derive(Debug, Clone, Copy, Default)]
struct Weighed {
    records: u64,
    overhead: u64,
}

impl StatsRow {
    /// Counts a record.
    pub(super) fn add(&mut self, record: &Record) {
        self.records += 1;
        self.bytes += record.size_bytes().unwrap_or(0);
        match record.time_left() {
            Some(TimeLeft::Millis(left)) => self.ttl.add(left),
            Some(TimeLeft::NoExpiry) => self.no_expiry += 1,
            None => {}
        }
        match record.age {
            Some(age) => self.age.add(age.millis),
            None => self.ageless += 1,
        }
        self.oldest = self.oldest.into_iter().chain(record.age).max_by_key(|age| age.millis);
    }

    /// Adds the memory of a counted record, in bytes, as the server reported it.
    pub(super) fn weigh(&mut self, record: &Record, memory_bytes: u64) {
        self.weighed.records += 1;
        self.weighed.overhead += memory_bytes.saturating_sub(record.size_bytes().unwrap_or(0));
    }

    /// The number of records whose memory the server reported.
    pub(super) fn weighed(&self) -> u64 {
        self.weighed.records
    }

    /// The memory of all records of the group, in bytes: the sizes of their values, plus the
    /// average overhead of the sample. `None` if no record was sampled.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        Some(self.bytes.saturating_add(self.beside()?))
    }

    /// The overhead of all records, projected from the sample.
    fn beside(&self) -> Option<u64> {
        let Weighed { records, overhead } = self.weighed;
        // The product of two 64-bit counts needs 128 bits.
        let beside =
            (u128::from(overhead) * u128::from(self.records)).checked_div(u128::from(records))?;
        Some(u64::try_from(beside).unwrap_or(u64::MAX))
    }

    /// True if every record was sampled, so that the memory is exact.
    pub(crate) fn is_weighed_whole(&self) -> bool {
        self.weighed.records == self.records && !self.has_sampled
    }

    /// Adds the statistics of another group.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.records += other.records;
        self.bytes += other.bytes;
        self.no_expiry += other.no_expiry;
        self.ageless += other.ageless;
        self.ttl.merge(&other.ttl);
        self.age.merge(&other.age);
        self.oldest = self.oldest.into_iter().chain(other.oldest).max_by_key(|age| age.millis);
        // The other group counts as if all of its records had been sampled, so that the merged
        // memory is the sum of both.
        if let Some(beside) = other.beside() {
            self.weighed.records += other.records;
            self.weighed.overhead += beside;
        }
        self.has_sampled |= !other.is_weighed_whole();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::samples::{CHI_LOCK, chi};

    #[test]
    fn memory_is_projected_from_a_sample() {
        let (mut row, lock) = (StatsRow::default(), chi(CHI_LOCK, TimeLeft::Millis(10_000)));
        let length = lock.size_bytes().unwrap();
        (0..3).for_each(|_| row.add(&lock));
        assert_eq!(row.memory_bytes(), None);
        row.weigh(&lock, length + 100);
        row.weigh(&lock, length + 200);
        assert_eq!((row.memory_bytes(), row.is_weighed_whole()), (Some(3 * length + 450), false));
        row.weigh(&lock, length);
        assert_eq!((row.memory_bytes(), row.is_weighed_whole()), (Some(3 * length + 300), true));
    }

    #[test]
    fn the_memory_of_several_groups_is_their_sum() {
        let lock = chi(CHI_LOCK, TimeLeft::Millis(10_000));
        let row = |records: u64, overhead| {
            let mut row = StatsRow::default();
            (0..records).for_each(|_| row.add(&lock));
            row.weigh(&lock, lock.size_bytes().unwrap() + overhead);
            row
        };
        let (many, few) = (row(9, 100), row(1, 7));
        let mut both = StatsRow::default();
        both.merge(&many);
        both.merge(&few);
        assert_eq!(
            both.memory_bytes(),
            Some(many.memory_bytes().unwrap() + few.memory_bytes().unwrap())
        );
        assert!(few.is_weighed_whole() && !both.is_weighed_whole());
    }

    #[test]
    fn a_record_without_expiry_has_no_remaining_time_and_no_age() {
        let mut row = StatsRow::default();
        row.add(&chi(CHI_LOCK, TimeLeft::NoExpiry));
        row.add(&chi(CHI_LOCK, TimeLeft::Millis(5_000)));
        assert_eq!((row.records, row.no_expiry, row.ageless), (2, 1, 1));
        assert_eq!((row.ttl.counts()[0], row.age.counts()[1]), (1, 1));
        assert_eq!(row.oldest.map(|age| age.millis), Some(55_000));
    }
}
