//! Reads records with plain commands. These are the records that a scan cannot read on a node's own
//! connection, and all records if the Redis user may not run scripts.

use redis::{Pipeline, Value};

use super::for_change::MAX_CHECKSUM_BYTES;
use super::key_query::{
    CommandQueue as _, ExpiryCommand, KeyQuery, PipelineReplies, ReadLimit, hash_of,
};
use super::reader::{ReadResult, RecordReader, RedisKeys};
use crate::domain::record::{
    Content, Deadline, Field, Hash, KeyState, Observation, TimeLeft, has_expiring_fields,
};
use crate::store::connection::reply;
use crate::store::error::StoreError;

/// The most fields of a hash that are read, the same as in `fields.lua`.
pub(super) const MAX_FIELDS: u64 = 256;

/// How often deadlines are measured; see `deadline.lua`.
const MAX_MEASUREMENTS: usize = 50;

/// The most commands that a query sends for a record, to allocate a pipeline.
const COMMANDS_PER_RECORD: usize = 4;

impl RecordReader {
    /// Reads records with plain commands: heads and expiries in one round trip, then the lengths of
    /// longer strings, and the fields of hashes. The Redis keys of a record are read one after the
    /// other. Each record that cannot be read has its own error.
    ///
    /// # Errors
    /// The server could not be asked at all.
    pub async fn read_by_commands(
        &self,
        groups: &[RedisKeys],
        head: ReadLimit,
    ) -> Result<Vec<ReadResult>, StoreError> {
        let mut read = self.read_query(groups, KeyQuery::heads(head)).await;
        self.read_lengths(read.iter_mut().flatten()).await?;
        let keys = read.iter_mut().flatten().flat_map(|seen| &mut seen.keys).collect();
        self.read_fields(keys, head).await;
        Ok(read)
    }

    /// Sends a query for each Redis key, in one round trip. Each record that cannot be read has its
    /// own error.
    pub(in crate::store) async fn read_query(
        &self,
        groups: &[RedisKeys],
        query: KeyQuery,
    ) -> Vec<ReadResult> {
        let mut pipeline = Pipeline::with_capacity(groups.len() * COMMANDS_PER_RECORD);
        for redis_keys in groups {
            query.ask(&mut pipeline, redis_keys);
        }
        let mut replies = PipelineReplies::to(self.client(), &pipeline).await;
        let mut read = Vec::with_capacity(groups.len());
        for redis_keys in groups {
            read.push(query.read(&mut replies, redis_keys).await.flatten());
        }
        read
    }

