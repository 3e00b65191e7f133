//! Scans the keyspace of every node page by page, and returns the candidates with the parts of
//! their values that were read, or the records that these decode to.
//!
//! Commands use [`crate::scan::Scan`], which selects the records, and reports how the scan ended.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use tokio::time::{Instant, sleep_until};

use super::key_query::{KeyQuery, LengthQuery, ReadLimit};
use super::learned_heads::HeadSamples;
use super::page_size::MAX_REQUESTED;
use super::reader::{RecordReader, RedisKeys};
use super::scan_nodes::Nodes;
use super::scan_page::{FoundRecord, ScanPage, add_schemas};
use crate::domain::diagnosis::Thresholds;
use crate::domain::record::field_set::MAX_SCANNED;
use crate::domain::record::{
    Author, Candidate, Content, Extended, FieldSet, Observation, Record, TimeLeft, locate,
};
use crate::domain::schema::{Catalog, Schema};
use crate::domain::select::Coverage;
use crate::store::error::StoreError;

/// What decodes the records of a scan, and counts those that are left out.
pub struct RecordDecoder<'a> {
    pub catalog: &'a Catalog,
    pub thresholds: &'a Thresholds,
    /// The fields that the command selects by or shows. Values are read until these are known.
    pub needed: FieldSet,
    /// Counts the records that are left out, and those that contradict a default TTL.
    pub coverage: &'a mut Coverage,
}

/// How much of each value stays in memory once its record is decoded.
const MAX_KEPT_BYTES: usize = 64 << 10;

/// The parts of records that are read outside of a node's own connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadScope {
    /// The times at which their Redis keys expire.
    Deadlines,
    /// The beginnings of their values.
    Heads,
    /// Their lengths as well.
    HeadsAndLengths,
}

/// A scan of every node for the records of the catalog's scanned schemas.
pub struct KeyspaceScan {
    pub(crate) reader: RecordReader,
    nodes: Nodes,
    /// The minimum that is read of each value.
    head: ReadLimit,
    /// True to read the lengths of values that are longer than their head.
    lengths: bool,
    /// How many records the last page held.
    page_records: usize,
    /// The approximate number of Redis keys that the nodes iterated over.
    iterated: u64,
    /// Redis keys that SCAN returned, each counted once.
    returned: u64,
    /// The earliest time for the next page.
    due: Instant,
    /// The number of records that the Redis user may not read, and the reason; and whether any
    /// record could be read.
    forbidden: Option<(u64, StoreError)>,
    any_read: bool,
    /// Redis keys of known schemas that this command does not read, by schema.
    keys_of_other_schemas: BTreeMap<String, u64>,
    /// The schemas to which Redis keys belong that SCAN returned.
    schemas: Vec<Arc<Schema>>,
    extended: Extended,
}

impl KeyspaceScan {
    /// Starts at the beginning. Reads this many bytes of each value, or more if its schema needs it.
    pub async fn start(
        reader: RecordReader,
        catalog: &Catalog,
        head: ReadLimit,
    ) -> Result<Self, StoreError> {
        let client = reader.client().clone();
        match Nodes::open(client.clone(), catalog.scan_pattern(), head, reader.scan_options()).await
        {
            Ok(nodes) => Ok(Self {
                reader,
                nodes,
                head,
                lengths: true,
                page_records: 0,
                iterated: 0,
                returned: 0,
                due: Instant::now(),
                forbidden: None,
                any_read: false,
                keys_of_other_schemas: BTreeMap::new(),
                schemas: Vec::new(),
                extended: catalog.extended.clone(),
            }),
            Err(error) => Err(client.explain_error(error).await),
        }
    }

    /// Leaves unknown the lengths of values that are longer than their head, until `read_lengths`
    /// reads the necessary ones. Reading all lengths takes a server a sixth more time.
    #[must_use]
    pub fn without_lengths(mut self) -> Self {
        self.lengths = false;
        self
    }

    /// Also reads idle times, which takes one more command for each Redis key.
    #[must_use]
    pub fn with_idle_times(mut self) -> Self {
        self.nodes.read_idle_times();
        self
    }

