//! The first records of an order, without keeping the others.

use std::collections::BTreeMap;

use crate::domain::record::Record;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The oldest; unknown ages last.
    Age,
    /// The soonest to expire; those that never do last.
    Ttl,
    Size,
    /// The smallest idempotency key.
    Key,
}

/// Keeps the first records of an order, at most `limit`.
pub(crate) struct Top {
    order: Order,
    /// True for the last of the order first.
    is_reversed: bool,
    limit: usize,
    kept: BTreeMap<Rank, Record>,
    added: usize,
}

impl Top {
    pub(crate) fn new(order: Order, is_reversed: bool, limit: usize) -> Self {
        Self { order, is_reversed, limit, kept: BTreeMap::new(), added: 0 }
    }

    pub(crate) fn add(&mut self, record: Record) {
        let (number, key) = rank(self.order, &record);
        self.kept.insert((number, key, self.added), record);
        self.added += 1;
        if self.kept.len() > self.limit {
            if self.is_reversed {
                self.kept.pop_first()
            } else {
                self.kept.pop_last()
            };
        }
    }

    pub(crate) fn was_cut(&self) -> bool {
        self.added > self.limit
    }

    pub(crate) fn into_sorted(self) -> Vec<Record> {
        let mut sorted: Vec<_> = self.kept.into_values().collect();
        if self.is_reversed {
            sorted.reverse();
        }
        sorted
    }
}

/// Lower ranks come first. The key settles ties, so that the order is the same every time; among records of one key the one
/// that was found first comes first.
type Rank = (u64, Vec<u8>, usize);

fn rank(order: Order, record: &Record) -> (u64, Vec<u8>) {
    let number = match order {
        Order::Age => u64::MAX - record.age.map_or(0, |age| age.millis),
        Order::Ttl => record.expiry().and_then(|expiry| expiry.millis()).unwrap_or(u64::MAX),
        Order::Size => u64::MAX - record.size_bytes().unwrap_or(0),
        Order::Key => 0,
    };
    (number, record.key.clone())
}
