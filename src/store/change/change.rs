//! A change to a record, and what became of it.

use crate::domain::record::{Content, Observation, SeenKey};
use crate::store::backup::saved::About;

/// A change to one Redis key of a record that must still be as it was seen.
#[derive(Debug, Clone)]
pub struct Change {
    /// The role of the Redis key that changes.
    pub role: usize,
    /// The record as it was seen: every value whole, or its beginning and its length.
    pub seen: Observation,
    /// Whose record it is, for the backup.
    pub about: About,
}

impl Change {
    pub fn redis_key(&self) -> &[u8] {
        &self.seen_key().redis_key
    }

    /// The Redis key that changes, as it was seen.
    pub(super) fn seen_key(&self) -> &SeenKey {
        &self.seen.keys[self.role]
    }

    /// True when the Redis key was there, and the look told enough of the record to compare with.
    pub(super) fn can_be_compared(&self) -> bool {
        self.seen_key().content != Content::Absent && self.seen.keys.iter().all(SeenKey::is_sharp)
    }
}

/// What is done to the Redis key of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Remove,
    /// It gets this TTL in milliseconds.
    ExpireIn(u64),
    /// It expires at this moment, in milliseconds since the epoch by the server's clock, within two milliseconds.
    ExpireAt(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// It was made: no reply told so, and reading back does.
    FoundDone,
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
    pub fn is_done(self) -> bool {
        matches!(self, Self::Done | Self::FoundDone)
    }
}
