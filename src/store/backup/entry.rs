//! What a backup holds of a record: which Redis keys change, what each holds, what is beside them, and whose record it is.

use serde::{Deserialize, Serialize};

use super::payload;
use crate::domain::record::{Content, Deadline, Expiry, KeyIdentity, KeyState, Observation};
use crate::domain::schema::Role;

/// The format of a backup that is written: an entry for each record, and a closing line.
pub(super) const FORMAT: u64 = 2;

/// The format of idemctl 0.2, which is read: an entry for each Redis key, and no closing line.
pub(super) const FORMAT_1: u64 = 1;

/// The most Redis keys that are backed up at a time: a sync of the disk costs as much as several calls.
pub(in crate::store) const MOST_SAVED: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    pub redis_key: Vec<u8>,
    pub dump: Vec<u8>,
    /// The milliseconds it had left; `None` without expiry.
    pub ttl_ms: Option<u64>,
    /// When it expires, in milliseconds since the epoch by the server's clock.
    pub expires_at_ms: Option<u64>,
}

/// Whose record a saved Redis key was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    pub schema: String,
    pub key: Vec<u8>,
    pub state: &'static str,
}

impl Saved {
    /// The same without a DUMP, where a string was read as a whole and is no long one.
    pub(in crate::store) fn of_whole(seen: &KeyState) -> Option<Self> {
        match &seen.content {
            Content::Text { head, .. } if seen.content.is_whole() => {
                Some(Self::of(seen, payload::of_string(head)?))
            }
            _ => None,
        }
    }

    /// The identity of the Redis key once the key is back: by the string, or by the checksum of a DUMP that does not show the
    /// string. A server may write the same string as another DUMP.
    pub(crate) fn identity(&self) -> KeyIdentity {
        let Some(text) = payload::string_in(&self.dump) else {
            return KeyIdentity::of_dump(&self.dump, self.expires_at_ms);
        };
        let deadline = self.expires_at_ms.map_or(Deadline::Never, Deadline::At);
        KeyIdentity::of(&KeyState::new(
            &self.redis_key,
            Content::text(text.to_vec()),
            Expiry::Never,
            deadline,
        ))
    }

    /// What a Redis key held, with the deadline that the look saw: the change compares with it.
    pub(in crate::store) fn of(seen: &KeyState, dump: Vec<u8>) -> Self {
        Self {
            redis_key: seen.redis_key.clone(),
            dump,
            ttl_ms: seen.expiry.millis(),
            expires_at_ms: seen.deadline.millis(),
        }
    }
}

/// An entry as it is written.
#[derive(Debug, Clone)]
pub struct BackupEntry<'a> {
    pub(super) about: &'a About,
    /// The Redis keys that may change, with what they are for if the record has two.
    pub(super) keys: Vec<(Option<Role>, &'a Saved)>,
    /// The record's other Redis keys.
    pub(super) beside: Vec<Beside>,
}

impl<'a> BackupEntry<'a> {
    /// The entry of a record as it was seen, of which the Redis keys of these roles may change.
    pub(in crate::store) fn new(
        about: &'a About,
        seen: &Observation,
        saved: impl Iterator<Item = (usize, &'a Saved)>,
    ) -> Self {
        let mut entry = Self { about, keys: Vec::new(), beside: Vec::new() };
        let mut is_saved = vec![false; seen.keys.len()];
        for (role, saved) in saved {
            is_saved[role] = true;
            entry.keys.push((role_of(seen, role), saved));
        }
        for (role, key) in seen.keys.iter().enumerate() {
            if let Some(is) = role_of(seen, role).filter(|_| !is_saved[role]) {
                entry.beside.push(Beside::of(is, key));
            }
        }
        entry
    }
}

/// What a Redis key of a record with two is for: the lock comes first.
fn role_of(seen: &Observation, role: usize) -> Option<Role> {
    match (seen.keys.len(), role) {
        (2, 0) => Some(Role::Lock),
        (2, 1) => Some(Role::Result),
        _ => None,
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// What that Redis key is for: the lock or the result.
    pub role: Role,
    pub redis_key: Vec<u8>,
    pub there: bool,
}

impl Beside {
    /// A Redis key of a record as it was seen, beside those that were backed up.
    pub(super) fn of(role: Role, seen: &KeyState) -> Self {
        Self { role, redis_key: seen.redis_key.clone(), there: seen.content != Content::Absent }
    }

    /// The Redis key where nothing may stand now, for what was backed up to come back beside it.
    ///
    /// A lock keeps a result away, whoever holds the lock: a worker is at it, and overwrites the result when it is done.
    /// A result keeps a lock away: the operation has been completed since, and the lock would let its old worker complete
    /// once more, over that result. Where the result stood beside the lock before, the two come back as they were.
    pub fn bars(&self) -> Option<&[u8]> {
        let is_barred = self.role == Role::Lock || !self.there;
        is_barred.then_some(self.redis_key.as_slice())
    }
}

/// The run of a command that wrote a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Maker {
    /// The operation, as the audit log names it.
    pub(crate) op: String,
    pub(crate) command: String,
    /// When it began, RFC 3339 in UTC.
    pub(crate) at: String,
}