    /// Reads only deadlines, which touches no key. [`KeyspaceScan::next_deadlines`] then returns
    /// the pages, and [`KeyspaceScan::read`] the values.
    #[must_use]
    pub fn deadlines_first(mut self) -> Self {
        self.nodes.read_deadlines_alone();
        self
    }

    /// Sets the minimum that the following pages read of each value.
    pub fn set_first_read(&mut self, head: ReadLimit) {
        self.head = head;
        self.nodes.set_first_read(head);
    }

    /// Reads the lengths of these values from the last page. If they are a large part of the page,
    /// the following pages find out all lengths.
    pub async fn read_lengths(
        &mut self,
        seen: impl Iterator<Item = &mut Observation>,
    ) -> Result<(), StoreError> {
        let mut cut = Vec::new();
        for seen in seen {
            if seen.keys.iter().any(|key| !key.content.is_whole()) {
                cut.push(seen);
            }
        }
        self.reader.read_lengths(cut.iter_mut().map(|seen| &mut **seen)).await?;
        let keys = cut.iter().flat_map(|seen| &seen.keys);
        let sizes: Vec<_> = keys.map(|key| key.content.size()).collect();
        self.nodes.find_lengths(LengthQuery::for_pages_like(self.page_records, cut.len(), &sizes));
        Ok(())
    }

    /// The bytes of memory that each of these records from the last page takes; `None` if the
    /// server does not report it.
    ///
    /// # Errors
    /// The errors of any read.
    pub async fn read_memory(
        &mut self,
        groups: &[RedisKeys],
    ) -> Result<Vec<Option<u64>>, StoreError> {
        let read = self.reader.read_each(groups, ReadLimit::Bytes(0)).await?;
        let mut memory = Vec::with_capacity(groups.len());
        for (redis_keys, seen) in groups.iter().zip(read) {
            memory.push(match seen {
                Ok(seen) => memory_of(&seen),
                Err(error) if error.is_permission() => None,
                Err(error) => {
                    self.nodes.miss_record(&redis_keys[0], error)?;
                    None
                }
            });
        }
        Ok(memory)
    }

    /// Reads more of these records. A record that can no longer be read is left out and reported.
    async fn read_longer(
        &mut self,
        pending: Vec<PendingRead>,
    ) -> Result<Vec<ReadCandidate>, StoreError> {
        let mut longer = Vec::with_capacity(pending.len());
        let mut pending = pending.into_iter().peekable();
        while let Some(first) = pending.next() {
            // As many as the limit of the replies permits.
            let mut bytes = first.max_bytes();
            let mut some = vec![first.candidate];
            while let Some(next) = pending.peek() {
                bytes += next.max_bytes();
                if bytes > MAX_REQUESTED {
                    break;
                }
                some.extend(pending.next().map(|next| next.candidate));
            }
            let keys: Vec<_> = some.iter().map(|candidate| candidate.redis_keys.clone()).collect();
            let read = self.reader.read_each(&keys, ReadLimit::Bytes(MAX_SCANNED)).await?;
            for (candidate, seen) in some.into_iter().zip(read) {
                match seen {
                    Ok(seen) => longer.push(ReadCandidate { candidate, seen, is_further: true }),
                    Err(error) => self.leave_out(&candidate.redis_keys[0], error)?,
                }
            }
        }
        Ok(longer)
    }

    /// Leaves out a record that could not be read. Records that the Redis user may not read are
    /// counted. Any other error belongs to the record, or to its node of a cluster, and is reported
    /// at the end.
    ///
    /// # Errors
    /// The error, if it concerns more than that.
    fn leave_out(&mut self, redis_key: &[u8], why: StoreError) -> Result<(), StoreError> {
        if why.is_permission() && !why.lacks_slot_map_right() {
            self.forbidden.get_or_insert((0, why)).0 += 1;
            return Ok(());
        }
        self.nodes.miss_record(redis_key, why)
    }

    /// The parts of a cluster that could not be read so far: nodes, slots that no node serves, and
    /// records. The scan ends with this error; a caller that stops earlier must ask for it.
    pub fn gap(&self) -> Option<StoreError> {
        self.nodes.gap()
    }

    /// A warning about records that the Redis user may not read, and that may belong to other
    /// programs; `None` if there are none.
    pub fn forbidden(&self) -> Option<String> {
        let (count, why) = self.forbidden.as_ref()?;
        let records = if *count == 1 { "record was" } else { "records were" };
        Some(format!("{count} {records} skipped: {why}"))
    }