    /// Reads the lengths and types that are not known yet, in one round trip. If a node of a
    /// cluster does not answer, they stay unknown.
    ///
    /// # Errors
    /// The server could not be asked at all.
    pub async fn read_lengths(
        &self,
        seen: impl Iterator<Item = &mut Observation>,
    ) -> Result<(), StoreError> {
        let mut open = Vec::new();
        let mut pipeline = redis::pipe();
        for key in seen.flat_map(|seen| &mut seen.keys) {
            let command: &[u8] = match &key.content {
                Content::Text { length: None, .. } => b"STRLEN",
                Content::Other(kind) if kind.is_empty() => b"TYPE",
                _ => continue,
            };
            pipeline.add(&[command, &key.redis_key]);
            open.push(key);
        }
        // If one node of a cluster does not answer, the others can still be read.
        let replies = if self.client().is_cluster() {
            self.client().ask_each(&pipeline).await
        } else {
            self.client().ask_all(&pipeline).await?
        };
        for (key, reply) in open.into_iter().zip(replies) {
            match (&mut key.content, reply) {
                (Content::Text { head, length }, Ok(Value::Int(now))) => {
                    // The value may have changed since its beginning was read.
                    *length = Some(u64::try_from(now).unwrap_or(0).max(head.len() as u64));
                }
                (Content::Other(kind), Ok(value)) => *kind = reply::word(value).unwrap_or_default(),
                // The type changed meanwhile, or the Redis user may not ask for it. The content
                // stays as it was read.
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads the fields of the keys that are hashes: their number, their names, the lengths of
    /// their values, and the values that are short enough. Only a script can read part of a field's
    /// value. Anything that a node does not report stays unknown.
    async fn read_fields(&self, keys: Vec<&mut KeyState>, head: ReadLimit) {
        let mut hashes = Vec::new();
        for key in keys {
            if key.content.other_type() == Some("hash") {
                hashes.push(key);
            }
        }
        let redis_keys: Vec<Vec<u8>> = hashes.iter().map(|hash| hash.redis_key.clone()).collect();
        if redis_keys.is_empty() {
            return;
        }

        let mut pipeline = redis::pipe();
        for redis_key in &redis_keys {
            pipeline.add(&[b"HLEN", redis_key]);
        }
        let mut counts: Vec<Option<u64>> = Vec::with_capacity(redis_keys.len());
        for reply in self.ask_known(&pipeline).await {
            counts.push(match reply {
                Some(count) => unsigned(&count),
                None => None,
            });
        }

        let mut pipeline = redis::pipe();
        let mut few = Vec::new();
        for (index, count) in counts.iter().enumerate() {
            if let Some(count) = count
                && *count <= MAX_FIELDS
            {
                pipeline.add(&[b"HKEYS", &redis_keys[index]]);
                few.push(index);
            }
        }
        // Each name with the index of its hash.
        let mut names: Vec<(usize, Vec<u8>)> = Vec::new();
        for (index, reply) in few.into_iter().zip(self.ask_known(&pipeline).await) {
            let Some(reply) = reply else { continue };
            for name in reply::array(reply).unwrap_or_default() {
                if let Some(name) = reply::bytes(name) {
                    names.push((index, name));
                }
            }
        }

        let mut pipeline = redis::pipe();
        for (index, name) in &names {
            pipeline.add(&[b"HSTRLEN", &redis_keys[*index], name]);
        }
        let mut fields: Vec<(usize, Field)> = Vec::with_capacity(names.len());
        for ((index, name), reply) in names.into_iter().zip(self.ask_known(&pipeline).await) {
            if let Some(reply) = reply
                && let Some(length) = unsigned(&reply)
            {
                fields.push((index, Field { name, head: Vec::new(), length }));
            }
        }

        let mut pipeline = redis::pipe();
        let mut short = Vec::new();
        for (index, field) in &mut fields {
            let is_short = match head {
                ReadLimit::Whole => true,
                ReadLimit::Bytes(most) => field.length <= most as u64,
            };
            if is_short {
                pipeline.add(&[b"HGET", &redis_keys[*index], &field.name]);
                short.push(field);
            }
        }
        for (field, reply) in short.into_iter().zip(self.ask_known(&pipeline).await) {
            field.head = reply.and_then(reply::bytes).unwrap_or_default();
        }

        let mut by_hash: Vec<Vec<Field>> = vec![Vec::new(); hashes.len()];
        for (index, field) in fields {
            by_hash[index].push(field);
        }
        for ((hash, fields), count) in hashes.into_iter().zip(by_hash).zip(counts) {
            if let Some(count) = count {
                hash.content = Content::Hash(Box::new(Hash::new(fields, count)));
            }
        }
    }

    /// Reads what identifies Redis keys beside their values, as `read_records.lua` does: when they
    /// expire, by the clocks of their nodes, and for a change the checksums of long strings and of
    /// other types. Anything that a node does not report stays unknown.
    pub(super) async fn read_identities(&self, read: &mut [ReadResult], for_change: bool) {
        for seen in read.iter_mut().flatten() {
            for key in &mut seen.keys {
                for _ in 0..MAX_MEASUREMENTS {
                    if key.content.is_absent() {
                        break;
                    }
                    seen.server_ms = self.read_identity(key, for_change).await;
                    if key.deadline != Deadline::Unknown || seen.server_ms.is_none() {
                        break;
                    }
                }
            }
        }
    }

    /// Reads what identifies one Redis key. Returns the time by the clock of its node.
    async fn read_identity(&self, key: &mut KeyState, for_change: bool) -> Option<u64> {
        let mut expiry = ExpiryCommand::Pttl;
        if self.client().tells_deadlines().await {
            expiry = ExpiryCommand::Pexpiretime;
        }
        let mut pipeline = redis::pipe();
        pipeline.cmd("TIME");
        pipeline.cmd(expiry.name()).arg(&key.redis_key);
        pipeline.cmd("TIME");
        let needs_dump = match &key.content {
            Content::Hash(hash) => hash.has_all(),
            Content::Other(_) => {
                let command: [&[u8]; 2] = [b"MEMORY", b"USAGE"];
                let bytes = self.read_numbers(&command, &[&key.redis_key]).await;
                matches!(bytes[..], [Some(..=MAX_CHECKSUM_BYTES)])
            }
            content => !content.is_whole(),
        };
        if for_change && needs_dump {
            for command in ["DUMP", "HGETALL", "DUMP"] {
                pipeline.cmd(command).arg(&key.redis_key);
            }
        }
        let count = pipeline.len();
        let master = self.client().master_of(&key.redis_key).await.ok()?;
        let mut replies = self.client().ask_node(&master, pipeline, count).await.into_iter();
        let mut next = || replies.next()?.ok();
        let before = next().and_then(reply::millis);
        let expires = reply::integer(&next()?)?;
        let after = next().and_then(reply::millis);
        if expires == -2 {
            key.content = Content::Absent;
        }
        if expiry == ExpiryCommand::Pexpiretime {
            key.deadline = Deadline::from_pexpiretime(expires);
            key.time_left = TimeLeft::until(key.deadline, after.unwrap_or_default());
        } else {
            key.deadline = Deadline::measured(expires, before, after);
            key.time_left = TimeLeft::from_pttl(expires);
        }
        let dump = next().and_then(reply::bytes);
        let fields = next().and_then(hash_of);
        // Fields that were read between two equal DUMPs are those of the DUMP.
        if let Some(dump) = dump
            && !has_expiring_fields(&dump)
            && next().and_then(reply::bytes).as_ref() == Some(&dump)
        {
            key.checksum = dump.last_chunk().copied();
            if let (Content::Hash(_), Some(fields)) = (&key.content, fields) {
                key.content = fields;
            }
        }
        after
    }

    /// Sends commands; `None` for a reply that is an error.
    async fn ask_known(&self, pipeline: &Pipeline) -> Vec<Option<Value>> {
        if pipeline.is_empty() {
            return Vec::new();
        }
        self.client().ask_each(pipeline).await.into_iter().map(Result::ok).collect()
    }
}

fn unsigned(reply: &Value) -> Option<u64> {
    u64::try_from(reply::integer(reply)?).ok()
}
