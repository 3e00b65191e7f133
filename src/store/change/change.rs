//! A change to a record, and what became of it.

use crate::domain::record::{Content, KeyState, Observation};
use crate::store::backup::entry::About;

/// A change to a record that must still be as it was seen. All of its Redis keys that change,
/// change in one call.
#[derive(Debug, Clone)]
pub struct Change {
    /// The Redis keys that change, by their indexes in the record; on a cluster all of them are in
    /// one slot.
    pub changed: Vec<usize>,
    /// The Redis keys that are backed up before, as one entry, by their indexes in the record.
    pub backed_up: Vec<usize>,
    /// The record as it was seen: every value whole, or its beginning and its length.
    pub seen: Observation,
    /// Whose record it is, for the backup.
    pub about: About,
}

impl Change {
    /// A change of the Redis keys with these indexes, which are backed up before.
    pub fn new(changed: Vec<usize>, seen: Observation, about: About) -> Self {
        Self { backed_up: changed.clone(), changed, seen, about }
    }

    /// The first Redis key that changes, which names the change.
    pub fn redis_key(&self) -> &[u8] {
        &self.first().redis_key
    }

    /// The first Redis key that changes, as it was seen.
    pub(super) fn first(&self) -> &KeyState {
        &self.seen.keys[self.changed[0]]
    }

    /// The Redis keys that change, as they were seen.
    pub fn targets(&self) -> impl Iterator<Item = &KeyState> {
        self.changed.iter().map(|role| &self.seen.keys[*role])
    }

    /// True if the Redis keys were there, and enough was read of the record to compare with.
    pub(super) fn can_be_compared(&self) -> bool {
        let is_there = |key: &KeyState| key.content != Content::Absent;
        !self.changed.is_empty()
            && self.targets().all(is_there)
            && self.seen.keys.iter().all(KeyState::is_comparable)
    }
}

/// What is done to the Redis key of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAction {
    Remove,
    /// It lives at least so many milliseconds from now on: a key with as much time left, or no
    /// expiry, is kept.
    Prolong(u64),
    /// It lives at most so many milliseconds from now on: a key with no more time left is kept.
    Shorten(u64),
}

impl KeyAction {
    /// The TTL that the action gives, in milliseconds.
    pub fn ttl(self) -> Option<u64> {
        match self {
            Self::Remove => None,
            Self::Prolong(ttl) | Self::Shorten(ttl) => Some(ttl),
        }
    }
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// The Redis key expires at this moment now, in milliseconds since the epoch by the clock of
    /// its node.
    Expires(u64),
    /// It was made: no reply told so, and reading back does.
    FoundDone,
    /// Of a record in two slots of a cluster one Redis key was changed, and the other was not, or
    /// may not be.
    Partly,
    /// The Redis key has as much time left as was asked for, or no more than was asked for; nothing
    /// was done.
    Kept,
    /// The record is no longer as it was seen; nothing was done.
    Changed,
    /// The Redis key is gone; nothing was done.
    Absent,
    /// Its node of a cluster refuses it; nothing was done.
    Refused,
    /// It was sent, no reply told what became of it, and reading back cannot tell.
    Unknown,
}

impl Outcome {
    /// True if the change was made.
    pub fn is_done(self) -> bool {
        matches!(self, Self::Done | Self::Expires(_) | Self::FoundDone)
    }
}
