//! Where a walk over one node's keyspace stands.

mod end;

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher, RandomState};

use self::end::End;

/// How many pages back a Redis key is remembered. SCAN repeats keys when a table shrinks, and then within
/// neighbouring pages, for it walks the parts that fall together one after another.
const REMEMBERED_PAGES: usize = 8;

/// The cursor of a walk, and the keys that were seen lately.
#[derive(Default)]
pub(in crate::store) struct Scan {
    cursor: Vec<u8>,
    ended: bool,
    hasher: RandomState,
    recent: HashSet<u64, BuildHasherDefault<Hashed>>,
    pages: VecDeque<Vec<u64>>,
    end: End,
    /// Redis keys that the page on its way was asked for.
    count: usize,
}

impl Scan {
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
        self.end.asks_how_many()
    }

    /// Redis keys that the page on its way was asked for: about as many the server goes through.
    pub(in crate::store) fn count(&self) -> usize {
        self.count
    }

    /// True when the answer to DBSIZE comes before the page.
    pub(in crate::store) fn awaits_size(&self) -> bool {
        self.end.asks_how_many()
    }

    /// Takes in the answer to DBSIZE; `None` where that may not be asked.
    ///
    /// # Errors
    /// Why the walk has no end.
    pub(in crate::store) fn there_are(&mut self, keys: Option<u64>) -> Result<(), &'static str> {
        self.end.there_are(keys)
    }

    /// Starts a page, which came with the cursor of the next and holds so many Redis keys.
    ///
    /// # Errors
    /// Why the walk has no end.
    pub(in crate::store) fn turn(&mut self, cursor: &[u8], keys: usize) -> Result<(), &'static str> {
        self.end.page(&self.cursor, cursor, (self.count as u64, keys as u64))?;
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

/// What is a hash already needs no other.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_new_once_until_its_page_is_forgotten() {
        let mut scan = Scan::new();
        scan.turn(b"17", 1).unwrap();
        assert!(scan.is_new(b"a"));
        assert!(!scan.is_new(b"a"));
        scan.turn(b"3", 1).unwrap();
        assert!(!scan.is_new(b"a"));
        (0..REMEMBERED_PAGES).for_each(|page| scan.turn(format!("5{page}").as_bytes(), 0).unwrap());
        assert!(scan.is_new(b"a"));
    }

    #[test]
    fn it_ends_with_the_cursor_zero() {
        let mut scan = Scan::new();
        assert_eq!(scan.cursor(), Some(&b"0"[..]));
        scan.turn(b"17", 0).unwrap();
        assert_eq!(scan.cursor(), Some(&b"17"[..]));
        scan.turn(b"0", 0).unwrap();
        assert_eq!(scan.cursor(), None);
    }
}
