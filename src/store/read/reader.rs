//! Reading records. Nothing here can change anything.

use redis::{Cmd, Value};

use super::observed::observation;
use super::page_size::ScanOptions;
use crate::domain::record::deadline::FARTHEST_MS;
use crate::domain::record::{Deadline, Observation, SeenKey};
use crate::store::cluster::client::Client;
use crate::store::cluster::scripted::ScriptRef;
use crate::store::connection::reply;
use crate::store::error::StoreError;
use crate::store::scripts;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadLimit {
    /// At most this many bytes.
    Bytes(usize),
    Whole,
}

impl ReadLimit {
    pub(in crate::store) fn last_index(self) -> i64 {
        match self {
            Self::Bytes(bytes) => i64::try_from(bytes).unwrap_or(i64::MAX) - 1,
            Self::Whole => -1,
        }
    }

    pub(in crate::store) fn as_arg(self) -> i64 {
        match self {
            Self::Bytes(bytes) => i64::try_from(bytes).unwrap_or(i64::MAX),
            Self::Whole => -1,
        }
    }
}

/// How much a read tells besides the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Depth {
    /// Neither idle time nor memory: for many records.
    Brief,
    Usual,
    /// The checksums of values that are longer than their head, or are no strings, as well: each takes the server a DUMP.
    Checksums,
}

impl Depth {
    fn as_arg(self) -> i64 {
        match self {
            Self::Brief => -1,
            Self::Usual => 0,
            Self::Checksums => 1,
        }
    }
}

/// So many calls send the text of their script each; more send its digest.
const FEW: usize = 8;

/// How records can be read on this server, found out by trying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadMethod {
    /// `EVAL_RO`, from Redis 7.
    ReadOnlyScript,
    /// `EVAL`, before.
    Script,
    /// Plain commands, where scripts are not permitted: not atomic.
    Commands,
}

#[derive(Clone)]
pub struct RecordReader {
    client: Client,
    way: ReadMethod,
    scan_options: ScanOptions,
}

pub type Seen = Result<Observation, StoreError>;

impl Client {
    pub fn reader(&self) -> RecordReader {
        RecordReader::new(self.clone())
    }
}

impl RecordReader {
    pub(in crate::store) fn new(client: Client) -> Self {
        Self { client, way: ReadMethod::ReadOnlyScript, scan_options: ScanOptions::default() }
    }

    /// The same, with these options for its scans. Single records are read from masters all the same.
    #[must_use]
    pub fn scanning(self, scan_options: ScanOptions) -> Self {
        Self { scan_options, ..self }
    }

    pub(in crate::store) fn scan_options(&self) -> ScanOptions {
        self.scan_options
    }

    /// The server's name for people.
    pub fn name(&self) -> String {
        self.client.name()
    }

    /// Why what is read here may show what was long ago.
    pub async fn is_behind(&self) -> Option<String> {
        self.client.is_behind().await
    }

    /// The number of the database.
    pub(crate) fn db(&self) -> i64 {
        self.client.target().db
    }

    pub(in crate::store) fn client(&self) -> &Client {
        &self.client
    }

    /// True if reading a key leaves its idle time as it is.
    pub fn keeps_idle_times(&self) -> bool {
        self.client.target().client_options.keeps_idle_times()
    }

    /// Reads records, all in one round trip, each atomically: idle time before anything touches the value, then type,
    /// expiry, deadline, memory and the value's head. One result a record, in order: a record may be out of bounds for the user.
    ///
    /// # Errors
    /// When the server could not be asked at all.
    pub async fn observe(
        &mut self,
        records: &[Vec<Vec<u8>>],
        head: ReadLimit,
    ) -> Result<Vec<Seen>, StoreError> {
        self.observe_each(records, head).await?.into_iter().map(of_the_record).collect()
    }

