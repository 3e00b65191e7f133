//! Reads records. Nothing here can change anything.
//!
//! A script reads the Redis keys of a record in one atomic step (`read_records.lua`). If the user
//! may not run scripts, plain commands read them one after the other ([`super::plain_reads`]).

use redis::{Cmd, Pipeline, Value};

use super::key_query::{CommandQueue as _, PipelineReplies, ReadLimit, read_time};
use super::page_size::ScanOptions;
use super::script_reply::observation;
use crate::domain::record::deadline::FARTHEST_MS;
use crate::domain::record::{Deadline, Observation};
use crate::store::cluster::client::Client;
use crate::store::cluster::scripted::ScriptRef;
use crate::store::error::StoreError;
use crate::store::scripts;

/// The data that the script returns for each Redis key besides its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum ReadDetail {
    /// Neither idle time nor memory, which are slow to read; for many records.
    Brief,
    /// Idle time and memory.
    Usual,
    /// Also the checksums of values that are longer than their head, or not strings. The server
    /// must create a DUMP for each.
    Checksums,
}

impl ReadDetail {
    fn as_arg(self) -> i64 {
        match self {
            Self::Brief => -1,
            Self::Usual => 0,
            Self::Checksums => 1,
        }
    }
}

/// Up to this many calls before a change each send the text of the script; more of them send its
/// digest. Other reads always send the text: SCRIPT LOAD takes a round trip and a right of its own,
/// and the server never evicts what it loads.
const FEW_CALLS: usize = 8;

/// The most Redis keys that one call of the script reads for many records. A call that changes
/// records has the same limit.
const MAX_KEYS: usize = 100;

/// The most records that [`RecordReader::read_each`] reads in one call. One call is better for few
/// records, because the text of the script is longer than most of them.
const MAX_IN_ONE_CALL: usize = 16;

/// How records can be read on this server, which is found by trying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadMethod {
    /// `EVAL_RO`, from Redis 7.0 on.
    ReadOnlyScript,
    /// `EVAL`, before that.
    Script,
    /// Plain commands, which are not atomic: the Redis user may not run scripts.
    Commands,
}

/// Reads records of one server, or of the masters of a cluster.
#[derive(Clone)]
pub struct RecordReader {
    client: Client,
    method: ReadMethod,
    scan_options: ScanOptions,
}

/// Redis keys that are read together: those of a record, or of a part of one.
pub type RedisKeys = Vec<Vec<u8>>;

/// One record as it was read, or why it could not be read.
pub type ReadResult = Result<Observation, StoreError>;

impl Client {
    /// A reader of the records behind this client.
    pub fn reader(&self) -> RecordReader {
        RecordReader::new(self.clone())
    }
}

impl RecordReader {
    pub(in crate::store) fn new(client: Client) -> Self {
        let method = ReadMethod::ReadOnlyScript;
        Self { client, method, scan_options: ScanOptions::default() }
    }

    /// The same reader with these options for its scans. They do not apply to single records.
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

    /// A sentence about old data that the server may have; `None` if nothing indicates that.
    pub async fn why_stale(&self) -> Option<String> {
        self.client.why_stale().await
    }

    /// The number of the database.
    pub(crate) fn db(&self) -> i64 {
        self.client.target().db
    }

    pub(in crate::store) fn client(&self) -> &Client {
        &self.client
    }

    /// True if reading a key does not change its idle time.
    pub fn keeps_idle_times(&self) -> bool {
        self.client.target().client_options.keeps_idle_times()
    }

    /// Like [`Self::read_each`], but fails if a record cannot be read for another reason than that
    /// the Redis user may not read it.
    ///
    /// # Errors
    /// The first such error, or that the Redis user may not read the slot map.
    pub async fn read_or_fail(
        &mut self,
        groups: &[RedisKeys],
        head: ReadLimit,
    ) -> Result<Vec<ReadResult>, StoreError> {
        let read = self.read_each(groups, head).await?;
        for seen in &read {
            if let Err(error) = seen
                && (!error.is_permission() || error.lacks_slot_map_right())
            {
                return Err(error.clone());
            }
        }
        Ok(read)
    }

    /// Reads records, each atomically and all in one round trip: idle time before anything touches
    /// the value, then type, expiry, deadline, memory and the value's head. Plain commands are not
    /// atomic and read neither idle time nor memory. Returns one result per record, in order: a
    /// record that cannot be read has an error of its own, even if its node does not answer. If a
    /// record is partly moved to another node, its keys are read one by one.
    ///
    /// # Errors
    /// Plain commands: the server could not be asked. Otherwise each record has its own error.
    pub async fn read_each(
        &mut self,
        groups: &[RedisKeys],
        head: ReadLimit,
    ) -> Result<Vec<ReadResult>, StoreError> {
        if let Some(read) = self.read_in_one_call(groups, head).await? {
            return Ok(read);
        }
        let read = self.read_with(groups, head, ReadDetail::Usual).await?;
        self.read_half_moved(groups, read, head, ReadDetail::Usual).await
    }

