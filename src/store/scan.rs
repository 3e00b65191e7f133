//! Walking the keyspace of one node, page by page.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};

use redis::Value;

use super::connect::Link;
use super::error::StoreError;
use super::reply;

/// Keys looked at a page. Larger pages stall other clients, smaller ones cost round trips.
const PAGE: usize = 500;

/// How many pages back a Redis key is remembered. SCAN repeats keys when a table shrinks, and then within
/// neighbouring pages, for it walks the parts that fall together one after another.
const REMEMBERED_PAGES: usize = 8;

/// A walk over one node's keyspace.
pub struct Scan {
    link: Link,
    pattern: Vec<u8>,
    cursor: Option<u64>,
    hasher: RandomState,
    recent: VecDeque<HashSet<u64>>,
}

impl Scan {
    pub(super) fn new(link: Link, pattern: &[u8]) -> Self {
        Self { link, pattern: pattern.to_vec(), cursor: Some(0), hasher: RandomState::new(), recent: VecDeque::new() }
    }

    /// The next page of Redis keys, perhaps an empty one; `None` at the end.
    ///
    /// # Errors
    /// As every read.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Vec<u8>>>, StoreError> {
        let Some(cursor) = self.cursor else { return Ok(None) };
        let mut command = redis::cmd("SCAN");
        command.arg(cursor).arg("MATCH").arg(&self.pattern).arg("COUNT").arg(PAGE);
        let reply = self.link.ask(&command).await?;
        let (next, keys) = page(reply).ok_or_else(|| self.link.unexpected("SCAN"))?;
        self.cursor = (next != 0).then_some(next);
        Ok(Some(self.without_repeats(keys)))
    }

    fn without_repeats(&mut self, keys: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let mut here = HashSet::with_capacity(keys.len());
        let mut fresh = Vec::with_capacity(keys.len());
        for key in keys {
            let hash = self.hasher.hash_one(&key);
            if !self.recent.iter().any(|page| page.contains(&hash)) && here.insert(hash) {
                fresh.push(key);
            }
        }
        self.recent.push_back(here);
        if self.recent.len() > REMEMBERED_PAGES {
            self.recent.pop_front();
        }
        fresh
    }
}

fn page(value: Value) -> Option<(u64, Vec<Vec<u8>>)> {
    let [cursor, keys] = <[Value; 2]>::try_from(reply::array(value)?).ok()?;
    let cursor = reply::word(cursor)?.parse().ok()?;
    let keys = reply::array(keys)?.into_iter().map(reply::bytes).collect::<Option<_>>()?;
    Some((cursor, keys))
}
