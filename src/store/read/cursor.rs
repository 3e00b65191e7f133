//! The cursor of a scan of one node, and the limits that detect a scan without end.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher, RandomState};

/// For how many pages a Redis key is remembered. SCAN repeats keys only if a table shrinks, and
/// then within neighbouring pages, because it reads the merged parts one after another.
const REMEMBERED_PAGES: usize = 8;

/// The cursor of a scan, and the keys of the latest pages.
#[derive(Default)]
pub(in crate::store) struct ScanCursor {
    cursor: Vec<u8>,
    ended: bool,
    hasher: RandomState,
    recent: HashSet<u64, BuildHasherDefault<Hashed>>,
    pages: VecDeque<Vec<u64>>,
    bounds: ScanBounds,
    /// The COUNT of the requested page.
    count: usize,
}

impl ScanCursor {
    pub(in crate::store) fn new() -> Self {
        Self { cursor: b"0".to_vec(), ..Self::default() }
    }

    /// The cursor of the next page; `None` at the end.
    pub(in crate::store) fn cursor(&self) -> Option<&[u8]> {
        if self.ended { None } else { Some(&self.cursor) }
    }

    /// Notes the COUNT of the next page.
    pub(in crate::store) fn note_count(&mut self, count: usize) {
        self.count = count;
    }

    /// The COUNT of the requested page, which is about the number of Redis keys that the server
    /// iterates over.
    pub(in crate::store) fn count(&self) -> usize {
        self.count
    }

    /// True if DBSIZE is sent before the next page, so that its reply comes before that page.
    pub(in crate::store) fn needs_dbsize(&self) -> bool {
        self.bounds.needs_dbsize()
    }

    /// Takes the reply to DBSIZE; `None` if the Redis user may not send it.
    ///
    /// # Errors
    /// Why the scan has no end.
    pub(in crate::store) fn set_dbsize(&mut self, keys: Option<u64>) -> Result<(), &'static str> {
        self.bounds.set_dbsize(keys)
    }

    /// Starts a page, which has the cursor of the next page and this many Redis keys.
    ///
    /// # Errors
    /// Why the scan has no end.
    pub(in crate::store) fn start_page(
        &mut self,
        cursor: &[u8],
        keys: usize,
    ) -> Result<(), &'static str> {
        self.bounds.note_page(&self.cursor, cursor, self.count as u64, keys as u64)?;
        self.cursor.clear();
        self.cursor.extend_from_slice(cursor);
        self.ended = cursor == b"0";
        let mut page = Vec::new();
        if self.pages.len() == REMEMBERED_PAGES {
            page = self.pages.pop_front().unwrap_or_default();
            for hash in page.drain(..) {
                self.recent.remove(&hash);
            }
        }
        self.pages.push_back(page);
        Ok(())
    }

    /// True the first time that a Redis key is seen in these pages.
    pub(in crate::store) fn is_new(&mut self, redis_key: &[u8]) -> bool {
        let hash = self.hasher.hash_one(redis_key);
        let new = self.recent.insert(hash);
        if new && let Some(page) = self.pages.back_mut() {
            page.push(hash);
        }
        new
    }
}

/// Passes on a number that already is a hash.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Why a scan is given up.
const ENDLESS: &str = "its SCAN has no end";

/// The most times that one cursor may recur.
const MAX_RETURNS: u32 = 16;

/// How many Redis keys may be returned beyond a multiple of the existing ones.
const SLACK: u64 = 100_000;

/// The most times that each existing key may be returned.
const FACTOR: u64 = 16;

/// The most times that a page may exceed its COUNT.
const PAGE_FACTOR: u64 = 100;

/// The largest sum of the COUNTs of all pages.
const MAX_ITERATED: u64 = 1 << 34;

/// Room for pages that iterate only over empty slots of a table that held 40 million Redis keys a
/// moment ago, as a sum of COUNTs.
const EMPTY: u64 = 1 << 22;

/// Detects a scan that cannot end.
///
/// SCAN guarantees an end, and servers keep that guarantee. A program that only resembles a server
/// may return cursors without end. Each limit here is beyond what any server can reach, so that
/// none ends the scan of a real keyspace:
///
/// - A page never ends where it began, unless it is the last, because a server moves its cursor
///   with every page.
/// - A cursor recurs only if the server's table shrinks during the scan. That takes a keyspace that
///   grows and then falls to a tenth, which does not happen [`MAX_RETURNS`] times.
/// - The Redis keys that were returned, including repeated ones, are at most a multiple of the
///   existing ones, plus those that other clients may have removed since ([`SLACK`]).
/// - A page contains about as many Redis keys as its COUNT.
/// - A page of COUNT n iterates over n keys or ten times n empty slots of the table. No machine has
///   a table so large that pages with a total of [`MAX_ITERATED`] do not iterate over all of it.
/// - If the server reports how many Redis keys exist, its table is not much larger than they need.
///   A table that held many more before shrinks in the background, so that a scan may find it as
///   large as before. [`EMPTY`] leaves room for that.
#[derive(Debug, Default)]
struct ScanBounds {
    pages: u64,
    iterated: u64,
    keys: u64,
    /// A cursor to recognise. It is replaced whenever the number of pages has doubled, so that a
    /// circle of any length is found.
    mark: Vec<u8>,
    marked_at: u64,
    returns: u32,
    /// The largest number of Redis keys that existed at a time.
    most_there: u64,
    /// The number of returned Redis keys from which DBSIZE is sent again.
    asks_at: u64,
}

impl ScanBounds {
    /// True if DBSIZE must be sent: at the beginning, because other clients may remove keys during
    /// the scan, and whenever twice as many keys were returned.
    fn needs_dbsize(&self) -> bool {
        self.keys >= self.asks_at
    }

