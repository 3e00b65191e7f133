//! What a backup has of one Redis key, and whose record that was.

use crate::domain::record::SeenSlot;

pub(super) const FORMAT: u64 = 1;

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
    /// What a Redis key held, with the deadline that the look saw: the change compares with it.
    pub(in crate::store) fn of(seen: &SeenSlot, dump: Vec<u8>) -> Self {
        Self {
            redis_key: seen.redis_key.clone(),
            dump,
            ttl_ms: seen.expiry.millis(),
            expires_at_ms: seen.deadline.millis(),
        }
    }
}
