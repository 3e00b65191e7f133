//! Scans the keyspace of all nodes, one page of each in turn: while one node's page is decoded, the
//! others prepare theirs.
//!
//! A cluster may move slots during a scan. So the slot map is compared before and after, and nodes
//! that received slots are scanned again for the keys in these slots. A slot that is still being
//! moved has keys on two nodes. Both are asked for the names of the keys, and first the node that
//! the slot leaves. No record is returned twice. A node that cannot be reached, a slot that no node
//! serves, and a record that cannot be read are left out and reported at the end.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use super::gaps::Gaps;
use super::key_query::{LengthQuery, ReadLimit, ValueQuery};
use super::learned_heads::LearnedHeads;
use super::page_size::ScanOptions;
use super::scan_page::{NodePages, ScanPage};
use crate::domain::hash_slot;
use crate::domain::record::{Candidate, locate};
use crate::domain::schema::{Catalog, Schema};
use crate::store::cluster::client::Client;
use crate::store::cluster::own_slots::MovingSlot;
use crate::store::cluster::slot_map::SlotMap;
use crate::store::connection::Target;
use crate::store::error::{RefusedAt, StoreError};

/// How often nodes are scanned again for moved slots. If slots go on moving after that, idemctl
/// reports that it could not read all keys.
const MAX_ROUNDS: usize = 5;

/// The most keys of a slot that is being moved, because one reply contains all their names.
const MAX_MOVING: usize = 100_000;

/// The number of keys of such slots per page.
const PAGE: usize = 1_000;

/// A node that is being scanned.
struct ScannedNode {
    pages: NodePages,
    /// Whether each slot belonged to this node at the beginning of the round; empty outside a
    /// cluster.
    own: Vec<bool>,
}

pub(in crate::store) struct Nodes {
    client: Client,
    open: VecDeque<ScannedNode>,
    pattern: Vec<u8>,
    /// The minimum that pages read of each value.
    head: ReadLimit,
    /// How pages find out the lengths of values.
    length: LengthQuery,
    /// How much pages read of some schemas' values.
    learned: LearnedHeads,
    /// False if pages read only deadlines, which touches no key.
    values: bool,
    /// True if pages read idle times.
    pub(super) idle: bool,
    /// The slot map of the current round; `None` outside a cluster.
    map: Option<Arc<SlotMap>>,
    /// The configuration epoch of each node, by its id, before this round began.
    epochs: BTreeMap<String, u64>,
    /// In later rounds, the slots that are scanned again.
    moved: Option<HashSet<u16>>,
    rounds: usize,
    /// Moving slots whose keys are known, with the node that they leave.
    listed: HashSet<(u16, String)>,
    /// The keys of such slots that have not been read yet.
    names: VecDeque<Vec<u8>>,
    returned: ReturnedRecords,
    gaps: Gaps,
    scan_options: ScanOptions,
}

impl Nodes {
    /// Asks every node for its first page.
    ///
    /// # Errors
    /// No node can be reached.
    pub(in crate::store) async fn open(
        client: Client,
        pattern: Vec<u8>,
        head: ReadLimit,
        scan_options: ScanOptions,
    ) -> Result<Self, StoreError> {
        let (masters, map, gaps) = Gaps::open(&client).await?;
        let epochs = match &map {
            Some(_) => client.known_epochs().await,
            None => BTreeMap::new(),
        };
        let mut nodes = Self {
            client,
            open: VecDeque::new(),
            pattern,
            head,
            length: LengthQuery::Head,
            learned: LearnedHeads::default(),
            values: true,
            idle: false,
            map,
            epochs,
            moved: None,
            rounds: 1,
            listed: HashSet::new(),
            names: VecDeque::new(),
            returned: ReturnedRecords::new(),
            gaps,
            scan_options,
        };
        nodes.connect(masters).await;
        if let Some(why) = nodes.client.why_stale().await {
            nodes.gaps.doubt(why);
        }
        if nodes.open.is_empty()
            && let Some(error) = nodes.gaps.pop_node()
        {
            return Err(error);
        }
        Ok(nodes)
    }

    /// Sets how the following pages find out the lengths of values.
    pub(in crate::store) fn find_lengths(&mut self, length: LengthQuery) {
        self.length = length;
        for node in &mut self.open {
            node.pages.find_lengths(length);
        }
    }

    /// Sets how much the following pages read of the values of these schemas.
    pub(in crate::store) fn learn_heads(&mut self, heads: Vec<(Arc<Schema>, usize)>) {
        if heads.is_empty() {
            return;
        }
        self.learned.learn(heads);
        for node in &mut self.open {
            node.pages.learn_heads(self.learned.clone());
        }
    }