    /// Takes the number of existing keys; `None` if the Redis user may not ask.
    fn set_dbsize(&mut self, keys: Option<u64>) -> Result<(), &'static str> {
        self.asks_at = self.asks_at.saturating_mul(2).max(SLACK / 2);
        // If the Redis user may not ask, the other limits still apply.
        self.most_there = self.most_there.max(keys.unwrap_or(u64::MAX));
        let most = self.most_there.saturating_mul(FACTOR).saturating_add(SLACK);
        if self.keys > most { Err(ENDLESS) } else { Ok(()) }
    }

    /// Takes a page: its cursor, the next cursor, its COUNT, and its number of Redis keys.
    fn note_page(
        &mut self,
        from: &[u8],
        to: &[u8],
        count: u64,
        keys: u64,
    ) -> Result<(), &'static str> {
        // A scan of a single page ends with the cursor with which it began.
        if to == b"0" {
            return Ok(());
        }
        self.pages += 1;
        self.iterated = self.iterated.saturating_add(count);
        self.keys = self.keys.saturating_add(keys);
        self.returns += u32::from(to == self.mark);
        if to == from {
            return Err(ENDLESS);
        }
        if self.returns > MAX_RETURNS {
            return Err(ENDLESS);
        }
        if keys > count.saturating_mul(PAGE_FACTOR).saturating_add(SLACK) {
            return Err(ENDLESS);
        }
        if self.iterated > MAX_ITERATED {
            return Err(ENDLESS);
        }
        let needed = self.most_there.saturating_mul(FACTOR).saturating_add(EMPTY);
        if self.iterated > needed {
            return Err(ENDLESS);
        }
        if self.pages >= self.marked_at * 2 {
            self.mark = to.to_vec();
            self.marked_at = self.pages;
            self.returns = 0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_new_once_until_its_page_is_forgotten() {
        let mut cursor = ScanCursor::new();
        cursor.start_page(b"17", 1).unwrap();
        assert!(cursor.is_new(b"a"));
        assert!(!cursor.is_new(b"a"));
        cursor.start_page(b"3", 1).unwrap();
        assert!(!cursor.is_new(b"a"));
        (0..REMEMBERED_PAGES)
            .for_each(|page| cursor.start_page(format!("5{page}").as_bytes(), 0).unwrap());
        assert!(cursor.is_new(b"a"));
    }

    #[test]
    fn it_ends_with_the_cursor_zero() {
        let mut cursor = ScanCursor::new();
        assert_eq!(cursor.cursor(), Some(&b"0"[..]));
        cursor.start_page(b"17", 0).unwrap();
        assert_eq!(cursor.cursor(), Some(&b"17"[..]));
        cursor.start_page(b"0", 0).unwrap();
        assert_eq!(cursor.cursor(), None);
    }

    /// Goes on until the scan is given up; how many pages that took.
    fn scan(cursor: impl Fn(u64) -> u64, keys: u64, there: Option<u64>) -> u64 {
        let mut end = ScanBounds::default();
        for page in 0.. {
            let (from, to) = (cursor(page).to_string(), cursor(page + 1).to_string());
            let asked = if end.needs_dbsize() { end.set_dbsize(there) } else { Ok(()) };
            let noted =
                asked.and_then(|()| end.note_page(from.as_bytes(), to.as_bytes(), 500, keys));
            if noted.is_err() {
                return page;
            }
        }
        0
    }

    #[test]
    fn what_has_no_end_is_given_up() {
        assert_eq!(scan(|_| 17, 0, None), 0);
        for length in [2, 3, 100, 1_000] {
            let pages = scan(|page| 7 + page % length, 0, None);
            assert!(pages < 60 * length + 60, "{pages}");
        }
        let pages = scan(|page| page + 1, 500, Some(10));
        assert!(pages < 4_100, "{pages}");
        let mut end = ScanBounds {
            iterated: MAX_ITERATED - 500,
            most_there: u64::MAX,
            ..ScanBounds::default()
        };
        assert_eq!(end.note_page(b"1", b"2", 500, 0), Ok(()));
        assert_eq!(end.note_page(b"2", b"3", 500, 0), Err(ENDLESS));
        let pages = scan(|page| page + 1, 0, Some(17));
        assert!(pages < 34_000, "{pages}");
        assert_eq!(scan(|page| page + 1, 150_001, None), 0);
    }

    #[test]
    fn a_scan_of_one_page_ends_where_it_began() {
        assert_eq!(ScanBounds::default().note_page(b"0", b"0", 500, 3), Ok(()));
        assert!(ScanBounds::default().note_page(b"7", b"7", 500, 3).is_err());
    }

    #[test]
    fn a_keyspace_that_others_empty_meanwhile_is_scanned_to_its_end() {
        let mut end = ScanBounds::default();
        let mut there: u64 = 3_000_000;
        for page in 0..6_000_u64 {
            if end.needs_dbsize() {
                assert_eq!(end.set_dbsize(Some(there)), Ok(()), "after {page} pages");
            }
            assert_eq!(
                end.note_page(&page.to_be_bytes(), &(page + 1).to_be_bytes(), 500, 500),
                Ok(())
            );
            there = there.saturating_sub(3_000);
        }
    }

    #[test]
    fn a_table_that_shrinks_again_and_again_is_scanned_to_its_end() {
        // Each time half of the cursors come again.
        let mut end = ScanBounds::default();
        for shrinks in 0..10_u64 {
            for page in shrinks * 50..shrinks * 50 + 100 {
                assert_eq!(
                    end.note_page(&page.to_be_bytes(), &(page + 1).to_be_bytes(), 500, 500),
                    Ok(())
                );
            }
        }
    }
}
