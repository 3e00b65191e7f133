//! One node's keyspace page by page: while a page's records are read, the next one is on its way.
//!
//! Requests go out as SCAN, reads of the page before, SCAN, reads ... on one connection. The server always has a page to
//! work at while the one before it is decoded and shown.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::cursor::ScanCursor;
use super::page_size::{PageSizer, ScanOptions};
use super::reader::{ReadLimit, Seen};
use super::reads::{self, KeyReads};
use super::small_hashes::{self, SmallHashes};
use crate::domain::hash_slot;
use crate::domain::record::{Candidate, locate};
use crate::domain::schema::Catalog;
use crate::store::cluster::deadlines::{TRIED, is_known as knows_pexpiretime};
use crate::store::connection::{ClientOption, Connection, Target, Token, pack};
use crate::store::error::StoreError;

/// A record that a page holds: where it is, by which of its Redis keys it was found, what was read.
pub(in crate::store) type FoundRecord = (Candidate, usize, Seen);

type Places = Vec<(Candidate, usize)>;

#[derive(Default)]
pub(in crate::store) struct ScanPage {
    /// About how many Redis keys the node went through for the page, those of other names included.
    pub(in crate::store) passed: usize,
    /// Redis keys that were read for the page.
    pub(in crate::store) read: usize,
    /// Those of them that no page held before.
    pub(in crate::store) returned: usize,
    pub(in crate::store) found: Vec<FoundRecord>,
    /// Those that this node does not serve alone, for a cluster keeps their Redis keys apart, or is moving them; and those that
    /// hold no strings, which are read by a script, but for small hashes.
    pub(in crate::store) elsewhere: Vec<(Candidate, usize)>,
    /// Redis keys of schemas that the catalog knows and does not read, by schema.
    pub(in crate::store) unread: BTreeMap<String, u64>,
}

struct PageInFlight {
    passed: usize,
    returned: usize,
    places: Places,
    /// What may be a small hash.
    weighed: Places,
    elsewhere: Places,
    unread: BTreeMap<String, u64>,
    reads: KeyReads,
    at: Instant,
}

/// A scan of one node's keyspace.
pub(in crate::store) struct NodePages {
    stream: Connection,
    cursor: ScanCursor,
    sizer: PageSizer,
    pattern: Vec<u8>,
    reads: KeyReads,
    scanning: bool,
    in_flight: Option<PageInFlight>,
    /// The small hashes of the page before are on their way.
    hashes: SmallHashes,
    /// True for a node of a cluster, which serves a part of the slots.
    in_cluster: bool,
}

impl NodePages {
    /// Connects, and asks for the first page. In a cluster `masters` says how many nodes are scanned.
    pub(in crate::store) async fn open(
        target: &Target,
        pattern: &[u8],
        head: ReadLimit,
        scan_options: ScanOptions,
        masters: Option<usize>,
    ) -> Result<Self, StoreError> {
        let (stream, round_trip) = connect(target).await?;
        let (cursor, sizer) =
            (ScanCursor::new(), PageSizer::new(round_trip, scan_options, masters.unwrap_or(1)));
        let (pattern, in_cluster) = (pattern.to_vec(), masters.is_some());
        let reads = KeyReads { head, lengths: false, values: true, exact: false };
        let (in_flight, hashes) = (None, SmallHashes::default());
        let mut pages = Self {
            stream,
            cursor,
            sizer,
            pattern,
            reads,
            scanning: false,
            in_flight,
            hashes,
            in_cluster,
        };
        if in_cluster {
            // A replica serves nobody who did not say that it may be behind; a master ignores it.
            pages.stream.queue(&[b"READONLY"]);
        }
        pages.stream.queue(&[b"TIME"]);
        pages.stream.queue(&[b"PEXPIRETIME", TRIED.as_bytes()]);
        SmallHashes::try_field_expiry(&mut pages.stream);
        pages.stream.queue_mark();
        pages.ask_for_page();
        pages.stream.send().await?;
        if in_cluster {
            pages.stream.token().await?;
        }
        let time = reads::time(&mut pages.stream).await?;
        let tried = match pages.stream.token().await? {
            Token::Integer(_) => true,
            Token::Error(text) => knows_pexpiretime(Err(&pages.stream.refusal(text))),
            _ => false,
        };
        pages.reads.exact = tried && time.is_some();
        pages.hashes.tried(&mut pages.stream).await?;
        pages.stream.take_mark().await?;
        Ok(pages)
    }

