//! The cursor of a scan of one node, and the bounds that tell that the scan will not end.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher, RandomState};

/// How many pages back a Redis key is remembered. SCAN repeats keys when a table shrinks, and then within
/// neighbouring pages, because it reads the parts that fall together one after another.
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
    /// Redis keys that the page on its way was asked for.
    count: usize,
}

impl ScanCursor {
    pub(in crate::store) fn new() -> Self {
        Self { cursor: b"0".to_vec(), ..Self::default() }
    }

    /// The cursor to go on from; `None` at the end.
    pub(in crate::store) fn cursor(&self) -> Option<&[u8]> {
        (!self.ended).then_some(&self.cursor)
    }

    /// Notes how many Redis keys the next page is asked for; true when the server has to be asked before it, by DBSIZE,
    /// how many there are.
    pub(in crate::store) fn ask(&mut self, count: usize) -> bool {
        self.count = count;
        self.bounds.asks_how_many()
    }

    /// Redis keys that the page on its way was asked for: about as many the server goes through.
    pub(in crate::store) fn count(&self) -> usize {
        self.count
    }

    /// True when the answer to DBSIZE comes before the page.
    pub(in crate::store) fn awaits_size(&self) -> bool {
        self.bounds.asks_how_many()
    }

    /// Takes in the answer to DBSIZE; `None` if the user may not ask.
    ///
    /// # Errors
    /// Why the scan has no end.
    pub(in crate::store) fn there_are(&mut self, keys: Option<u64>) -> Result<(), &'static str> {
        self.bounds.there_are(keys)
    }

    /// Starts a page, which came with the cursor of the next and holds so many Redis keys.
    ///
    /// # Errors
    /// Why the scan has no end.
    pub(in crate::store) fn turn(
        &mut self,
        cursor: &[u8],
        keys: usize,
    ) -> Result<(), &'static str> {
        self.bounds.page(&self.cursor, cursor, self.count as u64, keys as u64)?;
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

/// Passes on what is a hash already.
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

/// How often one cursor may come again.
const MOST_RETURNS: u32 = 16;

/// How many Redis keys may come beyond a multiple of those that are there.
const SLACK: u64 = 100_000;

/// How many times those that are there may come.
const FACTOR: u64 = 16;

/// How many times what was asked for a page may hold.
const PAGE_FACTOR: u64 = 100;

/// The COUNTs of all pages together.
const MOST_PASSED: u64 = 1 << 34;

/// The COUNTs of pages that pass nothing but the empty places of a table that held 40 million Redis keys a moment ago.
const EMPTY: u64 = 1 << 22;

/// Tells whether a scan can still end.
///
/// SCAN promises an end, and servers keep that promise. A program that only resembles a server may return cursors without end.
/// Each rule here asks for more than any server can do, so that none ends the scan of a real keyspace:
///
/// - A page never ends where it began, unless it is the last: a server moves its cursor with every page.
/// - A cursor comes again only where the server's table shrinks during the scan, which takes a keyspace that grows and
///   then falls to a tenth: not [`MOST_RETURNS`] times.
/// - The Redis keys that were answered, repeated ones included, are no more than a multiple of those that are there, plus
///   what others may have removed since ([`SLACK`]).
/// - A page holds about as many Redis keys as were asked for.
/// - A page of COUNT n passes n keys or ten times n empty places of the table. No machine holds tables of so many places
///   that pages of [`MOST_PASSED`] altogether do not pass all of them.
/// - If the server says how many Redis keys are there, its table is hardly larger than they need. A table that held many
///   more before shrinks in the background, so that a scan may find it as large as before: [`EMPTY`] is room for that.
#[derive(Debug, Default)]
struct ScanBounds {
    pages: u64,
    passed: u64,
    keys: u64,
    /// A cursor to be recognised, which is moved on whenever the number of pages has doubled: every circle comes by.
    mark: Vec<u8>,
    marked_at: u64,
    returns: u32,
    /// The most Redis keys that were there at a time.
    most_there: u64,
    /// From how many Redis keys on the server is asked how many are there.
    asks_at: u64,
}

impl ScanBounds {
    /// True when it is time to ask how many Redis keys are there: at the beginning, because others may remove them during
    /// the scan, and whenever twice as many have come.
    fn asks_how_many(&self) -> bool {
        self.keys >= self.asks_at
    }

