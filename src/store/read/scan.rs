//! The scan engine: the keyspace of every node, page by page, decoded as far as its records are told apart.

use std::collections::HashSet;

use tokio::time::{Instant, sleep_until};

use super::reader::{ReadLimit, Reader, Seen};
use super::scan_nodes::Nodes;
use super::scan_page::{Found, Page};
use crate::domain::record::{Candidate, Content, Expiry, Observation, SeenKey};
use crate::domain::schema::Catalog;
use crate::store::error::StoreError;

/// What is read of a value where its beginning does not tell what it is.
const LONGER: ReadLimit = ReadLimit::Bytes(64 * 1024);

/// How many such values are read at a time: memory stays flat.
const LONGER_READS: usize = 50;

/// What is read of records that no node's own connection reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// When their Redis keys expire.
    Deadlines,
    /// The beginnings of their values.
    Heads,
    /// Their lengths as well.
    HeadsAndLengths,
}

/// A walk over every node for the records of the catalog's scanned schemas.
pub struct Walk {
    reader: Reader,
    nodes: Nodes,
    head: ReadLimit,
    lengths: bool,
    page_records: usize,
    scanned: u64,
    looked_at: u64,
    /// When the next page may be looked at.
    due: Instant,
    /// Records that the user may not read, and why not; and whether any could be read.
    forbidden: Option<(u64, StoreError)>,
    any_read: bool,
}

impl Walk {
    /// Starts at the beginning. Of each value that many bytes are read, and more where its schema needs them to tell
    /// what it is.
    pub async fn start(reader: Reader, catalog: &Catalog, head: ReadLimit) -> Result<Self, StoreError> {
        let client = reader.client().clone();
        match Nodes::open(client.clone(), catalog.scan_pattern(), head, reader.scan_options()).await {
            Ok(nodes) => Ok(Self {
                reader,
                nodes,
                head,
                lengths: true,
                page_records: 0,
                scanned: 0,
                looked_at: 0,
                due: Instant::now(),
                forbidden: None,
                any_read: false,
            }),
            Err(error) => Err(client.look_closer(error).await),
        }
    }

    /// Leaves the lengths of values unknown that are longer than their head, until [`Walk::measure`] asks for those that
    /// matter: it takes a server a sixth more to tell them all.
    #[must_use]
    pub fn without_lengths(mut self) -> Self {
        self.lengths = false;
        self
    }

    /// Asks for deadlines alone, which touches no key: the pages come from [`Walk::next_deadlines`], and values from
    /// [`Walk::read`].
    #[must_use]
    pub fn deadlines_first(mut self) -> Self {
        self.nodes.read_deadlines_alone();
        self
    }

    /// The least that the pages to come read of each value.
    pub fn bring_heads(&mut self, head: ReadLimit) {
        self.head = head;
        self.nodes.bring_heads(head);
    }

    /// Makes the lengths of these values known, which the last page held. Where a good part of a page is asked for, the
    /// pages after it bring the lengths along.
    pub async fn measure(&mut self, seen: impl Iterator<Item = &mut Observation>) -> Result<(), StoreError> {
        let cut = |seen: &&mut Observation| seen.keys.iter().any(|key| !key.content.is_whole());
        let wanted: Vec<_> = seen.filter(cut).collect();
        self.nodes.bring_lengths(wanted.len() * 4 > self.page_records);
        self.reader.measure(wanted.into_iter()).await
    }

    /// Bytes of memory that each of these records takes, which the last page held; `None` where the server does not say.
    ///
    /// # Errors
    /// As every read.
    pub async fn weigh(&mut self, records: &[Vec<Vec<u8>>]) -> Result<Vec<Option<u64>>, StoreError> {
        let present = |key: &&SeenKey| key.content != Content::Absent;
        let weight = |seen: &Observation| seen.keys.iter().filter(present).map(|key| key.memory).sum();
        let seen = self.reader.observe_each(records, ReadLimit::Bytes(0)).await?;
        let mut weights = Vec::with_capacity(records.len());
        for (redis_keys, seen) in records.iter().zip(seen) {
            weights.push(match seen {
                Ok(seen) => weight(&seen),
                Err(error) if error.is_permission() => None,
                Err(error) => {
                    self.nodes.miss_record(&redis_keys[0], error)?;
                    None
                }
            });
        }
        Ok(weights)
    }

    /// Reads more of these records, which the last page held. A record that cannot be read any more is left out and told.
    pub async fn read_on(&mut self, records: &[Vec<Vec<u8>>]) -> Result<Vec<Seen>, StoreError> {
        let mut seen = Vec::with_capacity(records.len());
        for some in records.chunks(LONGER_READS) {
            for (redis_keys, one) in some.iter().zip(self.reader.observe_each(some, LONGER).await?) {
                if let Err(error) = &one {
                    self.leave_out(&redis_keys[0], error.clone())?;
                }
                seen.push(one);
            }
        }
        Ok(seen)
    }

