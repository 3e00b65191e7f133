//! Reverts a change: a record gets its previous values, if it is still as the change left it.

use super::guarded_step::GuardedOutcome;
use super::set_words::Words;
use super::writer::Writer;
use crate::domain::record::{Content, KeyState, Observation, is_plain_hash};
use crate::store::cluster::client::Client;
use crate::store::error::StoreError;
use crate::store::read::key_query::ReadLimit;
use crate::store::read::reader::ReadResult;

/// The value of a Redis key before a change, which a revert restores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PriorValue {
    /// The current value.
    Same,
    /// The key was absent, or its previous value has expired since.
    Nothing,
    /// The same bytes, with an expiry at this time, in milliseconds since the epoch; `None` never
    /// expires.
    Until(Option<u64>),
    /// The current value is not written, and only expires at this time, in milliseconds since the
    /// epoch.
    Expiring(u64),
    /// The output of DUMP, with an expiry at this time.
    Dump(Vec<u8>, Option<u64>),
}

impl PriorValue {
    /// When the restored value expires; `None` if it never does, or if no value is restored.
    pub fn expires_at_ms(&self) -> Option<u64> {
        match self {
            Self::Until(at) | Self::Dump(_, at) => *at,
            Self::Expiring(at) => Some(*at),
            Self::Same | Self::Nothing => None,
        }
    }

    /// The command that restores it over the current value.
    fn command(&self, now: &KeyState) -> Option<Words> {
        let key = now.redis_key.clone();
        match self {
            Self::Same => None,
            Self::Nothing => Some(vec![b"DEL".to_vec(), key]),
            Self::Until(at) => Some(set(now, *at)),
            Self::Expiring(at) => Some(expire(&key, Some(*at))),
            Self::Dump(dump, at) => {
                // RESTORE takes 0 for a key that never expires.
                let at = at.unwrap_or(0).to_string().into_bytes();
                let mut words = vec![b"RESTORE".to_vec(), key, at, dump.clone()];
                words.extend([b"REPLACE".to_vec(), b"ABSTTL".to_vec()]);
                Some(words)
            }
        }
    }
}

fn set(key: &KeyState, at: Option<u64>) -> Words {
    let head = match &key.content {
        Content::Absent => return vec![b"DEL".to_vec(), key.redis_key.clone()],
        // A hash is never written; its current value stays, and gets the previous expiry.
        Content::Hash(_) | Content::Other(_) => return expire(&key.redis_key, at),
        Content::Text { head, .. } => head,
    };
    let mut words = vec![b"SET".to_vec(), key.redis_key.clone(), head.clone()];
    if let Some(at) = at {
        words.extend([b"PXAT".to_vec(), at.to_string().into_bytes()]);
    }
    words
}

fn expire(redis_key: &[u8], at: Option<u64>) -> Words {
    match at {
        None => vec![b"PERSIST".to_vec(), redis_key.to_vec()],
        Some(at) => vec![b"PEXPIREAT".to_vec(), redis_key.to_vec(), at.to_string().into_bytes()],
    }
}

impl Writer {
    /// Restores each Redis key of a record to its previous value, if the whole record is still as
    /// it was seen.
    ///
    /// # Errors
    /// Why the record was not reverted.
    pub async fn revert(
        &self,
        now: &Observation,
        prior: &[PriorValue],
    ) -> Result<GuardedOutcome, StoreError> {
        let mut commands = Vec::with_capacity(prior.len());
        for (key, prior) in now.keys.iter().zip(prior) {
            commands.extend(prior.command(key));
        }
        // The fields of a hash identify it for the next undo, whatever order they come back in.
        let mut hash_key_indexes = Vec::new();
        for (index, key) in now.keys.iter().enumerate() {
            if matches!(key.content, Content::Hash(_)) {
                hash_key_indexes.push(index);
            }
        }
        let outcome = self.execute_guarded(now, commands, &hash_key_indexes).await?;
        Ok(outcome.of_own_commands(&self.name()))
    }

    /// Restores the record before a call, if the record is still as the call left it. Only strings
    /// can be restored.
    ///
    /// # Errors
    /// Why the record is not as before, in words.
    pub async fn put_back(&self, before: &Observation, after: &Observation) -> Result<(), String> {
        if let Some(other) = before.keys.iter().find_map(|key| key.content.other_type()) {
            return Err(format!("idemctl does not write a {other}"));
        }
        let mut commands = Vec::with_capacity(before.keys.len());
        for key in &before.keys {
            commands.push(set(key, key.deadline.millis()));
        }
        let outcome = self.execute_guarded(after, commands, &[]).await;
        match outcome.map(|outcome| outcome.of_own_commands(&self.name())) {
            Ok(GuardedOutcome::Made { reply: Ok(_), .. }) => Ok(()),
            Ok(GuardedOutcome::Made { reply: Err(error), .. }) => Err(error.to_string()),
            Ok(GuardedOutcome::ChangedMeanwhile) => Err("the record changed meanwhile".to_owned()),
            Ok(GuardedOutcome::Lost { why, .. }) => Err(why.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Client {
    /// Reads records on their masters, with all bytes of each value, and on request the checksum of
    /// its DUMP.
    ///
    /// # Errors
    /// The server could not be reached at all.
    pub async fn look_whole(
        &self,
        records: &[Vec<Vec<u8>>],
        checksums: bool,
    ) -> Result<Vec<ReadResult>, StoreError> {
        let mut seen = self.reader().read_each(records, ReadLimit::Whole).await?;
        if !checksums {
            return Ok(seen);
        }
        let mut places = Vec::new();
        let mut redis_keys = Vec::new();
        for (record, seen) in seen.iter().enumerate() {
            let Ok(seen) = seen else { continue };
            for (key, seen) in seen.keys.iter().enumerate() {
                if matches!(seen.content, Content::Text { .. } | Content::Hash(_)) {
                    places.push((record, key));
                    redis_keys.push(records[record][key].as_slice());
                }
            }
        }
        for ((record, key), dump) in places.into_iter().zip(self.dump_each(&redis_keys).await?) {
            match (&mut seen[record], dump) {
                (Ok(seen), Ok(dump)) => {
                    let dump = dump.unwrap_or_default();
                    let checksum = dump.last_chunk().copied();
                    let key = &mut seen.keys[key];
                    if matches!(key.content, Content::Text { .. }) {
                        key.checksum = checksum;
                    } else {
                        // The fields were read with their checksum. If the DUMP after it has
                        // another one, it is not the DUMP of these fields.
                        key.has_plain_fields = is_plain_hash(&dump) && key.checksum == checksum;
                    }
                }
                (seen @ Ok(_), Err(error)) => *seen = Err(error),
                (Err(_), _) => {}
            }
        }
        Ok(seen)
    }
}