    /// Takes in how many exist; `None` if the user may not ask.
    fn there_are(&mut self, keys: Option<u64>) -> Result<(), &'static str> {
        self.asks_at = self.asks_at.saturating_mul(2).max(SLACK / 2);
        self.most_there = self.most_there.max(keys.unwrap_or(u64::MAX));
        let most = self.most_there.saturating_mul(FACTOR).saturating_add(SLACK);
        if self.keys > most { Err("it answers many times the keys that it holds") } else { Ok(()) }
    }

    /// Takes in a page: from one cursor to the next, asked for so many Redis keys, and holding so many.
    fn page(&mut self, from: &[u8], to: &[u8], count: u64, keys: u64) -> Result<(), &'static str> {
        if to == b"0" {
            return Ok(());
        }
        self.pages += 1;
        self.passed = self.passed.saturating_add(count);
        self.keys = self.keys.saturating_add(keys);
        self.returns += u32::from(to == self.mark);
        if to == from {
            return Err("a page ends where it began");
        }
        if self.returns > MOST_RETURNS {
            return Err("it goes in a circle");
        }
        if keys > count.saturating_mul(PAGE_FACTOR).saturating_add(SLACK) {
            return Err("a page holds many times what was asked for");
        }
        if self.passed > MOST_PASSED {
            return Err("it is longer than any keyspace");
        }
        let needed = self.most_there.saturating_mul(FACTOR).saturating_add(EMPTY);
        if self.passed > needed {
            return Err("it goes on far beyond the keys that it holds");
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
        cursor.turn(b"17", 1).unwrap();
        assert!(cursor.is_new(b"a"));
        assert!(!cursor.is_new(b"a"));
        cursor.turn(b"3", 1).unwrap();
        assert!(!cursor.is_new(b"a"));
        (0..REMEMBERED_PAGES)
            .for_each(|page| cursor.turn(format!("5{page}").as_bytes(), 0).unwrap());
        assert!(cursor.is_new(b"a"));
    }

    #[test]
    fn it_ends_with_the_cursor_zero() {
        let mut cursor = ScanCursor::new();
        assert_eq!(cursor.cursor(), Some(&b"0"[..]));
        cursor.turn(b"17", 0).unwrap();
        assert_eq!(cursor.cursor(), Some(&b"17"[..]));
        cursor.turn(b"0", 0).unwrap();
        assert_eq!(cursor.cursor(), None);
    }

    /// Goes on until the scan is given up; how many pages that took, and why.
    fn scan(cursor: impl Fn(u64) -> u64, keys: u64, there: Option<u64>) -> (u64, &'static str) {
        let mut end = ScanBounds::default();
        for page in 0.. {
            let (from, to) = (cursor(page).to_string(), cursor(page + 1).to_string());
            let asked = if end.asks_how_many() { end.there_are(there) } else { Ok(()) };
            if let Err(why) =
                asked.and_then(|()| end.page(from.as_bytes(), to.as_bytes(), 500, keys))
            {
                return (page, why);
            }
        }
        (0, "")
    }

    #[test]
    fn what_has_no_end_is_given_up() {
        assert_eq!(scan(|_| 17, 0, None), (0, "a page ends where it began"));
        for length in [2, 3, 100, 1_000] {
            let (pages, why) = scan(|page| 7 + page % length, 0, None);
            assert!(why == "it goes in a circle" && pages < 60 * length + 60, "{pages}: {why}");
        }
        let (pages, why) = scan(|page| page + 1, 500, Some(10));
        assert!(
            why == "it answers many times the keys that it holds" && pages < 4_100,
            "{pages}: {why}"
        );
        let mut end =
            ScanBounds { passed: MOST_PASSED - 500, most_there: u64::MAX, ..ScanBounds::default() };
        assert_eq!(end.page(b"1", b"2", 500, 0), Ok(()));
        assert_eq!(end.page(b"2", b"3", 500, 0), Err("it is longer than any keyspace"));
        let (pages, why) = scan(|page| page + 1, 0, Some(17));
        assert!(
            why == "it goes on far beyond the keys that it holds" && pages < 34_000,
            "{pages}: {why}"
        );
        assert_eq!(
            scan(|page| page + 1, 150_001, None).1,
            "a page holds many times what was asked for"
        );
    }

    #[test]
    fn a_scan_of_one_page_ends_where_it_began() {
        assert_eq!(ScanBounds::default().page(b"0", b"0", 500, 3), Ok(()));
        assert!(ScanBounds::default().page(b"7", b"7", 500, 3).is_err());
    }

    #[test]
    fn a_keyspace_that_others_empty_meanwhile_is_scanned_to_its_end() {
        let mut end = ScanBounds::default();
        let mut there: u64 = 3_000_000;
        for page in 0..6_000_u64 {
            if end.asks_how_many() {
                assert_eq!(end.there_are(Some(there)), Ok(()), "after {page} pages");
            }
            assert_eq!(end.page(&page.to_be_bytes(), &(page + 1).to_be_bytes(), 500, 500), Ok(()));
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
                    end.page(&page.to_be_bytes(), &(page + 1).to_be_bytes(), 500, 500),
                    Ok(())
                );
            }
        }
    }
}