    /// The next page of the records that the catalog's schemas own and whose idempotency keys `wanted` lets through;
    /// `None` at the end. After an error, or if the caller drops the future, the scan cannot go on.
    pub(in crate::store) async fn next(
        &mut self,
        catalog: &Catalog,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<ScanPage>, StoreError> {
        if self.in_flight.is_none() {
            self.turn(catalog, &wanted).await?;
        }
        let Some(in_flight) = self.in_flight.take() else {
            if self.hashes.is_empty() {
                self.stream.has_ended().await?;
                return Ok(None);
            }
            let mut page = ScanPage::default();
            self.take_hashes(&mut page).await?;
            return Ok(Some(page));
        };
        self.turn(catalog, &wanted).await?;
        let PageInFlight { passed, returned, places, weighed, elsewhere, unread, reads, at } =
            in_flight;
        let found = Vec::with_capacity(places.len());
        let mut page = ScanPage { passed, read: returned, returned, found, elsewhere, unread };
        let seen = reads.seen(&mut self.stream, candidates(&places)).await?;
        for ((candidate, role), seen) in places.into_iter().zip(seen) {
            match seen {
                Err(error) if error.is_of_the_slot() => page.elsewhere.push((candidate, role)),
                seen => page.found.push((candidate, role, seen)),
            }
        }
        let (small, others) = small_hashes::weighed(&mut self.stream, weighed).await?;
        page.elsewhere.extend(others);
        self.stream.take_mark().await?;
        self.take_hashes(&mut page).await?;
        // They come with the next page.
        self.hashes.ask(&mut self.stream, small);
        if !self.hashes.is_empty() {
            self.stream.queue_mark();
        }
        self.stream.send().await?;
        self.sizer.took(at.elapsed());
        Ok(Some(page))
    }

    /// Takes in the small hashes that are on their way.
    async fn take_hashes(&mut self, page: &mut ScanPage) -> Result<(), StoreError> {
        if self.hashes.is_empty() {
            return Ok(());
        }
        let hashes = self.hashes.seen(&mut self.stream).await?;
        self.stream.take_mark().await?;
        for ((candidate, role), seen) in hashes {
            match seen {
                Some(seen) => page.found.push((candidate, role, Ok(seen))),
                None => page.elsewhere.push((candidate, role)),
            }
        }
        Ok(())
    }

    /// Whether the pages to come bring the lengths of values along.
    pub(in crate::store) fn bring_lengths(&mut self, lengths: bool) {
        self.reads.lengths = lengths;
    }

    /// Whether the pages to come read values, or deadlines alone.
    pub(in crate::store) fn read_values(&mut self, values: bool) {
        self.reads.values = values;
    }

    /// The least that the pages to come read of each value.
    pub(in crate::store) fn bring_heads(&mut self, head: ReadLimit) {
        self.reads.head = head;
    }

    /// Takes in the page of Redis keys that is on its way, asks for its records, and before them for the next page.
    async fn turn(
        &mut self,
        catalog: &Catalog,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<(), StoreError> {
        if !self.scanning {
            return Ok(());
        }
        let passed = self.cursor.count();
        let (returned, places, unread) = self.page(catalog, wanted).await?;
        self.ask_for_page();
        let apart = |(candidate, _): &(Candidate, usize)| {
            let is_apart = self.in_cluster
                && candidate.redis_keys.len() > 1
                && !hash_slot::is_one(candidate.redis_keys.iter().map(Vec::as_slice));
            is_apart || (self.reads.values && candidate.keeps_collections())
        };
        let (elsewhere, places): (Places, Places) = places.into_iter().partition(apart);
        let (weighed, elsewhere): (Places, Places) =
            elsewhere.into_iter().partition(|(candidate, _)| self.may_be_small_hash(candidate));
        self.reads.ask(&mut self.stream, candidates(&places));
        small_hashes::weigh(&mut self.stream, candidates(&weighed));
        self.stream.queue_mark();
        let (reads, at) = (self.reads, Instant::now());
        self.in_flight =
            Some(PageInFlight { passed, returned, places, weighed, elsewhere, unread, reads, at });
        self.stream.send().await
    }

    /// True for a hash of a record's own, where a part of the values is enough and the node tells deadlines.
    fn may_be_small_hash(&self, candidate: &Candidate) -> bool {
        let wants_part = matches!(self.reads.head, ReadLimit::Bytes(_));
        wants_part
            && self.reads.exact
            && candidate.redis_keys.len() == 1
            && candidate.keeps_hashes()
    }

    fn ask_for_page(&mut self) {
        let count = self.sizer.count().to_string();
        if self.cursor.cursor().is_some() && self.cursor.ask(self.sizer.count()) {
            self.stream.queue(&[b"DBSIZE"]);
        }
        let cursor = self.cursor.cursor();
        if let Some(cursor) = cursor {
            self.stream.queue(&[
                b"SCAN",
                cursor,
                b"MATCH",
                &self.pattern,
                b"COUNT",
                count.as_bytes(),
            ]);
        }
        self.scanning = cursor.is_some();
    }

    /// Reads the reply of SCAN: how many Redis keys it holds, the records they belong to, and how many keys are of schemas that
    /// this run does not read.
    async fn page(
        &mut self,
        catalog: &Catalog,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<(usize, Places, BTreeMap<String, u64>), StoreError> {
        if self.cursor.awaits_size() {
            let there = reads::number(&mut self.stream, "DBSIZE")
                .await?
                .ok()
                .and_then(|there| u64::try_from(there).ok());
            self.cursor.there_are(there).map_err(|why| endless(&self.stream, why))?;
        }
        match self.stream.token().await? {
            Token::Array(2) => {}
            Token::Error(text) => return Err(self.stream.refusal(text)),
            _ => return Err(self.stream.unexpected("SCAN")),
        }
        let Token::Text(cursor) = self.stream.token().await? else {
            return Err(self.stream.unexpected("SCAN"));
        };
        let cursor = self.stream.bytes(cursor).to_vec();
        let Token::Array(count) = self.stream.token().await? else {
            return Err(self.stream.unexpected("SCAN"));
        };
        self.cursor.turn(&cursor, count).map_err(|why| endless(&self.stream, why))?;
        let mut returned = 0;
        let mut places = Vec::new();
        let mut unread: BTreeMap<String, u64> = BTreeMap::new();
        for _ in 0..count {
            let Token::Text(redis_key) = self.stream.token().await? else {
                return Err(self.stream.unexpected("SCAN"));
            };
            let redis_key = self.stream.bytes(redis_key);
            if !self.cursor.is_new(redis_key) {
                continue;
            }
            returned += 1;
            if let Some(place) = locate::for_redis_key(catalog, redis_key) {
                places.extend(
                    Some(place).filter(|(place, _)| locate::is_wanted(catalog, place, &wanted)),
                );
            } else if let Some(schema) = catalog.unread_owner(redis_key) {
                *unread.entry(schema.name.clone()).or_default() += 1;
            }
        }
        Ok((returned, places, unread))
    }
}

/// Connects, logs in, and asks not to disturb eviction data. The time of one round trip comes with the connection.
async fn connect(target: &Target) -> Result<(Connection, Duration), StoreError> {
    let mut connection = Connection::dial(target).await?;
    let asked = Instant::now();
    let polite = target.client_options.does(ClientOption::NoTouch);
    // Where that is refused, or was, something else that everybody may ask takes the time of a round trip.
    let reply = connection
        .exchange(&if polite { pack(ClientOption::NoTouch.words()) } else { pack(["PING"]) })
        .await?;
    if polite {
        // Whatever else is wrong is told with the first page.
        let _ = target.client_options.heard(ClientOption::NoTouch, connection.no_error(reply));
    }
    Ok((connection, asked.elapsed()))
}

/// The error of a SCAN without an end.
fn endless(connection: &Connection, why: &str) -> StoreError {
    StoreError::NotRedis {
        target: connection.target().to_string(),
        why: format!("its SCAN has no end: {why}"),
    }
}

fn candidates(places: &[(Candidate, usize)]) -> impl ExactSizeIterator<Item = &Candidate> {
    places.iter().map(|(candidate, _)| candidate)
}
