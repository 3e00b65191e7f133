//! What a scan of the keyspace could not read: nodes that do not answer, slots without a node, and
//! single records.
//!
//! Every scan gets its nodes from [`Gaps::open`], so that no scan mistakes the reachable nodes for
//! the whole keyspace.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::domain::hash_slot;
use crate::store::cluster::client::Client;
use crate::store::cluster::slot_map::SlotMap;
use crate::store::connection::Target;
use crate::store::error::StoreError;

/// The most unread records that are remembered by name, so that memory stays bounded. Records
/// beyond that are only counted.
const MAX_NAMED: usize = 10_000;

/// The most unread records that a message names.
const MAX_IN_MESSAGE: usize = 5;

/// What a scan could not read so far.
pub(in crate::store) struct Gaps {
    /// How many nodes the scan has to read.
    masters: usize,
    is_cluster: bool,
    /// The slots that no node served in any slot map so far.
    unserved: Vec<u16>,
    /// Why nodes could not be read to the end.
    nodes: Vec<StoreError>,
    /// Reasons why the result may be incomplete without an error. For example, the Redis user may
    /// not ask which slots are being moved, or a replica is behind.
    doubts: Vec<String>,
    /// Why records could not be read, by one of their Redis keys.
    records: BTreeMap<Vec<u8>, StoreError>,
    /// Unread records beyond [`MAX_NAMED`].
    more_records: u64,
}

impl Gaps {
    /// The nodes that a scan has to read, the slot map with them (`None` outside a cluster), and
    /// the gaps that are known before anything is read.
    ///
    /// # Errors
    /// The errors of any read.
    pub(in crate::store) async fn open(
        client: &Client,
    ) -> Result<(Vec<Target>, Option<Arc<SlotMap>>, Self), StoreError> {
        let masters = client.masters().await?;
        let map = client.slot_map();
        let unserved = match &map {
            Some(map) => map.unserved(),
            None => Vec::new(),
        };
        let gaps = Self {
            masters: masters.len(),
            is_cluster: map.is_some(),
            unserved,
            nodes: Vec::new(),
            doubts: Vec::new(),
            records: BTreeMap::new(),
            more_records: 0,
        };
        Ok((masters, map, gaps))
    }

    /// How many nodes the scan has to read.
    pub(in crate::store) fn masters(&self) -> usize {
        self.masters
    }

    /// Leaves out a node, or the rest of it. A node that does not answer is left out once.
    pub(in crate::store) fn miss_node(&mut self, why: StoreError) {
        let unreachable = why.silent_server();
        if unreachable.is_none()
            || !self.nodes.iter().any(|known| known.silent_server() == unreachable)
        {
            self.nodes.push(why);
        }
    }

    /// Notes why records may be missing without an error.
    pub(in crate::store) fn doubt(&mut self, why: String) {
        if !self.doubts.contains(&why) {
            self.doubts.push(why);
        }
    }

    /// Removes the error of the node that was left out last, and returns it.
    pub(in crate::store) fn pop_node(&mut self) -> Option<StoreError> {
        self.nodes.pop()
    }

    /// True if one of these nodes does not answer and is left out.
    pub(in crate::store) fn has_missed(&self, nodes: &[String]) -> bool {
        for error in &self.nodes {
            if let Some(server) = error.silent_server()
                && nodes.iter().any(|node| node == server)
            {
                return true;
            }
        }
        false
    }

    /// Leaves out a record because of an error that concerns only this record, or its node if the
    /// node does not answer.
    ///
    /// # Errors
    /// The error, if there is only one server, because it then concerns every record.
    pub(in crate::store) fn miss_record(
        &mut self,
        redis_key: &[u8],
        why: StoreError,
    ) -> Result<(), StoreError> {
        if !self.is_cluster {
            return Err(why);
        }
        // A node that does not answer is reported once, and not with each of its records.
        if why.silent_server().is_some() {
            self.miss_node(why);
        } else if self.records.len() < MAX_NAMED || self.records.contains_key(redis_key) {
            self.records.insert(redis_key.to_vec(), why);
        } else {
            self.more_records += 1;
        }
        Ok(())
    }

    /// Closes the gaps of nodes whose slots other nodes serve now: these nodes are read again.
    pub(in crate::store) fn forget_replaced(&mut self, before: &SlotMap, now: &SlotMap) {
        self.nodes.retain(|error| match error.silent_server() {
            Some(server) => !is_replaced(server, before, now),
            None => true,
        });
    }

