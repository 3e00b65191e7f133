//! The first records of an order, without keeping the others.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::domain::record::Record;

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// The oldest; unknown ages last.
    Age,
    /// The soonest to expire; those that never do last.
    Ttl,
    /// The largest.
    Size,
    /// The smallest idempotency key.
    Key,
}

/// Keeps the first records of an order, at most `limit`.
pub(crate) struct Top {
    order: Order,
    limit: usize,
    heap: BinaryHeap<Entry>,
    cut: bool,
}

impl Top {
    /// Keeps at most `limit` records.
    pub(crate) fn new(order: Order, limit: usize) -> Self {
        Self { order, limit, heap: BinaryHeap::new(), cut: false }
    }

    pub(crate) fn add(&mut self, record: Record) {
        self.heap.push(Entry { rank: rank(self.order, &record), record });
        if self.heap.len() > self.limit {
            self.heap.pop();
            self.cut = true;
        }
    }

    pub(crate) fn was_cut(&self) -> bool {
        self.cut
    }

    /// The kept records, in order.
    pub(crate) fn into_sorted(self) -> Vec<Record> {
        self.heap.into_sorted_vec().into_iter().map(|entry| entry.record).collect()
    }
}

/// Lower ranks come first; the key settles ties, so that the order is the same every time.
type Rank = (u64, Vec<u8>);

fn rank(order: Order, record: &Record) -> Rank {
    let number = match order {
        Order::Age => u64::MAX - record.age.map_or(0, |age| age.millis),
        Order::Ttl => record.expiry().and_then(|expiry| expiry.millis()).unwrap_or(u64::MAX),
        Order::Size => u64::MAX - record.size_bytes().unwrap_or(0),
        Order::Key => 0,
    };
    (number, record.key.clone())
}

struct Entry {
    rank: Rank,
    record: Record,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank.cmp(&other.rank)
    }
}
