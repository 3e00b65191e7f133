//! Where a walk over one node's keyspace stands.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher, RandomState};

/// How many pages back a Redis key is remembered. SCAN repeats keys when a table shrinks, and then within
/// neighbouring pages, for it walks the parts that fall together one after another.
const REMEMBERED_PAGES: usize = 8;

/// The cursor of a walk, and the keys that were seen lately.
#[derive(Default)]
pub(super) struct Scan {
    cursor: Vec<u8>,
    ended: bool,
    hasher: RandomState,
    recent: HashSet<u64, BuildHasherDefault<Hashed>>,
    pages: VecDeque<Vec<u64>>,
}

impl Scan {
    /// At the beginning.
    pub(super) fn new() -> Self {
        Self { cursor: b"0".to_vec(), ..Self::default() }
    }

    /// The cursor to go on from; `None` at the end.
    pub(super) fn cursor(&self) -> Option<&[u8]> {
        (!self.ended).then_some(&self.cursor)
    }

    /// Starts a page, which came with the cursor of the next.
    pub(super) fn turn(&mut self, cursor: &[u8]) {
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
    }

    /// True the first time that a Redis key is seen in these pages.
    pub(super) fn is_new(&mut self, redis_key: &[u8]) -> bool {
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
        scan.turn(b"17");
        assert!(scan.is_new(b"a"));
        assert!(!scan.is_new(b"a"));
        scan.turn(b"3");
        assert!(!scan.is_new(b"a"));
        (0..REMEMBERED_PAGES).for_each(|_| scan.turn(b"5"));
        assert!(scan.is_new(b"a"));
    }

    #[test]
    fn it_ends_with_the_cursor_zero() {
        let mut scan = Scan::new();
        assert_eq!(scan.cursor(), Some(&b"0"[..]));
        scan.turn(b"17");
        assert_eq!(scan.cursor(), Some(&b"17"[..]));
        scan.turn(b"0");
        assert_eq!(scan.cursor(), None);
    }
}
