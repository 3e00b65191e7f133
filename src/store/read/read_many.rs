//! Several records in one call of the script that reads: what a scan reads of hashes, which no plain command cuts, and what a key
//! is under each schema.

use super::reader::{Depth, ReadLimit, RecordReader, Seen};
use crate::domain::record::Observation;
use crate::store::error::StoreError;

/// The most Redis keys that a call names: as many as a change looks at.
const MOST_KEYS: usize = 100;

/// The most records that one call reads as [`RecordReader::observe_each`] does: the text of the script is longer than most of them.
const MOST_TOGETHER: usize = 16;

impl RecordReader {
    /// Reads records, each as [`RecordReader::observe`] does but for its idle time and memory. One result a record, in order.
    ///
    /// # Errors
    /// When the server could not be asked at all.
    pub(in crate::store) async fn observe_many(
        &mut self,
        records: &[Vec<Vec<u8>>],
        head: ReadLimit,
    ) -> Result<Vec<Seen>, StoreError> {
        let calls: Vec<_> = calls(records).collect();
        let wanted: Vec<_> =
            calls.iter().map(|call| call.iter().flatten().cloned().collect()).collect();
        let read = self.observe_with(&wanted, head, Depth::Brief).await?;
        let mut seen = Vec::with_capacity(records.len());
        for (call, read) in calls.into_iter().zip(read) {
            match read {
                Ok(all) => seen.extend(taken_apart(call, all)),
                // One record of the call is out of bounds for the user, or of another node.
                Err(error) if !error.lost_the_reply() => {
                    let each = self.observe_with(call, head, Depth::Brief).await?;
                    seen.extend(self.observe_half_moved(call, each, head, Depth::Brief).await?);
                }
                // A node that does not answer is not asked again.
                Err(error) => seen.extend(call.iter().map(|_| Err(error.clone()))),
            }
        }
        Ok(seen)
    }

    /// Reads a few records in one call, each as [`RecordReader::observe_each`] does; `None` where one call cannot read them all: the
    /// user may not read one, or they are on several nodes, or plain commands read them.
    ///
    /// # Errors
    /// As [`RecordReader::observe_each`].
    pub(super) async fn observe_together(
        &mut self,
        records: &[Vec<Vec<u8>>],
        head: ReadLimit,
    ) -> Result<Option<Vec<Seen>>, StoreError> {
        if !(2..=MOST_TOGETHER).contains(&records.len())
            || head == ReadLimit::Whole
            || self.client().is_cluster()
        {
            return Ok(None);
        }
        let all = records.iter().flatten().cloned().collect();
        let read = self.observe_with(&[all], head, Depth::Usual).await;
        // It turned out to be a cluster, each node of which answers for its own records.
        if self.client().is_cluster() {
            return Ok(None);
        }
        match read?.pop() {
            Some(Ok(all)) if all.atomic => Ok(Some(taken_apart(records, all).collect())),
            Some(Err(error)) if error.lost_the_reply() => Ok(Some(vec![Err(error); records.len()])),
            _ => Ok(None),
        }
    }
}

/// The records that each call reads.
fn calls(records: &[Vec<Vec<u8>>]) -> impl Iterator<Item = &[Vec<Vec<u8>>]> {
    let keys = records.first().map_or(1, Vec::len).max(1);
    records.chunks((MOST_KEYS / keys).max(1))
}

/// The records that a call read together.
fn taken_apart(records: &[Vec<Vec<u8>>], all: Observation) -> impl Iterator<Item = Seen> {
    let (server_ms, atomic) = (all.server_ms, all.atomic);
    let mut seen = all.keys.into_iter();
    let record = move |keys: &Vec<Vec<u8>>| {
        let keys: Vec<_> = seen.by_ref().take(keys.len()).collect();
        Ok(Observation { server_ms, atomic: atomic || keys.len() == 1, keys })
    };
    records.iter().map(record).collect::<Vec<_>>().into_iter()
}
