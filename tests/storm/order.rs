//! Events in the order in which they happened, from wherever they come.

use std::cmp::Ordering;

use crate::event::Event;

/// An event in the order of the clock, and of those at one time in the order they came.
pub struct InOrder {
    pub event: Event,
    pub number: u64,
}

impl PartialEq for InOrder {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for InOrder {}

impl PartialOrd for InOrder {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for InOrder {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.event.at, self.number).cmp(&(other.event.at, other.number))
    }
}