    /// Leaves out a record that could not be read. What the user may not read is counted; any other error belongs to the
    /// record, or to its node of a cluster, and is told at the end.
    ///
    /// # Errors
    /// The error, if it concerns more than that.
    fn leave_out(&mut self, redis_key: &[u8], why: StoreError) -> Result<(), StoreError> {
        if why.is_permission() && !why.wants_slots() {
            self.forbidden.get_or_insert((0, why)).0 += 1;
            return Ok(());
        }
        self.nodes.miss_record(redis_key, why)
    }

    /// What could not be read of a cluster so far: nodes, slots that no node serves, and records. At the end of the walk this
    /// is its error; whoever ends earlier asks.
    pub fn gap(&self) -> Option<StoreError> {
        self.nodes.gap()
    }

    /// That records were left out which the user may not read, where there are some: they may be somebody else's.
    pub fn forbidden(&self) -> Option<String> {
        let (count, why) = self.forbidden.as_ref()?;
        let records = if *count == 1 { "record was" } else { "records were" };
        Some(format!("{count} {records} left out: {why}"))
    }

    /// About how many Redis keys the nodes went through so far, those of other names included.
    pub fn scanned(&self) -> u64 {
        self.scanned
    }

    /// Redis keys that were looked at so far.
    pub fn looked_at(&self) -> u64 {
        self.looked_at
    }

    /// What the next page holds of the scanned schemas' records, whose idempotency keys `wanted` lets through; perhaps
    /// nothing. `None` at the end. After an error, or when it is given up in between, the walk cannot go on.
    pub async fn next(
        &mut self,
        catalog: &Catalog,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<Vec<(Candidate, Observation)>>, StoreError> {
        let Some(page) = self.page(catalog, wanted).await? else { return Ok(None) };
        let mut records: Vec<_> = page.found.into_iter().filter_map(record).collect();
        records.extend(self.read_elsewhere(page.elsewhere, Wanted::HeadsAndLengths).await?);
        self.settle(&mut records).await?;
        self.page_records = records.len();
        self.any_read |= !records.is_empty();
        // What is no string is rare, and its type is part of what is wrong with it.
        self.reader.measure(records.iter_mut().map(|(_, seen)| seen).filter(|seen| has_another_type(seen))).await?;
        if self.lengths {
            self.measure(records.iter_mut().map(|(_, seen)| seen)).await?;
        }
        self.nodes.hand_out(records.iter().map(|(candidate, _)| candidate));
        Ok(Some(records))
    }

    /// When the Redis keys of the next page's records expire, `None` for one that is not there, of a walk that asks for
    /// [deadlines first](Walk::deadlines_first). Else as [`Walk::next`].
    pub async fn next_deadlines(
        &mut self,
        catalog: &Catalog,
    ) -> Result<Option<Vec<(Candidate, Vec<Option<Expiry>>)>>, StoreError> {
        let Some(page) = self.page(catalog, |_| true).await? else { return Ok(None) };
        let mut records: Vec<_> = page.found.into_iter().filter_map(record).collect();
        records.extend(self.read_elsewhere(page.elsewhere, Wanted::Deadlines).await?);
        self.any_read |= !records.is_empty();
        self.nodes.hand_out(records.iter().map(|(candidate, _)| candidate));
        let expiry = |key: &SeenKey| (key.content != Content::Absent).then_some(key.expiry);
        let mut deadlines = Vec::with_capacity(records.len());
        for (candidate, seen) in records {
            deadlines.push((candidate, seen.keys.iter().map(expiry).collect()));
        }
        Ok(Some(deadlines))
    }

    /// Reads the values of these records, as far as they are there. One that cannot be read is left out and told.
    pub async fn read(&mut self, places: Vec<Candidate>) -> Result<Vec<(Candidate, Observation)>, StoreError> {
        sleep_until(self.due).await;
        self.wait_after(places.len());
        let places = places.into_iter().map(|candidate| (candidate, 0)).collect();
        let mut records = self.read_elsewhere(places, Wanted::Heads).await?;
        self.settle(&mut records).await?;
        self.reader.measure(records.iter_mut().map(|(_, seen)| seen).filter(|seen| has_another_type(seen))).await?;
        Ok(records)
    }

    /// The next page as a node gives it; `None` at the end.
    async fn page(&mut self, catalog: &Catalog, wanted: impl Fn(&[u8]) -> bool) -> Result<Option<Page>, StoreError> {
        sleep_until(self.due).await;
        let page = self.nodes.next(catalog, wanted).await;
        let Some(page) = self.explained(page).await? else {
            // Who may read nothing of what is there must not take it for nothing.
            return match &self.forbidden {
                Some((_, why)) if !self.any_read => Err(why.clone()),
                _ => Ok(None),
            };
        };
        for (candidate, role, seen) in &page.found {
            if let Err(why) = seen {
                self.leave_out(&candidate.redis_keys[*role], why.clone())?;
            }
        }
        self.scanned += page.scanned as u64;
        self.looked_at += page.looked_at as u64;
        self.wait_after(page.read);
        Ok(Some(page))
    }

    /// Lets the next page wait as long as `--rate` has it after this many Redis keys.
    fn wait_after(&mut self, keys: usize) {
        if let Some(rate) = self.reader.scan_options().rate {
            self.due = self.due.max(Instant::now()) + rate.time_for(keys);
        }
    }

    /// Reads records that no node of a cluster serves alone, each Redis key where it is, and those that hold no strings. A record
    /// that cannot be read is left out, and named at the end; so is a node that does not answer.
    async fn read_elsewhere(
        &mut self,
        places: Vec<(Candidate, usize)>,
        what: Wanted,
    ) -> Result<Vec<(Candidate, Observation)>, StoreError> {
        let mut records = Vec::new();
        for (owners, places) in self.nodes.by_owners(places) {
            if self.nodes.has_missed(&owners) {
                continue;
            }
            let wanted: Vec<_> = places.iter().map(|(candidate, _)| candidate.redis_keys.clone()).collect();
            let head = self.head_for(places.iter().map(|(candidate, _)| candidate));
            // Plain commands tell neither a hash in part, nor the server's time.
            let by_script = places.iter().any(|(candidate, _)| candidate.keeps_collections() || candidate.tells_time());
            let read = match what {
                Wanted::Deadlines => self.reader.peek_deadlines(&wanted).await,
                Wanted::Heads | Wanted::HeadsAndLengths if by_script => self.reader.observe_many(&wanted, head).await?,
                Wanted::Heads => self.reader.peek_each(&wanted, head).await,
                Wanted::HeadsAndLengths => self.reader.peek(&wanted, head).await?,
            };
            for ((candidate, role), seen) in places.into_iter().zip(read) {
                match seen {
                    Ok(seen) => records.extend(record((candidate, role, Ok(seen)))),
                    Err(error) => self.leave_out(&candidate.redis_keys[role], error)?,
                }
            }
        }
        Ok(records)
    }

    /// How much is read of these records' values: no less than tells what they are.
    fn head_for<'a>(&self, candidates: impl Iterator<Item = &'a Candidate>) -> ReadLimit {
        match self.head {
            ReadLimit::Bytes(bytes) => {
                ReadLimit::Bytes(candidates.map(Candidate::head_bytes).max().unwrap_or(0).max(bytes))
            }
            ReadLimit::Whole => ReadLimit::Whole,
        }
    }

