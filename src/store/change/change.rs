//! A change to a record, and its outcome.

use crate::domain::record::{KeyState, Observation, TimeLeft};
use crate::store::backup::entry::RecordLabel;

/// A change to a record that must still be as it was seen. All of its changed Redis keys change in
/// one call.
#[derive(Debug, Clone)]
pub struct Change {
    /// The Redis keys that change, by their indexes in the record. On a cluster, they must be in
    /// one slot when they are sent (`Writer::split_off_other_slots`).
    pub changed_indexes: Vec<usize>,
    /// The Redis keys that are backed up first, as one entry, by their indexes in the record.
    pub backed_up: Vec<usize>,
    /// The record as it was seen: of a string all bytes, or the beginning, the length and the
    /// checksum; of any other type the checksum. If that was not read, the change is not sent.
    pub seen: Observation,
    /// The record's name and schema, for the backup.
    pub label: RecordLabel,
}

impl Change {
    /// A change of the Redis keys with these indexes, which are also backed up.
    pub fn new(changed_indexes: Vec<usize>, seen: Observation, label: RecordLabel) -> Self {
        Self { backed_up: changed_indexes.clone(), changed_indexes, seen, label }
    }

    /// The first Redis key that changes, which identifies the change.
    pub fn redis_key(&self) -> &[u8] {
        &self.first().redis_key
    }

    /// The first Redis key that changes, as it was seen.
    pub(super) fn first(&self) -> &KeyState {
        &self.seen.keys[self.changed_indexes[0]]
    }

    /// The Redis keys that change, as they were seen.
    pub fn changed_keys(&self) -> impl Iterator<Item = &KeyState> {
        self.changed_indexes.iter().map(|key_index| &self.seen.keys[*key_index])
    }

    /// True if the Redis keys existed, and enough of the record was read to compare it.
    pub(super) fn can_be_compared(&self) -> bool {
        !self.changed_indexes.is_empty()
            && self.changed_keys().all(|key| !key.content.is_absent())
            && self.seen.keys.iter().all(KeyState::is_comparable)
    }
}

/// The action on the Redis keys of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAction {
    Remove,
    /// Sets a TTL of at least this many milliseconds. A key with as much time left, or without
    /// expiry, is kept.
    Prolong(u64),
    /// Sets a TTL of at most this many milliseconds. A key with no more time left is kept.
    Shorten(u64),
}

impl KeyAction {
    /// The TTL that the action sets, in milliseconds.
    pub fn ttl(self) -> Option<u64> {
        match self {
            Self::Remove => None,
            Self::Prolong(ttl) | Self::Shorten(ttl) => Some(ttl),
        }
    }

    /// True if a Redis key with this much time left already meets the requested TTL.
    pub(super) fn keeps(self, left: TimeLeft) -> bool {
        let left = left.millis().unwrap_or(u64::MAX);
        match self {
            Self::Remove => false,
            Self::Prolong(ttl) => left >= ttl,
            Self::Shorten(ttl) => left <= ttl,
        }
    }
}

/// The outcome of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The change was made, and the Redis key now expires at this time, in milliseconds since the
    /// epoch by the clock of its node.
    Expires(u64),
    /// The change was made: its reply was lost, but a later read showed it.
    FoundDone,
    /// Some Redis keys of a record in several slots of a cluster were changed. The others were not,
    /// or may not have been.
    Partly,
    /// The Redis key already met the requested TTL; nothing was done.
    Kept,
    /// The record is no longer as it was seen; nothing was done.
    ChangedMeanwhile,
    /// The Redis key is gone; nothing was done.
    Gone,
    /// Not made, because a node of the cluster refused it, did not answer, or could not be read.
    NotMade,
    /// The change was sent, its reply was lost, and a later read did not show the outcome.
    Unknown,
}

impl Outcome {
    /// True if the change was made.
    pub fn is_done(self) -> bool {
        matches!(self, Self::Done | Self::Expires(_) | Self::FoundDone)
    }
}
