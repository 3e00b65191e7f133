//! The keyspace of all nodes, a page of each in turn: while one node's page is decoded the others work at theirs.
//!
//! A cluster may move slots while it is walked. So the slot map is compared before and after, and the nodes that have
//! got slots meanwhile are walked again for what is in these. A node that cannot be reached, a slot that no node serves, and a
//! record that cannot be read are left out, and named at the end.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use super::gaps::Gaps;
use super::page_size::ScanOptions;
use super::reader::ReadLimit;
use super::scan_page::{Page, Pages};
use crate::domain::hash_slot;
use crate::domain::record::Candidate;
use crate::domain::schema::Catalog;
use crate::store::cluster::client::Client;
use crate::store::cluster::slot_map::SlotMap;
use crate::store::connection::Target;
use crate::store::error::{Place, StoreError};

/// How often nodes are walked again for slots that moved meanwhile.
const MOST_ROUNDS: usize = 5;

pub(in crate::store) struct Nodes {
    client: Client,
    open: VecDeque<(Target, Pages)>,
    pattern: Vec<u8>,
    head: ReadLimit,
    lengths: bool,
    /// The slot map of the round under way; `None` where it is no cluster.
    map: Option<Arc<SlotMap>>,
    /// In later rounds the slots that are looked for.
    moved: Option<HashSet<u16>>,
    rounds: usize,
    gaps: Gaps,
    scan_options: ScanOptions,
}

impl Nodes {
    /// Asks every node for its first page.
    ///
    /// # Errors
    /// When no node can be reached.
    pub(in crate::store) async fn open(
        client: Client,
        pattern: Vec<u8>,
        head: ReadLimit,
        scan_options: ScanOptions,
    ) -> Result<Self, StoreError> {
        let (masters, map, gaps) = Gaps::open(&client).await?;
        let (open, lengths, moved, rounds) = (VecDeque::new(), false, None, 1);
        let mut nodes = Self { client, open, pattern, head, lengths, map, moved, rounds, gaps, scan_options };
        nodes.connect(masters).await;
        if nodes.open.is_empty()
            && let Some(error) = nodes.gaps.pop_node()
        {
            return Err(error);
        }
        Ok(nodes)
    }

    /// Whether the pages to come bring the lengths of values along.
    pub(in crate::store) fn bring_lengths(&mut self, lengths: bool) {
        self.lengths = lengths;
        self.open.iter_mut().for_each(|(_, pages)| pages.bring_lengths(lengths));
    }

    /// The least that the pages to come read of each value.
    pub(in crate::store) fn bring_heads(&mut self, head: ReadLimit) {
        self.head = head;
        self.open.iter_mut().for_each(|(_, pages)| pages.bring_heads(head));
    }

    /// The next page; `None` at the end.
    ///
    /// # Errors
    /// As every read; at the end, if a part of a cluster was left out.
    pub(in crate::store) async fn next(
        &mut self,
        catalog: &Catalog,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<Page>, StoreError> {
        loop {
            let Some((node, mut pages)) = self.open.pop_front() else {
                if self.next_round().await? {
                    continue;
                }
                return self.gaps.error().map_or(Ok(None), Err);
            };
            match pages.next(catalog, &wanted).await {
                Ok(Some(page)) => {
                    self.open.push_back((node, pages));
                    return Ok(Some(self.of_moved_slots(page)));
                }
                Ok(None) => {}
                Err(error) if self.gaps.masters() > 1 => self.gaps.miss_node(error),
                Err(error) => return Err(error),
            }
        }
    }

    async fn connect(&mut self, nodes: Vec<Target>) {
        let masters = self.map.as_ref().map(|_| self.gaps.masters());
        for master in nodes {
            // Without a replica that answers, the master does.
            let replica = if self.scan_options.from_replicas { self.client.replica_of(&master).await } else { None };
            let mut last = None;
            for node in replica.into_iter().chain([master]) {
                match Pages::open(&node, &self.pattern, self.head, self.scan_options, masters).await {
                    Ok(mut pages) => {
                        pages.bring_lengths(self.lengths);
                        self.open.push_back((node, pages));
                        last = None;
                        break;
                    }
                    Err(error) => last = Some(error),
                }
            }
            if let Some(error) = last {
                self.gaps.miss_node(error);
            }
        }
    }

    /// Begins another round when slots have moved since the last began.
    async fn next_round(&mut self) -> Result<bool, StoreError> {
        let Some(before) = self.map.clone() else { return Ok(false) };
        // Where the map cannot be asked for, nobody knows what has moved.
        if let Err(error) = self.client.learn().await {
            self.gaps.miss_node(error);
            return Ok(false);
        }
        let Some(now) = self.client.slot_map() else { return Ok(false) };
        let moved: HashSet<u16> = now.moved_since(&before).into_iter().collect();
        // Whoever has taken over from a master that is silent has what it had.
        self.gaps.forget_replaced(&before, &now);
        let has_moved = |node: &&Target| moved.iter().any(|slot| now.master(*slot) == Some(*node));
        let nodes: Vec<_> = now.masters().iter().filter(has_moved).cloned().collect();
        if nodes.is_empty() {
            return Ok(false);
        }
        if self.rounds == MOST_ROUNDS {
            // What moves now and was looked through before is known; what was looked for and went on is not.
            if self.moved.as_ref().is_some_and(|sought| sought.is_disjoint(&moved)) {
                return Ok(false);
            }
            let (code, why) = ("MOVED".to_owned(), "slots go on moving from node to node".to_owned());
            self.gaps.miss_node(StoreError::Refused { target: nodes[0].to_string(), code, why, place: Place::Command });
            return Ok(false);
        }
        self.gaps.forget_slots(&moved, &now);
        (self.map, self.moved) = (Some(now), Some(moved));
        self.rounds += 1;
        self.connect(nodes).await;
        Ok(true)
    }

    /// In a later round what is in other slots is known already.
    fn of_moved_slots(&self, mut page: Page) -> Page {
        if let Some(moved) = &self.moved {
            let has_moved =
                |candidate: &Candidate, role: usize| moved.contains(&hash_slot::of(&candidate.redis_keys[role]));
            page.found.retain(|(candidate, role, _)| has_moved(candidate, *role));
            page.elsewhere.retain(|(candidate, role)| has_moved(candidate, *role));
        }
        page
    }

    /// Records whose Redis keys are on several nodes, put together by the names of these.
    pub(in crate::store) fn by_owners(
        &self,
        places: Vec<(Candidate, usize)>,
    ) -> BTreeMap<Vec<String>, Vec<(Candidate, usize)>> {
        let map = self.client.slot_map();
        let owner = |redis_key: &Vec<u8>| Some(map.as_ref()?.master(hash_slot::of(redis_key))?.to_string());
        let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for place in places {
            let owners = place.0.redis_keys.iter().filter_map(owner).collect();
            groups.entry(owners).or_default().push(place);
        }
        groups
    }

    /// True when one of these nodes is left out already.
    pub(in crate::store) fn has_missed(&self, owners: &[String]) -> bool {
        self.gaps.has_missed(owners)
    }

    /// What could not be read so far; `None` if everything was.
    pub(in crate::store) fn gap(&self) -> Option<StoreError> {
        self.gaps.error()
    }

    /// Leaves out a record for an error that concerns it alone, or its node if that does not answer.
    ///
    /// # Errors
    /// The error, if there is only one server.
    pub(in crate::store) fn miss_record(&mut self, redis_key: &[u8], why: StoreError) -> Result<(), StoreError> {
        self.gaps.miss_record(redis_key, why)
    }
}
