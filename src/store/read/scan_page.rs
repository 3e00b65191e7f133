//! Scans one node's keyspace page by page: while a page's records are read, the next page is
//! already requested.
//!
//! One connection sends SCAN, the reads of the previous page, SCAN, the reads of the next one, and
//! so on. So the server is always busy with a page while the previous one is decoded and shown.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::Value;

use super::cursor::ScanCursor;
use super::key_query::{
    ExpiryCommand, KeyQuery, LengthQuery, ReadLimit, ReadTimes, ReplySource as _, ValueQuery,
    only_of_the_key, read_time,
};
use super::learned_heads::LearnedHeads;
use super::page_size::{MAX_REQUESTED, PageSizer, ScanOptions};
use super::reader::ReadResult;
use super::small_hashes::{self, SmallHashes};
use crate::domain::hash_slot;
use crate::domain::record::{Candidate, locate};
use crate::domain::schema::{Catalog, Schema};
use crate::store::cluster::deadlines::{TRIED, is_known as knows_pexpiretime};
use crate::store::connection::{ClientOption, Connection, Target, Token, pack};
use crate::store::error::StoreError;

/// A record in a page: its candidate, the index of the Redis key by which it was found, and the
/// data that was read.
pub(in crate::store) type FoundRecord = (Candidate, usize, ReadResult);

/// Records to read, each with the index of the Redis key by which it was found.
type FoundCandidates = Vec<(Candidate, usize)>;

/// One page of a node's keyspace.
#[derive(Default)]
pub(in crate::store) struct ScanPage {
    /// The approximate number of Redis keys that the node iterated over for the page, including
    /// those with other names.
    pub(in crate::store) iterated: usize,
    /// The Redis keys in the reply of SCAN that no earlier page of the node contained. `--rate`
    /// limits their number per second.
    pub(in crate::store) new_keys: usize,
    /// How many Redis keys count as returned. These are the same, or only those of new records if a
    /// cluster moved slots, and its nodes are read again.
    pub(in crate::store) returned: usize,
    pub(in crate::store) found: Vec<FoundRecord>,
    /// Records that this node cannot read alone, because a cluster stores their Redis keys in
    /// different slots, or is moving them. Also records that need a script, because they are
    /// neither strings nor small hashes.
    pub(in crate::store) elsewhere: FoundCandidates,
    /// Redis keys of known schemas that this command does not read, by schema.
    pub(in crate::store) keys_of_other_schemas: BTreeMap<String, u64>,
    /// The schemas to which Redis keys of the page belong, filtered or not.
    pub(in crate::store) schemas: Vec<Arc<Schema>>,
}

/// The Redis keys in a reply of SCAN.
struct ScannedKeys {
    /// Redis keys that no earlier page contained.
    returned: usize,
    /// Their candidates, which are read next.
    candidates: FoundCandidates,
    /// Redis keys of known schemas that this command does not read, by schema.
    keys_of_other_schemas: BTreeMap<String, u64>,
    /// The schemas to which the Redis keys belong, wanted or not.
    schemas: Vec<Arc<Schema>>,
}

/// A page whose records have been requested.
struct PageInFlight {
    iterated: usize,
    keys: ScannedKeys,
    /// Records that may be small hashes, whose memory has been requested.
    may_be_small: FoundCandidates,
    elsewhere: FoundCandidates,
    query: KeyQuery,
    heads: PageHeads,
    sent_at: Instant,
}

/// How much a page reads of each value, beside the minimum of its query.
#[derive(Clone, Default)]
struct PageHeads {
    learned: LearnedHeads,
    /// The most bytes of a value that were learned, so that the replies of a page stay small.
    most: usize,
}

impl PageHeads {
    fn of(&self, candidate: &Candidate) -> usize {
        self.learned.of(candidate, self.most)
    }
}

/// A scan of one node's keyspace.
pub(in crate::store) struct NodePages {
    stream: Connection,
    cursor: ScanCursor,
    sizer: PageSizer,
    /// The glob of SCAN's MATCH.
    pattern: Vec<u8>,
    /// The query of the following pages. A record's schema may need more of a value.
    query: KeyQuery,
    /// How much of some schemas' values the following pages read.
    learned: LearnedHeads,
    /// True while a reply of SCAN is expected.
    scanning: bool,
    /// True if the reply to a log-in comes before that of SCAN.
    logs_in: bool,
    in_flight: Option<PageInFlight>,
    /// The small hashes of the previous page, whose replies are expected.
    hashes: SmallHashes,
    /// True for a node of a cluster, which serves a part of the slots.
    in_cluster: bool,
}

