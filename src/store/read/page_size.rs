//! How the keyspace is scanned, and the size of its pages.

use std::time::Duration;

use crate::domain::record::field_set::MAX_SCANNED;
use crate::domain::select::Rate;

/// The usual page. Larger pages stall other clients, smaller ones cost round trips. In a scan of
/// two million keys, pages of 100 took 1.26 times as long as pages of 500. With pages of 10,000,
/// every hundredth request of another client took 19 ms or longer. The masters of a cluster share
/// it, because each has a page in progress.
const USUAL: usize = 500;

/// The smallest share of it for one of many masters.
const LEAST: usize = 100;

/// The most bytes of replies that are requested at a time, unless one value alone is larger. See
/// [`MAX_SCANNED`].
pub(super) const MAX_REQUESTED: usize = MAX_SCANNED;

/// The largest page, for distant servers.
const LARGEST: usize = 2_000;

#[derive(Debug, Clone, Copy, Default)]
pub struct ScanOptions {
    /// True to scan a replica of each master instead, if there is one.
    pub from_replicas: bool,
    /// The COUNT of a page, if the operator sets it.
    pub page: Option<u32>,
    /// The most Redis keys that are read per second.
    pub rate: Option<Rate>,
}

impl ScanOptions {
    /// The COUNT of a page for one of this many masters, unless the server is distant.
    fn page(self, masters: usize) -> usize {
        if let Some(page) = self.page
            && let Ok(page) = usize::try_from(page)
        {
            return page;
        }
        let usual = (USUAL / masters.max(1)).max(LEAST);
        match self.rate {
            Some(rate) => rate.at_a_time(usual),
            None => usual,
        }
    }

    /// The largest page. A size that the operator sets is never changed.
    fn largest(self, masters: usize) -> usize {
        if self.page.is_some() || self.rate.is_some() { self.page(masters) } else { LARGEST }
    }
}

/// The size of pages. It grows while a round trip takes longer than a page, because then the
/// network takes the time and not the server.
#[derive(Debug)]
pub(in crate::store) struct PageSizer {
    round_trip: Duration,
    count: usize,
    largest: usize,
}

impl PageSizer {
    /// The sizes for one of this many masters, at this distance.
    pub(in crate::store) fn new(
        round_trip: Duration,
        scan_options: ScanOptions,
        masters: usize,
    ) -> Self {
        Self {
            round_trip,
            count: scan_options.page(masters),
            largest: scan_options.largest(masters),
        }
    }

    pub(in crate::store) fn count(&self) -> usize {
        self.count
    }

    /// Learns how long a page took, from its request to its last reply, including the network.
    pub(in crate::store) fn took(&mut self, elapsed: Duration) {
        if self.round_trip > elapsed.saturating_sub(self.round_trip) {
            self.count = self.largest.min(self.count * 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(round_trip: u64, pages: &[u64]) -> usize {
        by(ScanOptions::default(), round_trip, pages)
    }

    fn by(scan_options: ScanOptions, round_trip: u64, pages: &[u64]) -> usize {
        let mut sizer = PageSizer::new(Duration::from_micros(round_trip), scan_options, 1);
        pages.iter().for_each(|page| sizer.took(Duration::from_micros(*page)));
        sizer.count()
    }

    #[test]
    fn pages_grow_only_where_the_way_takes_longer_and_only_so_far() {
        assert_eq!(after(50, &[1_000; 9]), 500, "a server nearby");
        assert_eq!(
            after(1_100, &[2_000, 4_000, 4_000]),
            1_000,
            "a page of a thousand outweighs the way"
        );
        assert_eq!(after(30_000, &[31_000; 9]), 2_000, "a server far away");
    }

    #[test]
    fn masters_share_a_page() {
        let page =
            |masters| PageSizer::new(Duration::ZERO, ScanOptions::default(), masters).count();
        assert_eq!([page(1), page(3), page(100)], [500, 166, 100]);
    }

    #[test]
    fn a_page_that_somebody_asks_for_holds_and_a_rate_makes_it_small() {
        let slow = Rate::parse("200/s").ok();
        assert_eq!(
            by(ScanOptions { page: Some(50), ..ScanOptions::default() }, 30_000, &[31_000; 9]),
            50
        );
        assert_eq!(
            by(ScanOptions { rate: slow, ..ScanOptions::default() }, 30_000, &[31_000; 9]),
            20
        );
        assert_eq!(
            by(
                ScanOptions { page: Some(50), rate: slow, ..ScanOptions::default() },
                30_000,
                &[31_000; 9]
            ),
            50
        );
    }
}