    /// Reads records as [`RecordReader::read_each`] does, but without idle time and memory, and
    /// many in one call of the script. This is for the hashes of a scan, because no plain command
    /// reads part of a field, and for the candidates of each schema.
    ///
    /// # Errors
    /// Plain commands: the server could not be asked. Otherwise each record has its own error.
    pub(in crate::store) async fn read_many(
        &mut self,
        groups: &[RedisKeys],
        head: ReadLimit,
    ) -> Result<Vec<ReadResult>, StoreError> {
        let keys_per_record = groups.first().map_or(1, Vec::len).max(1);
        let records_per_call = (MAX_KEYS / keys_per_record).max(1);
        let calls: Vec<_> = groups.chunks(records_per_call).collect();
        let keys_of_calls: Vec<RedisKeys> = calls.iter().map(|call| call.concat()).collect();
        let replies = self.read_with(&keys_of_calls, head, ReadDetail::Brief).await?;
        let mut read = Vec::with_capacity(groups.len());
        for (call, reply) in calls.into_iter().zip(replies) {
            match reply {
                Ok(all) => read.extend(split_by_record(call, all)),
                // Do not ask a node again that did not answer.
                Err(error) if error.lost_the_reply() => {
                    read.extend(vec![Err(error); call.len()]);
                }
                // The Redis user may not read one of the records, or another node serves it.
                Err(_) => {
                    let each = self.read_with(call, head, ReadDetail::Brief).await?;
                    read.extend(self.read_half_moved(call, each, head, ReadDetail::Brief).await?);
                }
            }
        }
        Ok(read)
    }

    /// Reads a few records in one call of the script. `None` if one call cannot read them all,
    /// because the Redis user may not read one, because they are on several nodes, or because only
    /// plain commands work.
    async fn read_in_one_call(
        &mut self,
        groups: &[RedisKeys],
        head: ReadLimit,
    ) -> Result<Option<Vec<ReadResult>>, StoreError> {
        // Whole values are read one record per call, because they may be large, and a server serves
        // no other client during a call.
        if !(2..=MAX_IN_ONE_CALL).contains(&groups.len())
            || head == ReadLimit::Whole
            || self.client.is_cluster()
        {
            return Ok(None);
        }
        let read = self.read_with(&[groups.concat()], head, ReadDetail::Usual).await;
        // The reply showed that the server is in a cluster, where each node answers for its own
        // records.
        if self.client.is_cluster() {
            return Ok(None);
        }
        match read?.pop() {
            Some(Ok(all)) if all.atomic => Ok(Some(split_by_record(groups, all))),
            Some(Err(error)) if error.lost_the_reply() => Ok(Some(vec![Err(error); groups.len()])),
            _ => Ok(None),
        }
    }

    /// Reads records key by key if they cannot be read in one step because their slot is being
    /// moved. No node then has all the keys, or knows that there are no others.
    async fn read_half_moved(
        &mut self,
        groups: &[RedisKeys],
        read: Vec<ReadResult>,
        head: ReadLimit,
        detail: ReadDetail,
    ) -> Result<Vec<ReadResult>, StoreError> {
        let mut all = Vec::with_capacity(read.len());
        for (redis_keys, seen) in groups.iter().zip(read) {
            let is_half_moved =
                redis_keys.len() > 1 && seen.as_ref().is_err_and(StoreError::is_redirect);
            if !is_half_moved {
                all.push(seen);
                continue;
            }
            let each: Vec<_> = redis_keys.iter().map(|redis_key| vec![redis_key.clone()]).collect();
            let mut read = Vec::with_capacity(each.len());
            for seen in self.read_with(&each, head, detail).await? {
                read.push((1, seen));
            }
            all.extend(join_by_record(std::slice::from_ref(redis_keys), read));
        }
        Ok(all)
    }

