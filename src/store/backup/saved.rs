//! What a backup has of one Redis key, and whose record that was.

use super::payload;
use crate::domain::record::{Content, Deadline, Expiry, KeyIdentity, SeenKey};

/// The format of a backup: an entry for each record, and a closing line. Format 1, of idemctl 0.2, had a line for each
/// Redis key, and none that closed the file.
pub(super) const FORMAT: u64 = 2;

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
    pub(in crate::store) fn of_whole(seen: &SeenKey) -> Option<Self> {
        match &seen.content {
            Content::Text { head, .. } if seen.content.is_whole() => Some(Self::of(seen, payload::of_string(head)?)),
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
        KeyIdentity::of(&SeenKey::new(&self.redis_key, Content::text(text.to_vec()), Expiry::Never, deadline))
    }

    /// What a Redis key held, with the deadline that the look saw: the change compares with it.
    pub(in crate::store) fn of(seen: &SeenKey, dump: Vec<u8>) -> Self {
        Self {
            redis_key: seen.redis_key.clone(),
            dump,
            ttl_ms: seen.expiry.millis(),
            expires_at_ms: seen.deadline.millis(),
        }
    }
}