    /// The same with an own error for each record that cannot be read, whatever the reason: its node does not answer. A record
    /// that is half moved to another node is read key by key.
    ///
    /// # Errors
    /// When no record could be read at all.
    pub async fn observe_each(
        &mut self,
        records: &[Vec<Vec<u8>>],
        head: ReadLimit,
    ) -> Result<Vec<Seen>, StoreError> {
        match self.observe_together(records, head).await? {
            Some(seen) => Ok(seen),
            None => {
                let seen = self.observe_with(records, head, Depth::Usual).await?;
                self.observe_half_moved(records, seen, head, Depth::Usual).await
            }
        }
    }

    /// Reads key by key what could not be read in one step because its slot is being moved: no node has all the keys, or knows
    /// that there are no more.
    pub(super) async fn observe_half_moved(
        &mut self,
        records: &[Vec<Vec<u8>>],
        seen: Vec<Seen>,
        head: ReadLimit,
        depth: Depth,
    ) -> Result<Vec<Seen>, StoreError> {
        let mut all = Vec::with_capacity(seen.len());
        for (redis_keys, seen) in records.iter().zip(seen) {
            let is_half_moved =
                redis_keys.len() > 1 && seen.as_ref().is_err_and(StoreError::is_redirect);
            if !is_half_moved {
                all.push(seen);
                continue;
            }
            let each: Vec<_> = redis_keys.iter().map(|redis_key| vec![redis_key.clone()]).collect();
            let read = self.observe_with(&each, head, depth).await?;
            all.extend(together(&[redis_keys.len()], read));
        }
        Ok(all)
    }

    /// The same, telling more or less.
    pub(in crate::store) async fn observe_with(
        &mut self,
        records: &[Vec<Vec<u8>>],
        head: ReadLimit,
        depth: Depth,
    ) -> Result<Vec<Seen>, StoreError> {
        loop {
            let command = match self.way {
                ReadMethod::ReadOnlyScript => "EVAL_RO",
                ReadMethod::Script => "EVAL",
                ReadMethod::Commands => {
                    let mut seen = self.peek_each(records, head).await;
                    self.measure(seen.iter_mut().flatten()).await?;
                    self.peek_fields(
                        seen.iter_mut().flatten().flat_map(|seen| &mut seen.keys).collect(),
                        head,
                    )
                    .await?;
                    return Ok(seen);
                }
            };
            let units = self.units(records);
            let counts = self.unit_counts(records);
            let replies = self.observe_by(command, &units, head, depth).await;
            if self.unit_counts(records) != counts {
                // It turned out to be a cluster that keeps the keys of a record apart.
                continue;
            }
            let fallback = replies.iter().find_map(|reply| self.other_way(reply.as_ref().err()?));
            match fallback {
                Some(way) => self.way = way,
                None => {
                    let keeps_idle_times = self.keeps_idle_times();
                    let mut read = Vec::with_capacity(units.len());
                    for (reply, keys) in replies.into_iter().zip(&units) {
                        read.push(reply.and_then(|reply| {
                            let seen = observation(reply, keys, keeps_idle_times);
                            seen.ok_or_else(|| self.client.unexpected(command))
                        }));
                    }
                    self.tell_far_deadlines(&mut read).await;
                    return Ok(together(&counts, read));
                }
            }
        }
    }

    /// What is read in one step each: a record, or each of its Redis keys where a cluster keeps them apart.
    fn units(&self, records: &[Vec<Vec<u8>>]) -> Vec<Vec<Vec<u8>>> {
        let unit = |keys: &Vec<Vec<u8>>| {
            if self.client.parts(keys) {
                keys.iter().map(|key| vec![key.clone()]).collect()
            } else {
                vec![keys.clone()]
            }
        };
        records.iter().flat_map(unit).collect()
    }