    /// Reads records with the script, or with plain commands if scripts are not possible. The
    /// method that works is kept for the next read.
    ///
    /// # Errors
    /// Plain commands: the server could not be asked. Otherwise each record has its own error.
    pub(in crate::store) async fn read_with(
        &mut self,
        groups: &[RedisKeys],
        head: ReadLimit,
        detail: ReadDetail,
    ) -> Result<Vec<ReadResult>, StoreError> {
        loop {
            let command = match self.method {
                ReadMethod::ReadOnlyScript => "EVAL_RO",
                ReadMethod::Script => "EVAL",
                ReadMethod::Commands => {
                    let mut read = self.read_by_commands(groups, head).await?;
                    // A scan reads its deadlines itself.
                    if detail != ReadDetail::Brief {
                        let for_change =
                            detail == ReadDetail::Checksums || head == ReadLimit::Whole;
                        self.read_identities(&mut read, for_change).await;
                    }
                    return Ok(read);
                }
            };
            let units = self.atomic_units(groups);
            let replies = self.call_script(command, &units, head, detail).await;
            if self.atomic_units(groups) != units {
                // A reply showed that the server is in a cluster, which may store the keys of a
                // record in different slots.
                continue;
            }
            if let Some(method) = self.next_method(&replies) {
                self.method = method;
                continue;
            }
            let keeps_idle_times = self.keeps_idle_times();
            let mut read = Vec::with_capacity(units.len());
            for (reply, redis_keys) in replies.into_iter().zip(&units) {
                let seen = match reply {
                    Ok(reply) => match observation(reply, redis_keys, keeps_idle_times) {
                        Some(seen) => Ok(seen),
                        None => Err(self.client.unexpected(command)),
                    },
                    Err(error) => Err(error),
                };
                read.push((redis_keys.len(), seen));
            }
            self.read_far_deadlines(&mut read).await;
            return Ok(join_by_record(groups, read));
        }
    }

    /// Reads the expiries that are too far in the future for Lua's numbers. If one cannot be read,
    /// the key's state remains unchanged.
    async fn read_far_deadlines(&self, read: &mut [(usize, ReadResult)]) {
        let mut pipeline = redis::pipe();
        let mut far = Vec::new();
        for (_, seen) in read {
            let Ok(seen) = seen else { continue };
            for key in &mut seen.keys {
                if key.deadline.millis().is_some_and(|at| at >= FARTHEST_MS) {
                    pipeline.add(&[b"PEXPIRETIME", &key.redis_key]);
                    pipeline.add(&[b"PTTL", &key.redis_key]);
                    pipeline.add(&[b"TIME"]);
                    far.push(key);
                }
            }
        }
        if far.is_empty() {
            return;
        }
        let mut replies = PipelineReplies::to(&self.client, &pipeline).await;
        for key in far {
            let at = replies.next_number();
            let left = replies.next_number();
            let now = read_time(&mut replies).await.unwrap_or_default();
            let deadline = match (at, left) {
                (Some(at), _) => Deadline::from_pexpiretime(at),
                (None, Some(left)) => Deadline::from_pttl(left, now, now),
                (None, None) => continue,
            };
            // If the key now expires earlier, it is another one than the one that was read.
            if deadline.is_same(key.deadline) {
                key.deadline = deadline;
            }
        }
    }

    /// The Redis keys that one call reads: those of a record, or each separately if a cluster
    /// stores them in different slots.
    fn atomic_units(&self, groups: &[RedisKeys]) -> Vec<RedisKeys> {
        let mut units = Vec::with_capacity(groups.len());
        for redis_keys in groups {
            if self.client.are_in_different_slots(redis_keys) {
                units.extend(redis_keys.iter().map(|redis_key| vec![redis_key.clone()]));
            } else {
                units.push(redis_keys.clone());
            }
        }
        units
    }

    /// Calls the script for each of these units, all in one write per node.
    async fn call_script(
        &self,
        command: &str,
        units: &[RedisKeys],
        head: ReadLimit,
        detail: ReadDetail,
    ) -> Vec<Result<Value, StoreError>> {
        // Only a read before a change loads the script, for the reasons at `FEW_CALLS`.
        if detail == ReadDetail::Checksums && units.len() > FEW_CALLS {
            let replies = self
                .client
                .ask_script_each(scripts::READ_RECORDS, |script: ScriptRef<'_>| {
                    read_calls(command, script, units, head, detail)
                })
                .await;
            return replies.unwrap_or_else(|error| vec![Err(error); units.len()]);
        }
        let mut pipeline = Pipeline::with_capacity(units.len());
        for call in read_calls(command, ScriptRef::Text, units, head, detail) {
            pipeline.add_command(call);
        }
        self.client.ask_each(&pipeline).await
    }

    /// The method to try next if the server does not know this one's command, or the Redis user may
    /// not send it.
    fn next_method(&self, replies: &[Result<Value, StoreError>]) -> Option<ReadMethod> {
        let is_refused = replies.iter().any(|reply| {
            reply.as_ref().is_err_and(|error| error.is_unknown_command() || error.is_of_command())
        });
        match self.method {
            ReadMethod::ReadOnlyScript if is_refused => Some(ReadMethod::Script),
            ReadMethod::Script if is_refused => Some(ReadMethod::Commands),
            _ => None,
        }
    }
}