impl NodePages {
    /// Connects, and requests the first page. In a cluster, `masters` is the number of nodes that
    /// are scanned.
    pub(in crate::store) async fn open(
        target: &Target,
        pattern: &[u8],
        head: ReadLimit,
        scan_options: ScanOptions,
        masters: Option<usize>,
    ) -> Result<Self, StoreError> {
        let (stream, round_trip) = connect(target).await?;
        let in_cluster = masters.is_some();
        let mut pages = Self {
            stream,
            cursor: ScanCursor::new(),
            sizer: PageSizer::new(round_trip, scan_options, masters.unwrap_or(1)),
            pattern: pattern.to_vec(),
            query: KeyQuery::heads(head),
            learned: LearnedHeads::default(),
            scanning: false,
            logs_in: false,
            in_flight: None,
            hashes: SmallHashes::default(),
            in_cluster,
        };
        if in_cluster {
            // A replica of a cluster serves only connections that accept old data; a master ignores
            // this command.
            pages.stream.queue(&[b"READONLY"]);
        }
        pages.stream.queue(&[b"TIME"]);
        pages.stream.queue(&[b"PEXPIRETIME", TRIED.as_bytes()]);
        SmallHashes::try_field_expiry(&mut pages.stream);
        pages.stream.queue_mark();
        pages.ask_for_page().await?;
        pages.stream.send().await?;
        if in_cluster {
            pages.stream.token().await?;
        }
        let time = read_time(&mut pages.stream).await?;
        let tried = pages.stream.next_reply().await?;
        if time.is_some() && knows_pexpiretime(tried.as_ref()) {
            pages.query.expiry = ExpiryCommand::Pexpiretime;
        }
        pages.hashes.read_field_expiry(&mut pages.stream).await?;
        pages.stream.take_mark().await?;
        Ok(pages)
    }

