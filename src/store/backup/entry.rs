//! The entry of a record in a backup: the Redis keys that change with their values, the other keys,
//! and the record's name.

use serde::{Deserialize, Serialize};

use super::payload;
use crate::domain::record::{
    Content, Deadline, KeyIdentity, KeyState, Observation, Record, RecordName, TimeLeft,
};
use crate::domain::schema::Role;

/// The format of backups: one entry per record, and a closing line.
pub(super) const FORMAT: u64 = 2;

/// The most Redis keys that are backed up at a time, because a sync of the disk costs as much as
/// several calls.
pub(in crate::store) const MAX_SAVED: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    pub redis_key: Vec<u8>,
    pub dump: Vec<u8>,
    /// The milliseconds that the key had left; `None` if it never expires.
    pub ttl_ms: Option<u64>,
    /// When it expires, in milliseconds since the epoch by the server's clock.
    pub expires_at_ms: Option<u64>,
}

/// The record to which a saved Redis key belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordLabel {
    pub name: RecordName,
    pub state: &'static str,
    /// The roles of its Redis keys, in the order in which they are read; empty if it has only one.
    pub roles: Vec<Role>,
}

impl RecordLabel {
    pub(crate) fn of(record: &Record) -> Self {
        Self {
            name: RecordName::of(record),
            state: record.state.as_str(),
            roles: record.schema.roles(),
        }
    }
}

impl Saved {
    /// The saved key without a DUMP from the server, if it is a string that was read as a whole and
    /// is not too long.
    pub(in crate::store) fn of_whole(seen: &KeyState) -> Option<Self> {
        match &seen.content {
            Content::Text { head, .. } if seen.content.is_whole() => {
                Some(Self::of(seen, payload::of_string(head)?))
            }
            _ => None,
        }
    }

    /// The identity of the Redis key after it is restored. A string is identified by its bytes, and
    /// a hash by its fields, because a server may write the same value as a different DUMP. Any
    /// other DUMP is identified by its checksum.
    pub(crate) fn identity(&self) -> KeyIdentity {
        let content = if let Some(text) = payload::string_in(&self.dump) {
            Content::text(text.to_vec())
        } else if let Some(fields) = payload::fields_in(&self.dump) {
            Content::hash(fields)
        } else {
            return KeyIdentity::of_dump(&self.dump, self.expires_at_ms);
        };
        let deadline = match self.expires_at_ms {
            Some(at) => Deadline::At(at),
            None => Deadline::Never,
        };
        let key = KeyState::new(&self.redis_key, content, TimeLeft::NoExpiry, deadline);
        let is_hash = matches!(key.content, Content::Hash(_));
        let checksum = if is_hash { self.dump.last_chunk().copied() } else { None };
        KeyIdentity::of(&KeyState { checksum, has_plain_fields: is_hash, ..key })
    }

    /// The value of a Redis key, with the deadline from the read, because the change compares with
    /// that.
    pub(in crate::store) fn of(seen: &KeyState, dump: Vec<u8>) -> Self {
        let expires_at_ms = seen.deadline.millis();
        // The fields of a hash may have TTLs although it has none, and DUMP contains them.
        let ttl_ms = if expires_at_ms.is_some() { seen.time_left.millis() } else { None };
        Self { redis_key: seen.redis_key.clone(), dump, ttl_ms, expires_at_ms }
    }
}

/// An entry to be written.
#[derive(Debug, Clone)]
pub struct BackupEntry<'a> {
    pub(super) label: &'a RecordLabel,
    /// The Redis keys that may change, with their roles if the record has several.
    pub(super) keys: Vec<(Option<Role>, &'a Saved)>,
    /// The record's other Redis keys.
    pub(super) beside: Vec<Beside>,
}

impl<'a> BackupEntry<'a> {
    /// The entry of a record as it was seen. The Redis keys with these indexes may change.
    pub(in crate::store) fn new(
        label: &'a RecordLabel,
        seen: &Observation,
        saved: impl Iterator<Item = (usize, &'a Saved)>,
    ) -> Self {
        let mut entry = Self { label, keys: Vec::new(), beside: Vec::new() };
        // A record of a single Redis key has no roles.
        let mut is_saved = vec![false; label.roles.len()];
        for (key_index, saved) in saved {
            if let Some(is_saved) = is_saved.get_mut(key_index) {
                *is_saved = true;
            }
            entry.keys.push((label.roles.get(key_index).copied(), saved));
        }
        for (key_index, key) in seen.keys.iter().enumerate() {
            if let Some(role) = label.roles.get(key_index)
                && !is_saved[key_index]
            {
                entry.beside.push(Beside::of(*role, key));
            }
        }
        entry
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// The role of that Redis key.
    pub role: Role,
    pub redis_key: Vec<u8>,
    pub there: bool,
}

/// The same in a line of a backup.
#[derive(Serialize, Deserialize)]
pub(super) struct BesideFields {
    pub(super) role: String,
    pub(super) redis_key_base64: String,
    pub(super) there: bool,
}

impl Beside {
    /// A Redis key of a record as it was seen that is not backed up itself.
    pub(super) fn of(role: Role, seen: &KeyState) -> Self {
        Self { role, redis_key: seen.redis_key.clone(), there: !seen.content.is_absent() }
    }

    /// This Redis key, if it must be absent for a restore.
    ///
    /// An existing lock prevents the restore of a result, whoever holds the lock, because its
    /// worker is still running and will overwrite the result. An existing result prevents the
    /// restore of a lock. The operation has been completed since, and the restored lock would let
    /// the old worker store another result over it. If the result was already there beside the
    /// lock, both are restored as they were.
    pub fn bars(&self) -> Option<&[u8]> {
        let is_barred = self.role == Role::Lock || !self.there;
        if is_barred { Some(&self.redis_key) } else { None }
    }
}

/// The run of a command that wrote a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Maker {
    /// The operation's name in the audit log.
    pub(crate) op: String,
    pub(crate) command: String,
    /// When it began, in RFC 3339 and UTC.
    pub(crate) at: String,
}