    /// The approximate number of Redis keys that the nodes iterated over so far, including those
    /// with other names.
    pub fn keys_iterated(&self) -> u64 {
        self.iterated
    }

    /// Redis keys returned so far that belong to known schemas which this command does not read, by
    /// schema.
    pub fn keys_of_other_schemas(&self) -> &BTreeMap<String, u64> {
        &self.keys_of_other_schemas
    }

    /// The schemas to which Redis keys belong that SCAN returned so far.
    pub fn schemas_with_keys(&self) -> &[Arc<Schema>] {
        &self.schemas
    }

    /// How many Redis keys SCAN returned so far, each counted once.
    pub fn keys_returned(&self) -> u64 {
        self.returned
    }

    /// The records of the next page that belong to the scanned schemas and whose idempotency keys
    /// `wanted` accepts; the page may be empty. `None` at the end. After an error, or if the caller
    /// drops the future, the scan cannot continue.
    pub async fn next_observations(
        &mut self,
        catalog: &Catalog,
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Option<Vec<(Candidate, Observation)>>, StoreError> {
        let Some(page) = self.next_node_page(catalog, wanted).await? else { return Ok(None) };
        let mut records: Vec<_> = page.found.into_iter().filter_map(existing).collect();
        records.extend(self.read_elsewhere(page.elsewhere, ReadScope::HeadsAndLengths).await?);
        self.reread_pairs(&mut records).await?;
        self.page_records = records.len();
        self.any_read |= !records.is_empty();
        self.read_types(&mut records).await?;
        if self.lengths {
            self.read_lengths(records.iter_mut().map(|(_, seen)| seen)).await?;
        }
        self.nodes.note_returned(records.iter().map(|(candidate, _)| candidate));
        Ok(Some(records))
    }

    /// The records of the next page whose idempotency keys `wanted` accepts, each under the first
    /// schema that wrote it. The page may be empty; `None` at the end. If the beginning of a value
    /// does not decide what it is, more of it is read.
    ///
    /// # Errors
    /// The errors of any read. After an error, or if the caller drops the future, the scan cannot
    /// continue.
    pub async fn next_records(
        &mut self,
        decoder: RecordDecoder<'_>,
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Option<Vec<Record>>, StoreError> {
        match self.next_observations(decoder.catalog, wanted).await? {
            Some(page) => Ok(Some(self.decode(decoder, page, wanted).await?)),
            None => self.require_any_read().map(|()| None),
        }
    }

    /// # Errors
    /// The Redis user may read none of the records, so that it is unknown whether there are any.
    fn require_any_read(&self) -> Result<(), StoreError> {
        match &self.forbidden {
            Some((_, why)) if !self.any_read => Err(why.clone()),
            _ => Ok(()),
        }
    }

    /// The records of these candidates, each read as [`KeyspaceScan::next_records`] reads those of
    /// a page.
    ///
    /// # Errors
    /// The errors of any read.
    pub async fn read_records(
        &mut self,
        decoder: RecordDecoder<'_>,
        candidates: Vec<Candidate>,
    ) -> Result<Vec<Record>, StoreError> {
        let read = self.read(candidates).await?;
        self.decode(decoder, read, &|_: &[u8]| true).await
    }

    /// The records of candidates that were read. This reads more of a value if its beginning does
    /// not decide which record it is.
    async fn decode(
        &mut self,
        decoder: RecordDecoder<'_>,
        page: Vec<(Candidate, Observation)>,
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Vec<Record>, StoreError> {
        let RecordDecoder { catalog, thresholds, needed, coverage } = decoder;
        let mut records = Vec::with_capacity(page.len());
        // The page comes first, then the candidates of which more was read.
        let mut page = page.into_iter();
        let mut longer = Vec::new().into_iter();
        let mut pending = Vec::new();
        let mut learning = HeadSamples::default();
        loop {
            let next = match page.next() {
                Some((candidate, seen)) => {
                    Some(ReadCandidate { candidate, seen, is_further: false })
                }
                None => longer.next(),
            };
            let Some(ReadCandidate { candidate, seen, is_further }) = next else {
                if pending.is_empty() {
                    break;
                }
                longer = self.read_longer(std::mem::take(&mut pending)).await?.into_iter();
                continue;
            };
            let is_most_specific = candidate.is_most_specific;
            let Some(mut record) = locate::first_record(catalog, candidate, seen, thresholds)
            else {
                continue;
            };
            if !is_further && lacks(catalog, &record, is_most_specific, needed) {
                pending.push(PendingRead::of(catalog, record, is_most_specific));
                continue;
            }
            if is_most_specific {
                learning.add(&record, is_further, |part| {
                    !lacks(catalog, part, is_most_specific, needed)
                });
            }
            // A page may have hundreds of records, so that no more than this stays in memory.
            if is_further {
                record.keep_at_most(MAX_KEPT_BYTES);
            }
            // A record that was found at another schema's is read only once.
            let of_other = if is_most_specific || !is_further {
                locate::candidate_of_other(catalog, &record)
            } else {
                None
            };
            if holds(catalog, is_most_specific, &record) && wanted(&record.key) {
                let present = record.seen.keys.iter().filter(|key| !key.content.is_absent());
                // The schema that owns the lock reports it.
                let is_reported = matches!(record.author, Author::LockOf(_))
                    && of_other.is_some()
                    && present.count() == 1;
                if !is_reported && coverage.keeps(&record) {
                    add_schemas(&mut self.schemas, std::slice::from_ref(&record.schema));
                    records.push(record);
                }
            }
            if let Some(candidate) = of_other {
                pending.push(PendingRead { candidate, sizes: Vec::new() });
            }
        }
        self.nodes.learn_heads(learning.longer_heads());
        Ok(records)
    }

    /// The expiry of each Redis key of the next page's records, `None` for an absent key. This is
    /// for scans that read [deadlines first](KeyspaceScan::deadlines_first). Otherwise like
    /// [`KeyspaceScan::next_observations`].
    pub async fn next_deadlines(
        &mut self,
        catalog: &Catalog,
    ) -> Result<Option<Vec<(Candidate, Vec<Option<TimeLeft>>)>>, StoreError> {
        let Some(page) = self.next_node_page(catalog, &|_| true).await? else { return Ok(None) };
        let mut records: Vec<_> = page.found.into_iter().filter_map(existing).collect();
        records.extend(self.read_elsewhere(page.elsewhere, ReadScope::Deadlines).await?);
        self.any_read |= !records.is_empty();
        self.nodes.note_returned(records.iter().map(|(candidate, _)| candidate));
        let mut deadlines = Vec::with_capacity(records.len());
        for (candidate, seen) in records {
            let mut expiries = Vec::with_capacity(seen.keys.len());
            for key in &seen.keys {
                let is_present = !key.content.is_absent();
                expiries.push(if is_present { Some(key.time_left) } else { None });
            }
            deadlines.push((candidate, expiries));
        }
        Ok(Some(deadlines))
    }

    /// Reads the values of these records, if they still exist. A record that cannot be read is left
    /// out and reported.
    pub async fn read(
        &mut self,
        candidates: Vec<Candidate>,
    ) -> Result<Vec<(Candidate, Observation)>, StoreError> {
        sleep_until(self.due).await;
        self.wait_after(candidates.len());
        let candidates = candidates.into_iter().map(|candidate| (candidate, 0)).collect();
        let mut records = self.read_elsewhere(candidates, ReadScope::Heads).await?;
        self.reread_pairs(&mut records).await?;
        self.read_types(&mut records).await?;
        Ok(records)
    }

    /// Reads the types of values that are not strings. Such values are rare, and their type is part
    /// of the finding.
    async fn read_types(&self, records: &mut [(Candidate, Observation)]) -> Result<(), StoreError> {
        let mut others = Vec::new();
        for (_, seen) in records {
            if seen.keys.iter().any(|key| matches!(key.content, Content::Other(_))) {
                others.push(seen);
            }
        }
        self.reader.read_lengths(others.into_iter()).await
    }

    /// The next page of a node; `None` at the end.
    async fn next_node_page(
        &mut self,
        catalog: &Catalog,
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Option<ScanPage>, StoreError> {
        sleep_until(self.due).await;
        let page = self.nodes.next_page(catalog, wanted).await;
        let Some(page) = self.explained(page).await? else {
            return self.require_any_read().map(|()| None);
        };
        for (candidate, key_index, seen) in &page.found {
            if let Err(why) = seen {
                self.leave_out(&candidate.redis_keys[*key_index], why.clone())?;
            }
        }
        for (schema, count) in &page.keys_of_other_schemas {
            *self.keys_of_other_schemas.entry(schema.clone()).or_default() += count;
        }
        add_schemas(&mut self.schemas, &page.schemas);
        self.iterated += page.iterated as u64;
        self.returned += page.returned as u64;
        self.wait_after(page.new_keys);
        Ok(Some(page))
    }

    /// Delays the next page according to `--rate`, after this many Redis keys.
    fn wait_after(&mut self, keys: usize) {
        if let Some(rate) = self.reader.scan_options().rate {
            self.due = self.due.max(Instant::now()) + rate.time_for(keys);
        }
    }

    /// Reads records whose Redis keys are on several nodes of a cluster, each key on its node, and
    /// records that are not strings. A record that cannot be read is left out and reported at the
    /// end; so is a node that does not answer.
    async fn read_elsewhere(
        &mut self,
        candidates: Vec<(Candidate, usize)>,
        what: ReadScope,
    ) -> Result<Vec<(Candidate, Observation)>, StoreError> {
        let mut records = Vec::new();
        for (owners, candidates) in self.nodes.by_owners(candidates) {
            // Each of these records would wait for the same timeout.
            if self.nodes.has_missed(&owners) {
                continue;
            }
            let wanted: Vec<_> =
                candidates.iter().map(|(candidate, _)| candidate.redis_keys.clone()).collect();
            let head = self.head_for(candidates.iter().map(|(candidate, _)| candidate));
            let needs_script =
                candidates.iter().any(|(candidate, _)| candidate.needs_script(&self.extended));
            let read = match what {
                ReadScope::Deadlines => {
                    self.reader.read_query(&wanted, KeyQuery::deadlines()).await
                }
                // Only this call of the script reads idle times.
                ReadScope::HeadsAndLengths if self.nodes.idle => {
                    self.reader.read_each(&wanted, head).await?
                }
                ReadScope::Heads | ReadScope::HeadsAndLengths if needs_script => {
                    self.reader.read_many(&wanted, head).await?
                }
                ReadScope::Heads => self.reader.read_query(&wanted, KeyQuery::heads(head)).await,
                ReadScope::HeadsAndLengths => self.reader.read_by_commands(&wanted, head).await?,
            };
            for ((candidate, key_index), seen) in candidates.into_iter().zip(read) {
                match seen {
                    Ok(seen) => records.extend(existing((candidate, key_index, Ok(seen)))),
                    Err(error) => self.leave_out(&candidate.redis_keys[key_index], error)?,
                }
            }
        }
        Ok(records)
    }

    /// How much of these records' values is read: at least the part that decides what they are.
    fn head_for<'a>(&self, candidates: impl Iterator<Item = &'a Candidate>) -> ReadLimit {
        let ReadLimit::Bytes(least) = self.head else { return ReadLimit::Whole };
        let needed = candidates.map(Candidate::head_bytes).max().unwrap_or(0);
        ReadLimit::Bytes(needed.max(least))
    }

    /// Explains an error before anything was read, because a reply outside the protocol may not be
    /// from Redis.
    async fn explained<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        match result {
            Err(error) if self.returned == 0 => {
                Err(self.reader.client().explain_error(error).await)
            }
            result => result,
        }
    }

    /// Reads records again, atomically, if they seem to have several of their Redis keys. If these
    /// were read one after the other, a record that completed in between looks the same.
    async fn reread_pairs(
        &mut self,
        records: &mut Vec<(Candidate, Observation)>,
    ) -> Result<(), StoreError> {
        let mut pairs = Vec::new();
        for (index, (_, seen)) in records.iter().enumerate() {
            let present = seen.keys.iter().filter(|key| !key.content.is_absent()).count();
            if present > 1 {
                pairs.push(index);
            }
        }
        if pairs.is_empty() {
            return Ok(());
        }
        let wanted: Vec<_> =
            pairs.iter().map(|index| records[*index].0.redis_keys.clone()).collect();
        let head = self.head_for(pairs.iter().map(|index| &records[*index].0));
        let read = self.reader.read_each(&wanted, head).await?;
        let mut unreadable = HashSet::new();
        for (index, seen) in pairs.into_iter().zip(read) {
            match seen {
                Ok(seen) => records[index].1 = seen,
                // The Redis user may not run scripts, so the replies to the plain commands are
                // kept.
                Err(error) if error.is_permission() && !error.lacks_slot_map_right() => {}
                Err(error) => {
                    self.nodes.miss_record(&records[index].0.redis_keys[0], error)?;
                    unreadable.insert(index);
                }
            }
        }
        // `retain` visits the records in order, so `index` is the index of each.
        let mut index = 0;
        records.retain(|(_, seen)| {
            let is_unreadable = unreadable.contains(&index);
            index += 1;
            !seen.is_absent() && !is_unreadable
        });
        Ok(())
    }
}

/// The memory of a record's existing Redis keys; `None` if the server does not report it for one of
/// them.
fn memory_of(seen: &Observation) -> Option<u64> {
    let mut bytes = 0;
    for key in &seen.keys {
        if !key.content.is_absent() {
            bytes += key.memory?;
        }
    }
    Some(bytes)
}

/// A candidate and what was read of it.
struct ReadCandidate {
    candidate: Candidate,
    seen: Observation,
    /// True for the second read, false for that of a page.
    is_further: bool,
}

/// A candidate of which more is to be read.
struct PendingRead {
    candidate: Candidate,
    /// The sizes of its values, as far as they are known.
    sizes: Vec<Option<u64>>,
}

impl PendingRead {
    fn of(catalog: &Catalog, record: Record, is_most_specific: bool) -> Self {
        let sizes = record.seen.keys.iter().map(|key| key.content.size()).collect();
        let candidate = if is_most_specific {
            with_every_schema(catalog, record)
        } else {
            Candidate { is_most_specific, ..Candidate::from(record) }
        };
        Self { candidate, sizes }
    }

    /// The most bytes that reading it can bring.
    fn max_bytes(&self) -> usize {
        let mut bytes = 0;
        for index in 0..self.candidate.redis_keys.len() {
            let size = self.sizes.get(index).copied().flatten();
            let size = size.and_then(|size| usize::try_from(size).ok()).unwrap_or(MAX_SCANNED);
            bytes += size.min(MAX_SCANNED);
        }
        bytes
    }
}

/// True if the part of a record's values that was not read decides whose record it is, or has a
/// needed field.
fn lacks(catalog: &Catalog, record: &Record, is_most_specific: bool, needed: FieldSet) -> bool {
    if !is_most_specific {
        // Such a record counts only if its bytes identify it.
        return locate::may_be_distinctive(record);
    }
    let is_decided = !record.is_undecided() && !record.is_endless_lock_in_part();
    !is_decided || locate::may_be_lock_of_another(catalog, record) || record.lacks(needed)
}

/// True if the candidate holds a record. One that is not the most specific holds a record only if
/// its bytes identify it.
fn holds(catalog: &Catalog, is_most_specific: bool, record: &Record) -> bool {
    is_most_specific || locate::is_of_less_specific_schema(catalog, record)
}

/// The record of a candidate, unless it is absent. A scan finds a record with each of its Redis
/// keys, so that it counts only for the first key that exists.
fn existing((candidate, key_index, seen): FoundRecord) -> Option<(Candidate, Observation)> {
    // SCAN also returns Redis keys outside the user's key patterns. They cannot be read, and do not
    // concern this user.
    let seen = seen.ok()?;
    let is_found_before = seen.keys[..key_index].iter().any(|key| !key.content.is_absent());
    if seen.is_absent() || is_found_before { None } else { Some((candidate, seen)) }
}

/// The candidate of a record, with every schema that keeps records under its Redis keys.
fn with_every_schema(catalog: &Catalog, record: Record) -> Candidate {
    let candidate = Candidate::from(record);
    match locate::for_redis_key(catalog, &candidate.redis_keys[0]) {
        Some((same, _)) if same.redis_keys == candidate.redis_keys => same,
        _ => candidate,
    }
}