    /// The next page of records that the catalog's schemas own and whose idempotency keys `wanted`
    /// accepts; `None` at the end. After an error, or if the caller drops the future, the scan
    /// cannot continue.
    pub(in crate::store) async fn next_page(
        &mut self,
        catalog: &Catalog,
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Option<ScanPage>, StoreError> {
        // No request is in progress before the first page and after the last one.
        if self.in_flight.is_none() {
            let next = self.next_keys(catalog, &wanted).await?;
            self.request(next).await?;
        }
        let Some(in_flight) = self.in_flight.take() else {
            if self.hashes.is_empty() {
                self.stream.check_ended().await?;
                return Ok(None);
            }
            let mut page = ScanPage::default();
            self.take_hashes(&mut page).await?;
            return Ok(Some(page));
        };
        let mut next = self.next_keys(catalog, &wanted).await?;
        // The next page is requested before this one's records are read, so that the server is
        // never idle.
        if !self.stream.is_unix_socket() {
            self.request(next.take()).await?;
        }
        let PageInFlight { iterated, keys, may_be_small, elsewhere, query, heads, sent_at } =
            in_flight;
        let mut page = ScanPage {
            iterated,
            new_keys: keys.returned,
            returned: keys.returned,
            found: Vec::with_capacity(keys.candidates.len()),
            elsewhere,
            keys_of_other_schemas: keys.keys_of_other_schemas,
            schemas: keys.schemas,
        };
        let read = read_records(&mut self.stream, query, &heads, &keys.candidates).await?;
        // A Unix socket holds less than a page of replies. A server that has the next request
        // executes all of it before it sends the rest of this page, for which idemctl would wait.
        if self.in_flight.is_none() {
            self.request(next.take()).await?;
        }
        for ((candidate, key_index), seen) in keys.candidates.into_iter().zip(read) {
            match seen {
                Err(error) if error.is_of_the_slot() => page.elsewhere.push((candidate, key_index)),
                seen => page.found.push((candidate, key_index, seen)),
            }
        }
        let (small, others) = small_hashes::split_by_memory(&mut self.stream, may_be_small).await?;
        page.elsewhere.extend(others);
        self.stream.take_mark().await?;
        self.take_hashes(&mut page).await?;
        // Their fields are read with the next page.
        self.hashes.ask(&mut self.stream, small);
        if !self.hashes.is_empty() {
            self.stream.queue_mark();
        }
        self.stream.send().await?;
        self.sizer.took(sent_at.elapsed());
        Ok(Some(page))
    }

    /// Reads the replies for the requested small hashes.
    async fn take_hashes(&mut self, page: &mut ScanPage) -> Result<(), StoreError> {
        if self.hashes.is_empty() {
            return Ok(());
        }
        let hashes = self.hashes.read(&mut self.stream).await?;
        self.stream.take_mark().await?;
        for ((candidate, key_index), seen) in hashes {
            match seen {
                Some(seen) => page.found.push((candidate, key_index, Ok(seen))),
                None => page.elsewhere.push((candidate, key_index)),
            }
        }
        Ok(())
    }

    /// Sets how the following pages find out the lengths of values.
    pub(in crate::store) fn find_lengths(&mut self, length: LengthQuery) {
        self.query.length = length;
    }

    /// Sets how much of some schemas' values the following pages read.
    pub(in crate::store) fn learn_heads(&mut self, learned: LearnedHeads) {
        self.learned = learned;
    }

    /// Makes the following pages read only deadlines, or the beginnings of values as well.
    pub(in crate::store) fn read_values(&mut self, value: ValueQuery) {
        self.query.value = value;
    }

    /// Makes the following pages read idle times.
    pub(in crate::store) fn read_idle_times(&mut self) {
        self.query.idle = true;
    }

    /// Reads the requested page of Redis keys.
    async fn next_keys(
        &mut self,
        catalog: &Catalog,
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Option<(usize, ScannedKeys)>, StoreError> {
        if !self.scanning {
            return Ok(None);
        }
        // Read before the next page is requested, because that page has a COUNT of its own.
        let iterated = self.cursor.count();
        let keys = self.read_scan(catalog, wanted).await?;
        Ok(Some((iterated, keys)))
    }

    /// Requests the next page, and the records of these Redis keys.
    async fn request(&mut self, next: Option<(usize, ScannedKeys)>) -> Result<(), StoreError> {
        let Some((iterated, mut keys)) = next else { return Ok(()) };
        self.ask_for_page().await?;
        let mut here = Vec::with_capacity(keys.candidates.len());
        let mut may_be_small = Vec::new();
        let mut elsewhere = Vec::new();
        for (candidate, key_index) in std::mem::take(&mut keys.candidates) {
            if self.is_read_here(&candidate) {
                here.push((candidate, key_index));
            } else if self.may_be_small_hash(&candidate) && !self.query.idle {
                may_be_small.push((candidate, key_index));
            } else {
                elsewhere.push((candidate, key_index));
            }
        }
        keys.candidates = here;
        let most = MAX_REQUESTED / self.sizer.count().max(1);
        let heads = PageHeads { learned: self.learned.clone(), most };
        let mut query = self.query;
        if let LengthQuery::LongerHead(reach) = query.length
            && reach > most
        {
            query.length = LengthQuery::Strlen;
        }
        ask_for_records(&mut self.stream, query, &heads, &keys.candidates);
        small_hashes::ask_for_memory(
            &mut self.stream,
            may_be_small.iter().map(|(candidate, _)| candidate),
        );
        self.stream.queue_mark();
        let sent_at = Instant::now();
        self.in_flight =
            Some(PageInFlight { iterated, keys, may_be_small, elsewhere, query, heads, sent_at });
        self.stream.send().await
    }

    /// True if plain commands can read the record on this connection.
    fn is_read_here(&self, candidate: &Candidate) -> bool {
        let is_apart = self.in_cluster
            && candidate.redis_keys.len() > 1
            && !hash_slot::is_one(candidate.redis_keys.iter().map(Vec::as_slice));
        let needs_script = self.query.value != ValueQuery::Nothing && candidate.keeps_collections();
        !is_apart && !needs_script
    }

    /// True for a record that is one hash, if part of its values is enough and the node supports
    /// PEXPIRETIME.
    fn may_be_small_hash(&self, candidate: &Candidate) -> bool {
        self.query.value != ValueQuery::Head(ReadLimit::Whole)
            && self.query.expiry == ExpiryCommand::Pexpiretime
            && candidate.redis_keys.len() == 1
            && candidate.keeps_hashes()
    }

    async fn ask_for_page(&mut self) -> Result<(), StoreError> {
        let count = self.sizer.count();
        self.cursor.note_count(count);
        let count = count.to_string();
        let cursor = self.cursor.cursor();
        if let Some(cursor) = cursor {
            self.logs_in = self.stream.queue_log_in().await?;
            if self.cursor.needs_dbsize() {
                self.stream.queue(&[b"DBSIZE"]);
            }
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
        Ok(())
    }

    /// Reads the reply of SCAN token by token, because most of its Redis keys are not copied.
    async fn read_scan(
        &mut self,
        catalog: &Catalog,
        wanted: &dyn Fn(&[u8]) -> bool,
    ) -> Result<ScannedKeys, StoreError> {
        if std::mem::take(&mut self.logs_in) {
            self.stream.next_reply().await??;
        }
        if self.cursor.needs_dbsize() {
            let reply = only_of_the_key(self.stream.next_reply().await?)?;
            let size = match reply {
                Ok(Value::Int(size)) => u64::try_from(size).ok(),
                Ok(_) => return Err(self.stream.unexpected("DBSIZE")),
                // The Redis user may not ask.
                Err(_) => None,
            };
            self.cursor.set_dbsize(size).map_err(|why| endless(&self.stream, why))?;
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
        self.cursor.start_page(&cursor, count).map_err(|why| endless(&self.stream, why))?;
        let mut keys = ScannedKeys {
            returned: 0,
            candidates: Vec::new(),
            keys_of_other_schemas: BTreeMap::new(),
            schemas: Vec::new(),
        };
        for _ in 0..count {
            let Token::Text(redis_key) = self.stream.token().await? else {
                return Err(self.stream.unexpected("SCAN"));
            };
            let redis_key = self.stream.bytes(redis_key);
            if !self.cursor.is_new(redis_key) {
                continue;
            }
            keys.returned += 1;
            let mut is_most_specific = false;
            if let Some((candidate, key_index)) = locate::for_redis_key(catalog, redis_key) {
                is_most_specific = candidate.is_most_specific;
                // The name of another schema's key says nothing about this candidate's schemas.
                if is_most_specific {
                    add_schemas(&mut keys.schemas, &candidate.schemas);
                }
                if locate::is_wanted(catalog, &candidate, &wanted) {
                    keys.candidates.push((candidate, key_index));
                }
            }
            if !is_most_specific && let Some(schema) = catalog.unselected_schema(redis_key) {
                *keys.keys_of_other_schemas.entry(schema.name.clone()).or_default() += 1;
            }
        }
        Ok(keys)
    }
}

/// Adds the schemas that are not in the list, which is short.
pub(super) fn add_schemas(known: &mut Vec<Arc<Schema>>, schemas: &[Arc<Schema>]) {
    for schema in schemas {
        if !known.iter().any(|known| Arc::ptr_eq(known, schema)) {
            known.push(Arc::clone(schema));
        }
    }
}

/// Queues the commands for the records of a page, followed by TIME. If PTTL reports the expiries,
/// TIME is sent before them as well.
fn ask_for_records(
    stream: &mut Connection,
    query: KeyQuery,
    heads: &PageHeads,
    candidates: &FoundCandidates,
) {
    if query.expiry == ExpiryCommand::Pttl {
        stream.queue(&[b"TIME"]);
    }
    for (candidate, _) in candidates {
        query.reading_at_least(heads.of(candidate)).ask(stream, &candidate.redis_keys);
    }
    stream.queue(&[b"TIME"]);
}

/// Reads the replies to [`ask_for_records`], one result per record, because the Redis user may not
/// be allowed to read some of them.
async fn read_records(
    stream: &mut Connection,
    query: KeyQuery,
    heads: &PageHeads,
    candidates: &FoundCandidates,
) -> Result<Vec<ReadResult>, StoreError> {
    let before = match query.expiry {
        ExpiryCommand::Pttl => read_time(stream).await?,
        ExpiryCommand::Pexpiretime => None,
    };
    let mut read = Vec::with_capacity(candidates.len());
    for (candidate, _) in candidates {
        let query = query.reading_at_least(heads.of(candidate));
        read.push(only_of_the_key(query.read(stream, &candidate.redis_keys).await?)?);
    }
    let after = read_time(stream).await?;
    for seen in read.iter_mut().flatten() {
        query.set_times(seen, ReadTimes { before, after });
    }
    Ok(read)
}

/// Connects, logs in, and sends CLIENT NO-TOUCH. Also returns the duration of one round trip.
async fn connect(target: &Target) -> Result<(Connection, Duration), StoreError> {
    let mut connection = Connection::dial(target).await?;
    let sent_at = Instant::now();
    if target.client_options.is_enabled(ClientOption::NoTouch) {
        let reply = connection.call(&pack(ClientOption::NoTouch.words())).await?;
        // Any other error is reported with the first page.
        let _ =
            target.client_options.record_reply(ClientOption::NoTouch, connection.no_error(reply));
    } else {
        // If CLIENT NO-TOUCH is refused, PING measures the round trip, because every user may send
        // it.
        connection.call(&pack(["PING"])).await?;
    }
    Ok((connection, sent_at.elapsed()))
}

/// The error of a SCAN without an end.
fn endless(connection: &Connection, why: &str) -> StoreError {
    StoreError::NotRedis { target: connection.target().to_string(), why: why.to_owned() }
}