/// The calls of the read script, one for each of these units.
fn read_calls(
    command: &str,
    script: ScriptRef<'_>,
    units: &[RedisKeys],
    head: ReadLimit,
    detail: ReadDetail,
) -> Vec<Cmd> {
    let head_length = match head {
        ReadLimit::Bytes(bytes) => i64::try_from(bytes).unwrap_or(i64::MAX),
        ReadLimit::Whole => -1,
    };
    let mut calls: Vec<Cmd> = Vec::with_capacity(units.len());
    for redis_keys in units {
        let mut call = script.command(command, scripts::READ_RECORDS);
        call.arg(redis_keys.len()).arg(redis_keys).arg(head_length).arg(detail.as_arg());
        calls.push(call);
    }
    calls
}

/// Combines the Redis keys of each record. A record that was read in several calls is not atomic.
/// If one unit cannot be read, its error is that of the record.
///
/// `read` has the result of each unit (see [`RecordReader::atomic_units`]), with the number of
/// Redis keys in it.
fn join_by_record(groups: &[RedisKeys], read: Vec<(usize, ReadResult)>) -> Vec<ReadResult> {
    let mut read = read.into_iter();
    let mut joined = Vec::with_capacity(groups.len());
    for redis_keys in groups {
        let Some((mut count, mut record)) = read.next() else { break };
        // Every unit of the record is consumed, even after an error, because the next record's
        // units follow.
        while count < redis_keys.len() {
            let Some((more, next)) = read.next() else { return joined };
            count += more;
            record = match (record, next) {
                (Ok(mut seen), Ok(mut next)) => {
                    seen.keys.append(&mut next.keys);
                    Ok(Observation { atomic: false, ..seen })
                }
                (_, Err(error)) | (Err(error), _) => Err(error),
            };
        }
        joined.push(record);
    }
    joined
}

/// Splits the reply of one call into its records.
fn split_by_record(groups: &[RedisKeys], all: Observation) -> Vec<ReadResult> {
    let mut keys = all.keys.into_iter();
    let mut read = Vec::with_capacity(groups.len());
    for redis_keys in groups {
        let keys: Vec<_> = keys.by_ref().take(redis_keys.len()).collect();
        let atomic = all.atomic || keys.len() == 1;
        read.push(Ok(Observation { server_ms: all.server_ms, atomic, keys }));
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::{Content, Deadline, KeyState, TimeLeft};

    fn keys(names: &[&str]) -> RedisKeys {
        names.iter().map(|name| name.as_bytes().to_vec()).collect()
    }

    fn seen(name: &str) -> ReadResult {
        let content = Content::text(name.as_bytes().to_vec());
        let key = KeyState::new(name.as_bytes(), content, TimeLeft::NoExpiry, Deadline::Never);
        Ok(Observation { server_ms: None, keys: vec![key], atomic: true })
    }

    fn silent() -> ReadResult {
        Err(StoreError::Unreachable { target: "a:1/0".to_owned(), why: "refused".to_owned() })
    }

    /// Rule: no record shows the Redis keys of another one, whichever node does not answer.
    #[test]
    fn a_key_that_cannot_be_read_leaves_the_records_after_it_as_they_are() {
        let records = [keys(&["lock:a", "done:a"]), keys(&["lock:b", "done:b"])];
        for (lock, done) in [(silent(), seen("done:a")), (seen("lock:a"), silent())] {
            let read = vec![(1, lock), (1, done), (1, seen("lock:b")), (1, seen("done:b"))];
            let joined = join_by_record(&records, read);
            assert_eq!(joined.len(), 2);
            assert!(joined[0].is_err());
            let second = joined[1].as_ref().unwrap();
            let names: Vec<_> = second.keys.iter().map(|key| key.redis_key.clone()).collect();
            assert_eq!(names, records[1]);
            assert!(!second.atomic);
        }
    }

    #[test]
    fn a_record_that_was_read_in_one_step_is_atomic() {
        let read =
            join_by_record(&[keys(&["a"]), keys(&["b"])], vec![(1, seen("a")), (1, silent())]);
        assert!(read[0].as_ref().is_ok_and(|seen| seen.atomic) && read[1].is_err());
    }
}