    /// Reads again the deadlines that scripts cut off, because the numbers of Lua are not exact there. A key without a reply stays.
    async fn tell_far_deadlines(&self, read: &mut [Seen]) {
        let is_far = |key: &&mut SeenKey| key.deadline.millis().is_some_and(|at| at >= FARTHEST_MS);
        let mut keys: Vec<_> =
            read.iter_mut().flatten().flat_map(|seen| &mut seen.keys).filter(is_far).collect();
        let mut pipeline = redis::pipe();
        for key in &keys {
            pipeline.cmd("PEXPIRETIME").arg(&key.redis_key);
            pipeline.cmd("PTTL").arg(&key.redis_key);
            pipeline.cmd("TIME");
        }
        if keys.is_empty() {
            return;
        }
        let mut replies = self.client.ask_each(&pipeline).await.into_iter();
        for key in &mut keys {
            let at = replies.next().and_then(Result::ok).as_ref().and_then(reply::integer);
            let left = replies.next().and_then(Result::ok).as_ref().and_then(reply::integer);
            let now = replies.next().and_then(Result::ok).and_then(reply::millis);
            let told = match (at, left) {
                (Some(at), _) => Deadline::from_pexpiretime(at),
                (None, Some(left)) => Deadline::from_pttl(left, now, now),
                (None, None) => continue,
            };
            // Of a key that expires sooner by now another one was read.
            if told.is_same(key.deadline) {
                key.deadline = told;
            }
        }
    }

    /// How many units each record has.
    fn unit_counts(&self, records: &[Vec<Vec<u8>>]) -> Vec<usize> {
        let count = |keys: &Vec<Vec<u8>>| if self.client.parts(keys) { keys.len() } else { 1 };
        records.iter().map(count).collect()
    }

    async fn observe_by(
        &self,
        command: &str,
        records: &[Vec<Vec<u8>>],
        head: ReadLimit,
        depth: Depth,
    ) -> Vec<Result<Value, StoreError>> {
        let calls = |script: ScriptRef<'_>| -> Vec<Cmd> {
            let call = |keys: &Vec<Vec<u8>>| {
                let mut call = match script {
                    ScriptRef::Text => redis::cmd(command).arg(scripts::OBSERVE).to_owned(),
                    ScriptRef::Digest(digest) => {
                        redis::cmd(&command.replace("EVAL", "EVALSHA")).arg(digest).to_owned()
                    }
                };
                call.arg(keys.len()).arg(keys).arg(head.as_arg()).arg(depth.as_arg());
                call
            };
            records.iter().map(call).collect()
        };
        // A command that only reads leaves no script at the server.
        if depth == Depth::Checksums && records.len() > FEW {
            return self
                .client
                .ask_script_each(scripts::OBSERVE, calls)
                .await
                .unwrap_or_else(|error| vec![Err(error); records.len()]);
        }
        let mut pipeline = redis::pipe();
        for call in calls(ScriptRef::Text) {
            pipeline.add_command(call);
        }
        self.client.ask_each(&pipeline).await
    }

    /// Another way to read, when this one failed for want of the command or of the right to it.
    fn other_way(&self, error: &StoreError) -> Option<ReadMethod> {
        match self.way {
            ReadMethod::ReadOnlyScript if error.is_unknown_command() || error.is_of_command() => {
                Some(ReadMethod::Script)
            }
            ReadMethod::Script if error.is_unknown_command() || error.is_of_command() => {
                Some(ReadMethod::Commands)
            }
            _ => None,
        }
    }
}

/// What concerns one record alone: that the user may not read it. Any other error is one of the whole.
pub(in crate::store) fn of_the_record(seen: Seen) -> Result<Seen, StoreError> {
    match seen {
        Err(error) if !error.is_permission() || error.wants_slots() => Err(error),
        seen => Ok(seen),
    }
}

/// Joins the reads of each record, which has so many units; not atomic where its Redis keys were read one after the other.
fn together(counts: &[usize], read: Vec<Seen>) -> Vec<Seen> {
    let mut read = read.into_iter();
    let mut records = Vec::with_capacity(counts.len());
    for count in counts {
        // Each record takes all of its units, also behind one that failed: the next unit is another record's.
        let mut whole: Option<Seen> = None;
        for unit in read.by_ref().take(*count) {
            whole = Some(match (whole, unit) {
                (None, unit) => unit,
                (Some(Ok(mut seen)), Ok(mut more)) => {
                    seen.keys.append(&mut more.keys);
                    Ok(Observation { atomic: false, ..seen })
                }
                (Some(Err(error)), _) | (Some(Ok(_)), Err(error)) => Err(error),
            });
        }
        records.extend(whole);
    }
    records
}
