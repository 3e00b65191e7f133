//! Redis keys of one node, some or all of them: SCAN from cursors at random, or from the beginning.
//!
//! Keys stand in a server's table in no order of their names: what stands behind any cursor is a sample as good as another, and
//! many cursors make up for keys that a hash tag keeps together. A cursor may be any number; what stands before a number that the
//! table does not reach is its remainder.

use std::collections::HashSet;

use fastrand::Rng;
use redis::Value;

use super::cursor::ScanCursor;
use crate::store::cluster::client::Client;
use crate::store::connection::{Target, reply};
use crate::store::error::StoreError;

/// Pages for each that would do if all of them were full and held no key twice.
const PATIENCE: usize = 4;

/// Pages on top of that.
const LEAST_PAGES: usize = 20;

/// Redis keys that one SCAN with a glob looks at.
const MATCHED_PAGE: usize = 1_000;

pub(super) struct SampledNode {
    pub(super) node: Target,
    /// How many Redis keys it holds; `None` where that may not be asked.
    pub(super) size: Option<u64>,
    wanted: usize,
    /// Only Redis keys that match this glob.
    glob: Option<Vec<u8>>,
    way: SampleMethod,
    known: HashSet<Vec<u8>>,
}

enum SampleMethod {
    /// From the beginning.
    Through(Box<ScanCursor>),
    /// From cursors at random, so many pages more.
    AtRandom(usize),
}

impl SampledNode {
    pub(super) async fn open(client: &Client, node: Target) -> Result<Self, StoreError> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("DBSIZE");
        let size = match client.ask_node(&node, pipeline, 1).await.pop() {
            Some(Ok(size)) => reply::integer(&size).and_then(|size| u64::try_from(size).ok()),
            Some(Err(error)) if !error.lost_the_reply() => None,
            Some(Err(error)) => return Err(error),
            None => None,
        };
        let way = SampleMethod::Through(Box::new(ScanCursor::new()));
        Ok(Self { node, size, wanted: 0, glob: None, way, known: HashSet::new() })
    }

    /// Wants so many of its Redis keys, in pages of so many; all of them where there are no more.
    pub(super) fn want(&mut self, wanted: usize, page: usize) {
        self.wanted = wanted;
        if self.size.is_some_and(|size| size > wanted as u64) {
            self.way =
                SampleMethod::AtRandom(wanted.div_ceil(page.max(1)) * PATIENCE + LEAST_PAGES);
        }
    }

    /// Wants so many of its Redis keys that match a glob, from the beginning of its table.
    pub(super) fn want_matching(&mut self, wanted: usize, glob: &[u8]) {
        self.wanted = wanted;
        self.glob = Some(glob.to_vec());
    }

    /// The next page of Redis keys, each of which comes once; `None` at the end.
    ///
    /// # Errors
    /// As every read; a SCAN without end.
    pub(super) async fn next(
        &mut self,
        client: &Client,
        page: usize,
        random: &mut Rng,
    ) -> Result<Option<Vec<Vec<u8>>>, StoreError> {
        let left = self.wanted.saturating_sub(self.known.len());
        let page = page.min(left);
        let Some(cursor) = self.cursor(random).filter(|_| left > 0) else { return Ok(None) };
        let mut pipeline = redis::pipe();
        pipeline.cmd("DBSIZE");
        let scan = pipeline.cmd("SCAN").arg(&cursor);
        // Redis counts the keys that it looks at, not those that match.
        let page = if self.glob.is_some() { MATCHED_PAGE } else { page };
        if let Some(glob) = &self.glob {
            scan.arg("MATCH").arg(glob);
        }
        scan.arg("COUNT").arg(page);
        let mut replies = client.ask_node(&self.node, pipeline, 2).await.into_iter();
        let size = replies.next().and_then(Result::ok).and_then(|size| reply::integer(&size));
        let (next, keys) = match replies.next() {
            Some(Ok(reply)) => parsed(reply).ok_or_else(|| client.unexpected("SCAN"))?,
            Some(Err(error)) if self.may_go_through(&error) => {
                self.way = SampleMethod::Through(Box::new(ScanCursor::new()));
                return Ok(Some(Vec::new()));
            }
            Some(Err(error)) => return Err(error),
            None => return Err(client.unexpected("SCAN")),
        };
        self.turn(&next, (page, keys.len()), size)?;
        let mut new: Vec<_> =
            keys.into_iter().filter(|key| self.known.insert(key.clone())).collect();
        // Keys of one place in the table come together, however few are asked for.
        new.truncate(left);
        Ok(Some(new))
    }

    /// Where the next page begins; `None` at the end.
    fn cursor(&mut self, random: &mut Rng) -> Option<Vec<u8>> {
        match &mut self.way {
            SampleMethod::Through(scan) => scan.cursor().map(<[u8]>::to_vec),
            SampleMethod::AtRandom(0) => None,
            SampleMethod::AtRandom(left) => {
                *left -= 1;
                Some(random.u64(..).to_string().into_bytes())
            }
        }
    }

    /// What is no Redis may refuse a cursor that it did not give.
    fn may_go_through(&self, error: &StoreError) -> bool {
        matches!(self.way, SampleMethod::AtRandom(_))
            && !error.lost_the_reply()
            && !error.is_permission()
    }

    fn turn(
        &mut self,
        cursor: &[u8],
        (asked, came): (usize, usize),
        size: Option<i64>,
    ) -> Result<(), StoreError> {
        let SampleMethod::Through(scan) = &mut self.way else { return Ok(()) };
        let endless = |why| StoreError::NotRedis {
            target: self.node.to_string(),
            why: format!("its SCAN has no end: {why}"),
        };
        if scan.ask(asked) {
            scan.there_are(size.and_then(|size| u64::try_from(size).ok())).map_err(endless)?;
        }
        scan.turn(cursor, came).map_err(endless)
    }
}

/// The next cursor and the Redis keys of a page.
fn parsed(page: Value) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let mut parts = reply::array(page)?.into_iter();
    let cursor = reply::bytes(parts.next()?)?;
    let keys = reply::array(parts.next()?)?.into_iter().map(reply::bytes).collect::<Option<_>>()?;
    Some((cursor, keys))
}
