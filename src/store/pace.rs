//! How many Redis keys a page looks at.

use std::time::Duration;

/// The usual page. Larger ones stall other clients, smaller ones cost round trips.
const USUAL: usize = 500;

/// The largest page, for servers far away.
const LARGEST: usize = 2_000;

/// Pages grow while a round trip takes longer than a page: then it is the way that takes the time, not the server.
#[derive(Debug)]
pub(super) struct Pace {
    round_trip: Duration,
    count: usize,
}

impl Pace {
    /// For a server this far away.
    pub(super) fn new(round_trip: Duration) -> Self {
        Self { round_trip, count: USUAL }
    }

    /// Keys to look at next.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Learns how long a page took from its request to its last reply, the way included.
    pub(super) fn took(&mut self, elapsed: Duration) {
        if self.round_trip > elapsed.saturating_sub(self.round_trip) {
            self.count = LARGEST.min(self.count * 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(round_trip: u64, pages: &[u64]) -> usize {
        let mut pace = Pace::new(Duration::from_micros(round_trip));
        pages.iter().for_each(|page| pace.took(Duration::from_micros(*page)));
        pace.count()
    }

    #[test]
    fn pages_grow_only_where_the_way_takes_longer_and_only_so_far() {
        assert_eq!(after(50, &[1_000; 9]), 500, "a server nearby");
        assert_eq!(after(1_100, &[2_000, 4_000, 4_000]), 1_000, "a page of a thousand outweighs the way");
        assert_eq!(after(30_000, &[31_000; 9]), 2_000, "a server far away");
    }
}