    /// Makes the following pages read only deadlines.
    pub(in crate::store) fn read_deadlines_alone(&mut self) {
        self.values = false;
        self.set_value_query();
    }

    /// Makes the following pages read idle times.
    pub(in crate::store) fn read_idle_times(&mut self) {
        self.idle = true;
        for node in &mut self.open {
            node.pages.read_idle_times();
        }
    }

    /// Sets the minimum that the following pages read of each value.
    pub(in crate::store) fn set_first_read(&mut self, head: ReadLimit) {
        self.head = head;
        self.set_value_query();
    }

    fn set_value_query(&mut self) {
        let query = self.value_query();
        for node in &mut self.open {
            node.pages.read_values(query);
        }
    }

    /// The parts of values that the pages read.
    fn value_query(&self) -> ValueQuery {
        if self.values { ValueQuery::Head(self.head) } else { ValueQuery::Nothing }
    }

    /// The next page; `None` at the end.
    ///
    /// # Errors
    /// The errors of any read. At the end, an error if a part of a cluster was left out.
    pub(in crate::store) async fn next_page(
        &mut self,
        catalog: &Catalog,
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Option<ScanPage>, StoreError> {
        loop {
            if let Some(page) = self.page_of_moving_slots(catalog, &wanted) {
                return Ok(Some(page));
            }
            let Some(mut source) = self.open.pop_front() else {
                if self.next_round().await? {
                    continue;
                }
                return match self.gaps.error() {
                    Some(error) => Err(error),
                    None => Ok(None),
                };
            };
            match source.pages.next_page(catalog, &wanted).await {
                Ok(Some(mut page)) => {
                    page.found.retain(|(record, key_index, _)| {
                        self.is_wanted(&source, record, *key_index)
                    });
                    page.elsewhere
                        .retain(|(record, key_index)| self.is_wanted(&source, record, *key_index));
                    // A later round reads nodes again, whose other keys were counted before.
                    if self.moved.is_some() {
                        page.returned = page.found.len() + page.elsewhere.len();
                    }
                    self.open.push_back(source);
                    return Ok(Some(page));
                }
                Ok(None) => {}
                // The other nodes can still be read.
                Err(error) if self.gaps.masters() > 1 => self.gaps.miss_node(error),
                Err(error) => return Err(error),
            }
        }
    }

    /// Notes records that are returned.
    pub(in crate::store) fn note_returned<'a>(
        &mut self,
        records: impl Iterator<Item = &'a Candidate>,
    ) {
        if self.map.is_some() {
            records.for_each(|record| self.returned.note(record));
        }
    }

    /// True for a record of a node's page that is read in this round and was not returned before.
    fn is_wanted(&mut self, source: &ScannedNode, record: &Candidate, key_index: usize) -> bool {
        if self.map.is_none() {
            return true;
        }
        let slot = hash_slot::of(&record.redis_keys[key_index]);
        if let Some(moved) = &self.moved
            && !moved.contains(&slot)
        {
            return false;
        }
        let is_own = source.own.get(usize::from(slot)).is_none_or(|is_own| *is_own);
        // Only these records are looked up, because a lookup builds the set of its slot's records.
        let may_be_twice = self.moved.is_some() || !is_own || self.returned.is_of_two_nodes(record);
        !(may_be_twice && self.returned.has(record))
    }

