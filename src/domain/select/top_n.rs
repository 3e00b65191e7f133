//! The first records of an order, without keeping the others in memory.

use std::collections::BTreeMap;

use crate::domain::record::Record;

/// The sort key of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The oldest; unknown ages last.
    Age,
    /// The soonest to expire; those that never expire last.
    Ttl,
    Size,
    /// The longest untouched; unknown idle times last.
    Idle,
    /// The smallest idempotency key.
    Key,
}

/// Keeps the first records of an order, at most `limit`.
pub(crate) struct Top {
    order: Order,
    /// True if the order is reversed.
    is_reversed: bool,
    limit: usize,
    kept: BTreeMap<Rank, Record>,
    added: usize,
}

impl Top {
    /// Keeps the first `limit` records in this order.
    pub(crate) fn new(order: Order, is_reversed: bool, limit: usize) -> Self {
        Self { order, is_reversed, limit, kept: BTreeMap::new(), added: 0 }
    }

    /// Adds a record, and drops the last one if there are too many.
    pub(crate) fn add(&mut self, record: Record) {
        let number = number(self.order, &record);
        let is_last = number.is_none() != self.is_reversed;
        let rank = (is_last, number.unwrap_or_default(), record.key.clone(), self.added);
        self.kept.insert(rank, record);
        self.added += 1;
        // The new record may be the last one itself, so it is sorted in before one is dropped.
        if self.kept.len() > self.limit {
            if self.is_reversed {
                self.kept.pop_first()
            } else {
                self.kept.pop_last()
            };
        }
    }

    /// True if a record was dropped.
    pub(crate) fn was_cut(&self) -> bool {
        self.added > self.limit
    }

    /// The records that were kept, in order.
    pub(crate) fn into_sorted(self) -> Vec<Record> {
        let mut sorted: Vec<_> = self.kept.into_values().collect();
        if self.is_reversed {
            sorted.reverse();
        }
        sorted
    }
}

/// Lower ranks come first. Records without a value come last in either direction. The key settles
/// ties, so that the order is the same every time. Records with the same key keep the order in
/// which they were found.
type Rank = (bool, u64, Vec<u8>, usize);

/// The number that the order compares; `None` if it is unknown.
fn number(order: Order, record: &Record) -> Option<u64> {
    match order {
        Order::Age => record.age.map(|age| u64::MAX - age.millis),
        Order::Ttl => record.time_left().map(|time_left| time_left.millis().unwrap_or(u64::MAX)),
        Order::Size => record.size_bytes().map(|size| u64::MAX - size),
        Order::Idle => record.idle().map(|idle| u64::MAX - idle.as_secs()),
        Order::Key => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::TimeLeft;
    use crate::domain::samples::{CHI_LOCK, chi};

    /// Rule: an unknown age is neither old nor young: such records come last from either end, and
    /// are left out first.
    #[test]
    fn unknown_ages_come_last_from_either_end() {
        let aged = |key: &str, left: TimeLeft| Record {
            key: key.as_bytes().to_vec(),
            ..chi(CHI_LOCK, left)
        };
        for (is_reversed, limit, wanted) in [
            (false, 9, &["old", "young", "unknown"][..]),
            (true, 9, &["young", "old", "unknown"]),
            (false, 2, &["old", "young"]),
            (true, 2, &["young", "old"]),
        ] {
            let mut top = Top::new(Order::Age, is_reversed, limit);
            for (key, left) in [
                ("unknown", TimeLeft::NoExpiry),
                ("old", TimeLeft::Millis(1_000)),
                ("young", TimeLeft::Millis(50_000)),
            ] {
                top.add(aged(key, left));
            }
            let keys: Vec<_> = top
                .into_sorted()
                .into_iter()
                .map(|record| String::from_utf8(record.key).unwrap())
                .collect();
            assert_eq!(keys, wanted, "{is_reversed} {limit}");
        }
    }
}
