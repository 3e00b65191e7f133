//! Samples some or all Redis keys of one node: SCAN from random cursors, or from the beginning.
//!
//! A server's table does not order keys by their names, so the keys after any cursor are an equally
//! good sample. Using many cursors compensates for keys that a hash tag keeps together. A cursor
//! may be any number, because the server takes its remainder.

use std::collections::HashSet;

use fastrand::Rng;
use redis::Value;

use super::cursor::ScanCursor;
use crate::store::cluster::client::Client;
use crate::store::connection::{Target, reply};
use crate::store::error::StoreError;

/// How many times as many pages are read as would suffice if all of them were full and had no
/// repeated keys.
const PATIENCE: usize = 4;

/// The number of additional pages.
const MIN_PAGES: usize = 20;

/// The number of Redis keys that one SCAN with a glob passes. Only those that match are returned,
/// so the page may be larger than others.
const MATCHED_PAGE: usize = 1_000;

/// A node, and the Redis keys of it that were returned.
pub(super) struct SampledNode {
    pub(super) node: Target,
    /// How many Redis keys it has; `None` if the Redis user may not ask.
    pub(super) size: Option<u64>,
    /// How many of them are wanted.
    wanted: usize,
    /// Only Redis keys that match this glob.
    glob: Option<Vec<u8>>,
    method: SampleMethod,
    /// The Redis keys that were returned.
    known: HashSet<Vec<u8>>,
}

/// How the pages of a sample are chosen.
enum SampleMethod {
    /// In order, from the beginning.
    Through(Box<ScanCursor>),
    /// From random cursors, for at most this many more pages.
    AtRandom(usize),
}

impl SampledNode {
    /// Asks a node how many Redis keys it has.
    ///
    /// # Errors
    /// The node does not answer.
    pub(super) async fn open(client: &Client, node: Target) -> Result<Self, StoreError> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("DBSIZE");
        let size = match client.ask_node(&node, pipeline, 1).await.pop() {
            Some(Ok(size)) => key_count(&size),
            // Without a number, the node is sampled from the beginning of its table.
            Some(Err(error)) if !error.lost_the_reply() => None,
            Some(Err(error)) => return Err(error),
            None => None,
        };
        let method = SampleMethod::Through(Box::new(ScanCursor::new()));
        Ok(Self { node, size, wanted: 0, glob: None, method, known: HashSet::new() })
    }

    /// Requests this many of its Redis keys, in pages of this size; all of them if it does not have
    /// more.
    pub(super) fn want(&mut self, wanted: usize, page: usize) {
        self.wanted = wanted;
        if self.size.is_some_and(|size| size > wanted as u64) {
            self.method =
                SampleMethod::AtRandom(wanted.div_ceil(page.max(1)) * PATIENCE + MIN_PAGES);
        }
    }

    /// Requests this many of its Redis keys that match a glob, from the beginning of its table.
    pub(super) fn want_matching(&mut self, wanted: usize, glob: &[u8]) {
        self.wanted = wanted;
        self.glob = Some(glob.to_vec());
    }

    /// The next page of Redis keys, without repeated ones; `None` at the end.
    ///
    /// # Errors
    /// The errors of any read; a SCAN without end.
    pub(super) async fn next(
        &mut self,
        client: &Client,
        page: usize,
        random: &mut Rng,
    ) -> Result<Option<Vec<Vec<u8>>>, StoreError> {
        let left = self.wanted.saturating_sub(self.known.len());
        let page = page.min(left);
        let Some(cursor) = self.cursor(random) else { return Ok(None) };
        if left == 0 {
            return Ok(None);
        }
        let mut pipeline = redis::pipe();
        pipeline.cmd("DBSIZE");
        let scan = pipeline.cmd("SCAN").arg(&cursor);
        // COUNT is the number of keys that the server passes, not of those that match.
        let page = if self.glob.is_some() { MATCHED_PAGE } else { page };
        if let Some(glob) = &self.glob {
            scan.arg("MATCH").arg(glob);
        }
        scan.arg("COUNT").arg(page);
        let mut replies = client.ask_node(&self.node, pipeline, 2).await.into_iter();
        let size = match replies.next() {
            Some(Ok(size)) => key_count(&size),
            _ => None,
        };
        let (next, keys) = match replies.next() {
            Some(Ok(reply)) => parsed(reply).ok_or_else(|| client.unexpected("SCAN"))?,
            Some(Err(error)) if self.may_go_through(&error) => {
                self.method = SampleMethod::Through(Box::new(ScanCursor::new()));
                return Ok(Some(Vec::new()));
            }
            Some(Err(error)) => return Err(error),
            None => return Err(client.unexpected("SCAN")),
        };
        self.start_page(&next, page, keys.len(), size)?;
        let mut new = Vec::with_capacity(keys.len());
        for key in keys {
            if self.known.insert(key.clone()) {
                new.push(key);
            }
        }
        // Keys of one slot of the table are returned together, however small COUNT is.
        new.truncate(left);
        Ok(Some(new))
    }

    /// The cursor of the next page; `None` at the end.
    fn cursor(&mut self, random: &mut Rng) -> Option<Vec<u8>> {
        match &mut self.method {
            SampleMethod::Through(scan) => scan.cursor().map(<[u8]>::to_vec),
            SampleMethod::AtRandom(0) => None,
            SampleMethod::AtRandom(left) => {
                *left -= 1;
                Some(random.u64(..).to_string().into_bytes())
            }
        }
    }

    /// True if the scan may start again from the beginning, because a server that only resembles
    /// Redis may reject a cursor that it did not return.
    fn may_go_through(&self, error: &StoreError) -> bool {
        matches!(self.method, SampleMethod::AtRandom(_))
            && !error.lost_the_reply()
            && !error.is_permission()
    }

    /// Starts the next page, which has this cursor. The last page had the COUNT `asked`, and
    /// `received` keys.
    fn start_page(
        &mut self,
        cursor: &[u8],
        asked: usize,
        received: usize,
        size: Option<u64>,
    ) -> Result<(), StoreError> {
        let SampleMethod::Through(scan) = &mut self.method else { return Ok(()) };
        let mut progress = Ok(());
        scan.note_count(asked);
        if scan.needs_dbsize() {
            progress = scan.set_dbsize(size);
        }
        if progress.is_ok() {
            progress = scan.start_page(cursor, received);
        }
        progress.map_err(|why| StoreError::NotRedis {
            target: self.node.to_string(),
            why: why.to_owned(),
        })
    }
}

/// The number in the reply to DBSIZE.
fn key_count(reply: &Value) -> Option<u64> {
    u64::try_from(reply::integer(reply)?).ok()
}

/// The next cursor and the Redis keys of a page.
fn parsed(page: Value) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let mut parts = reply::array(page)?.into_iter();
    let cursor = reply::bytes(parts.next()?)?;
    let mut keys = Vec::new();
    for key in reply::array(parts.next()?)? {
        keys.push(reply::bytes(key)?);
    }
    Some((cursor, keys))
}