    /// The next records of slots that are being moved, whichever node has them.
    fn page_of_moving_slots(
        &mut self,
        catalog: &Catalog,
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Option<ScanPage> {
        if self.names.is_empty() {
            return None;
        }
        let names: Vec<Vec<u8>> = self.names.drain(..PAGE.min(self.names.len())).collect();
        let mut page = ScanPage { new_keys: names.len(), ..ScanPage::default() };
        for name in &names {
            let Some(candidate) = locate::for_redis_key(catalog, name) else { continue };
            if locate::is_wanted(catalog, &candidate.0, &wanted) && !self.returned.has(&candidate.0)
            {
                page.elsewhere.push(candidate);
            }
        }
        page.returned = page.elsewhere.len();
        Some(page)
    }

    async fn connect(&mut self, nodes: Vec<Target>) {
        let masters = if self.map.is_some() { Some(self.gaps.masters()) } else { None };
        for master in nodes {
            let mut own = Vec::new();
            if let Some(map) = &self.map {
                for slot in 0..hash_slot::SLOTS {
                    own.push(map.master(slot) == Some(&master));
                }
            }
            // If no replica answers, the master is read.
            let mut sources = Vec::new();
            if self.scan_options.from_replicas {
                sources.extend(self.client.replica_of(&master).await);
            }
            sources.push(master);
            let mut last = None;
            for node in sources {
                match NodePages::open(&node, &self.pattern, self.head, self.scan_options, masters)
                    .await
                {
                    Ok(mut pages) => {
                        pages.find_lengths(self.length);
                        pages.read_values(self.value_query());
                        pages.learn_heads(self.learned.clone());
                        if self.idle {
                            pages.read_idle_times();
                        }
                        self.open.push_back(ScannedNode { pages, own: own.clone() });
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

    /// Starts another round if slots have moved since the last one began, or are still being moved.
    async fn next_round(&mut self) -> Result<bool, StoreError> {
        let Some(before) = self.map.clone() else { return Ok(false) };
        // Without the current slot map, it is unknown which slots have moved.
        if let Err(error) = self.client.learn().await {
            self.gaps.miss_node(error);
            return Ok(false);
        }
        let epochs = self.list_moving_slots().await;
        let Some(now) = self.client.slot_map() else { return Ok(false) };
        let mut moved: HashSet<u16> = now.moved_since(&before).into_iter().collect();
        // A slot that left and came back has the same master, and the epoch of a node grows with
        // what it receives. The epoch does not tell which of its slots that were.
        for (id, (node, epoch)) in epochs {
            if self.epochs.insert(id, epoch) != Some(epoch) {
                moved.extend(now.slots_of(&node.to_string()));
            }
        }
        // A node that took over from an unreachable master has its keys.
        self.gaps.forget_replaced(&before, &now);
        // Only a node that received slots has keys that were not read yet.
        let mut nodes = Vec::new();
        for master in now.masters() {
            if moved.iter().any(|slot| now.master(*slot) == Some(master)) {
                nodes.push(master.clone());
            }
        }
        if nodes.is_empty() {
            return Ok(!self.names.is_empty());
        }
        if self.rounds == MAX_ROUNDS {
            // Slots that move now but were scanned before this round are complete. Slots that this
            // round scanned and that moved again are not.
            if let Some(scanned) = &self.moved
                && scanned.is_disjoint(&moved)
            {
                return Ok(!self.names.is_empty());
            }
            self.gaps.miss_node(StoreError::ErrorReply {
                target: nodes[0].to_string(),
                code: "MOVED".to_owned(),
                why: "slots go on moving from node to node".to_owned(),
                refused_at: RefusedAt::Command,
            });
            return Ok(false);
        }
        self.gaps.forget_slots(&moved, &now);
        self.map = Some(now);
        self.moved = Some(moved);
        self.rounds += 1;
        self.connect(nodes).await;
        Ok(true)
    }

    /// Asks both nodes of each moving slot for its keys. The node that the slot leaves is asked
    /// first, so that a key which moves in between is not missed. Returns each master, by its id,
    /// with its configuration epoch.
    async fn list_moving_slots(&mut self) -> BTreeMap<String, (Target, u64)> {
        let gaps = &self.gaps;
        let heard = self.client.ask_each_master(|node| gaps.has_missed(&[node.to_string()])).await;
        for error in heard.silent {
            if error.is_permission() {
                self.gaps.doubt(
                    "a slot may have moved unseen while it was read: to tell takes +cluster|nodes"
                        .to_owned(),
                );
            } else {
                self.gaps.miss_node(error);
            }
        }
        for MovingSlot { slot, from, to } in heard.moving {
            // Every round lists the slots that move, but a slot's keys are read once.
            if !self.listed.insert((slot, from.to_string())) {
                continue;
            }
            for node in [&from, &to] {
                let why = match self.client.keys_in_slot(node, slot, MAX_MOVING).await {
                    Ok(Some(names)) => {
                        self.names.extend(names);
                        continue;
                    }
                    Ok(None) => format!(
                        "has more than {MAX_MOVING} keys: some that moved while the others were \
                        read may be missing"
                    ),
                    Err(error) if error.is_permission() => {
                        "which keys it has is not known: to tell takes +cluster|countkeysinslot \
                        +cluster|getkeysinslot"
                            .to_owned()
                    }
                    Err(error) => {
                        self.gaps.miss_node(error);
                        continue;
                    }
                };
                self.gaps
                    .doubt(format!("slot {slot} is being moved from {from} to {to}, and {why}"));
            }
        }
        heard.epochs
    }

    /// Groups records whose Redis keys are on several nodes by the names of these nodes.
    pub(in crate::store) fn by_owners(
        &self,
        candidates: Vec<(Candidate, usize)>,
    ) -> BTreeMap<Vec<String>, Vec<(Candidate, usize)>> {
        let map = self.client.slot_map();
        let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for candidate in candidates {
            let mut owners = Vec::new();
            if let Some(map) = &map {
                for redis_key in &candidate.0.redis_keys {
                    if let Some(master) = map.master(hash_slot::of(redis_key)) {
                        owners.push(master.to_string());
                    }
                }
            }
            groups.entry(owners).or_default().push(candidate);
        }
        groups
    }

    /// True if one of these nodes has already been left out.
    pub(in crate::store) fn has_missed(&self, owners: &[String]) -> bool {
        self.gaps.has_missed(owners)
    }

    /// The error for everything that could not be read so far; `None` if there are no gaps.
    pub(in crate::store) fn gap(&self) -> Option<StoreError> {
        self.gaps.error()
    }

    /// Leaves out a record because of an error that concerns only this record, or its node if the
    /// node does not answer.
    ///
    /// # Errors
    /// The error, if there is only one server.
    pub(in crate::store) fn miss_record(
        &mut self,
        redis_key: &[u8],
        why: StoreError,
    ) -> Result<(), StoreError> {
        self.gaps.miss_record(redis_key, why)
    }
}

/// The records that a scan of a cluster has returned, because a slot that moves during the scan is
/// read on two nodes. Few of them are ever looked up, so a record takes 8 bytes, which are written
/// one after the other: the slot of its first Redis key, and 50 bits of its hash. If a slot has
/// a million records, the probability that two have the same hash is one in 2,000.
struct ReturnedRecords {
    hasher: RandomState,
    /// The records since the last one that was looked up.
    recent: Vec<u64>,
    /// The records before it, by their slots; empty until one is looked up.
    by_slot: Vec<Vec<u64>>,
    /// Slots that were read on two nodes, with their records.
    asked_for: HashMap<u16, HashSet<u64>>,
}

impl ReturnedRecords {
    fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            recent: Vec::new(),
            by_slot: Vec::new(),
            asked_for: HashMap::new(),
        }
    }

    /// Notes a record that is returned.
    fn note(&mut self, record: &Candidate) {
        let noted = self.noted(record);
        self.recent.push(noted);
    }

    /// True for a record that was returned.
    fn has(&mut self, record: &Candidate) -> bool {
        self.by_slot.resize(usize::from(hash_slot::SLOTS), Vec::new());
        for noted in self.recent.drain(..) {
            match self.asked_for.get_mut(&slot_of(noted)) {
                Some(records) => {
                    records.insert(noted);
                }
                None => self.by_slot[usize::from(slot_of(noted))].push(noted),
            }
        }
        let noted = self.noted(record);
        let before = &mut self.by_slot[usize::from(slot_of(noted))];
        let records = self.asked_for.entry(slot_of(noted)).or_default();
        records.extend(std::mem::take(before));
        records.contains(&noted)
    }

    /// True if a record of this record's slot was looked up, because the slot was read on two
    /// nodes.
    fn is_of_two_nodes(&self, record: &Candidate) -> bool {
        !self.asked_for.is_empty()
            && self.asked_for.contains_key(&hash_slot::of(&record.redis_keys[0]))
    }

    /// What is noted of a record.
    fn noted(&self, record: &Candidate) -> u64 {
        let first = &record.redis_keys[0];
        let slot = u64::from(hash_slot::of(first));
        (slot << SLOT_SHIFT) | (self.hasher.hash_one((first, &record.key)) >> (64 - SLOT_SHIFT))
    }
}

/// The bits of a noted record below its slot.
const SLOT_SHIFT: u32 = 50;

/// The slot of a noted record.
fn slot_of(noted: u64) -> u16 {
    (noted >> SLOT_SHIFT) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(key: &str) -> Candidate {
        let redis_keys =
            vec![format!("idem:{key}").into_bytes(), format!("done:{key}").into_bytes()];
        Candidate {
            key: key.as_bytes().to_vec(),
            redis_keys,
            schemas: Arc::from([]),
            is_most_specific: true,
        }
    }

    #[test]
    fn a_record_is_returned_once_before_and_after_its_slot_is_asked_for() {
        let mut returned = ReturnedRecords::new();
        returned.note(&record("{t}a"));
        assert!(!returned.is_of_two_nodes(&record("{t}a")));
        assert!(returned.has(&record("{t}a")) && !returned.has(&record("{t}b")));
        assert!(returned.is_of_two_nodes(&record("{t}b")));
        returned.note(&record("{t}b"));
        assert!(returned.has(&record("{t}b")) && returned.has(&record("{t}a")));
        assert!(!returned.has(&record("elsewhere")));
    }
}