    /// Closes the gaps of slots that are about to be read again on the nodes of this slot map.
    pub(in crate::store) fn forget_slots(&mut self, again: &HashSet<u16>, now: &SlotMap) {
        self.unserved.retain(|slot| now.master(*slot).is_none());
        self.records.retain(|redis_key, _| !again.contains(&hash_slot::of(redis_key)));
    }

    /// The error for everything that could not be read; `None` if there are no gaps.
    pub(in crate::store) fn error(&self) -> Option<StoreError> {
        let mut parts = Vec::new();
        if !self.nodes.is_empty() {
            let why: Vec<_> = self.nodes.iter().map(ToString::to_string).collect();
            let missed = self.nodes.len();
            parts.push(format!(
                "{missed} of {} masters could not be read completely: {}",
                self.masters,
                why.join("; ")
            ));
        }
        if !self.unserved.is_empty() {
            let slots = hash_slot::ranges(&self.unserved);
            parts.push(format!("no node serves slots {slots}, so their records were not read"));
        }
        parts.extend(self.doubts.iter().cloned());
        parts.extend(self.unread_records());
        if parts.is_empty() {
            return None;
        }
        Some(StoreError::Missed { why: parts.join("; ") })
    }

    fn unread_records(&self) -> Option<String> {
        let (_, why) = self.records.first_key_value()?;
        let count = self.records.len() as u64 + self.more_records;
        let mut names = Vec::new();
        for redis_key in self.records.keys().take(MAX_IN_MESSAGE) {
            names.push(redis_key.escape_ascii().to_string());
        }
        let rest = if count > names.len() as u64 { ", ..." } else { "" };
        Some(format!("records that could not be read: {count}, {}{rest}: {why}", names.join(", ")))
    }
}

/// True if a server was a master before, and other nodes serve all of its slots now.
fn is_replaced(server: &str, before: &SlotMap, now: &SlotMap) -> bool {
    is_master(server, before)
        && !is_master(server, now)
        && before.slots_of(server).iter().all(|slot| now.master(*slot).is_some())
}

fn is_master(server: &str, map: &SlotMap) -> bool {
    map.masters().iter().any(|master| master.to_string() == server)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::error::RefusedAt;

    fn gaps() -> Gaps {
        let (nodes, doubts, records) = (Vec::new(), Vec::new(), BTreeMap::new());
        Gaps {
            masters: 3,
            is_cluster: true,
            unserved: Vec::new(),
            nodes,
            doubts,
            records,
            more_records: 0,
        }
    }

    fn try_again() -> StoreError {
        let (target, code, why) = ("a:1/0".to_owned(), "TRYAGAIN".to_owned(), "later".to_owned());
        StoreError::ErrorReply { target, code, why, refused_at: RefusedAt::Command }
    }

    fn silent() -> StoreError {
        StoreError::Unreachable { target: "b:2/0".to_owned(), why: "refused".to_owned() }
    }

    #[test]
    fn nothing_missed_is_no_error() {
        assert!(gaps().error().is_none());
    }

    #[test]
    fn slots_nodes_and_records_are_named() {
        let mut gaps = gaps();
        gaps.unserved = vec![1, 2, 3, 9];
        gaps.miss_record(b"idem:\n", try_again()).unwrap();
        gaps.miss_record(b"idem:2", silent()).unwrap();
        gaps.miss_node(silent());
        let told = gaps.error().unwrap().to_string();
        let parts: Vec<_> = told.split("; ").collect();
        assert_eq!(parts[0], format!("1 of 3 masters could not be read completely: {}", silent()));
        assert_eq!(parts[1], "no node serves slots 1-3, 9, so their records were not read");
        assert_eq!(
            parts[2],
            format!("records that could not be read: 1, idem:\\n: {}", try_again())
        );
    }

    #[test]
    fn a_record_that_is_met_twice_counts_once_and_many_are_counted() {
        let mut gaps = gaps();
        for key in [&b"a"[..], b"a", b"b", b"c", b"d", b"e", b"f"] {
            gaps.miss_record(key, try_again()).unwrap();
        }
        let told = gaps.error().unwrap().to_string();
        assert_eq!(
            told,
            format!("records that could not be read: 6, a, b, c, d, e, ...: {}", try_again())
        );
    }

    #[test]
    fn the_error_of_the_only_server_is_no_gap() {
        let mut gaps = Gaps { is_cluster: false, masters: 1, ..gaps() };
        assert!(gaps.miss_record(b"a", try_again()).is_err());
    }
}