    /// What did not speak the protocol before anything was read may be no Redis at all.
    async fn explained<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        match result {
            Err(error) if self.looked_at == 0 => Err(self.reader.client().look_closer(error).await),
            result => result,
        }
    }

    /// Reads records again, atomically, that seem to have both a lock and a result: read one after the other, a record
    /// that completed in between looks like that too.
    async fn settle(&mut self, records: &mut Vec<(Candidate, Observation)>) -> Result<(), StoreError> {
        let both =
            |seen: &Observation| seen.keys.len() > 1 && seen.keys.iter().all(|key| key.content != Content::Absent);
        let doubtful: Vec<_> = (0..records.len()).filter(|index| both(&records[*index].1)).collect();
        if doubtful.is_empty() {
            return Ok(());
        }
        let wanted: Vec<_> = doubtful.iter().map(|index| records[*index].0.redis_keys.clone()).collect();
        let head = self.head_for(doubtful.iter().map(|index| &records[*index].0));
        let seen = self.reader.observe_each(&wanted, head).await?;
        let mut unread = HashSet::new();
        for (index, seen) in doubtful.into_iter().zip(seen) {
            match seen {
                Ok(seen) => records[index].1 = seen,
                // The user may run no script: what plain commands read stays.
                Err(error) if error.is_permission() && !error.wants_slots() => {}
                Err(error) => {
                    self.nodes.miss_record(&records[index].0.redis_keys[0], error)?;
                    unread.insert(index);
                }
            }
        }
        let mut index = 0;
        records.retain(|(_, seen)| {
            index += 1;
            !seen.is_absent() && !unread.contains(&(index - 1))
        });
        Ok(())
    }
}

fn has_another_type(seen: &Observation) -> bool {
    seen.keys.iter().any(|key| matches!(key.content, Content::Other(_)))
}

/// The record, unless it went meanwhile. One with two Redis keys is found twice by a scan: it is the first's where
/// there is one.
fn record((candidate, role, seen): Found) -> Option<(Candidate, Observation)> {
    // A Redis key outside the user's pattern shows in SCAN, but cannot be read: it is not this user's business.
    let seen = seen.ok()?;
    let found_by_an_earlier_key = seen.keys[..role].iter().any(|key| key.content != Content::Absent);
    (!seen.is_absent() && !found_by_an_earlier_key).then_some((candidate, seen))
}
