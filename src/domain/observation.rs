//! What was read of a record: bytes, types and expiry of its Redis keys at one moment.

use std::time::Duration;

/// The Redis keys of one record as they were at one moment, in slot order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The server's clock, in milliseconds since the epoch; `None` where it may not be asked.
    pub server_ms: Option<u64>,
    /// One entry a Redis key.
    pub slots: Vec<SeenSlot>,
    /// False when the two keys of a record were not read at one moment.
    pub atomic: bool,
}

impl Observation {
    /// True when none of the Redis keys exists.
    pub fn is_absent(&self) -> bool {
        self.slots.iter().all(|slot| slot.content == Content::Absent)
    }

    /// True when a later look shows the same: the same bytes, and no more time left. Many locks hold the same bytes, so
    /// one that gained an expiry, or whose TTL went up, was taken anew.
    pub fn is_still(&self, later: &Self) -> bool {
        self.slots.len() == later.slots.len() && self.slots.iter().zip(&later.slots).all(|(a, b)| a.is_still(b))
    }
}

/// One Redis key as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenSlot {
    /// The Redis key.
    pub redis_key: Vec<u8>,
    /// What is there.
    pub content: Content,
    /// When it goes.
    pub expiry: Expiry,
    /// Time since the key was last touched, asked before the value was read; `None` where unknown.
    pub idle: Option<Duration>,
    /// Bytes of memory the server says the key takes; `None` where unknown.
    pub memory: Option<u64>,
}

impl SeenSlot {
    fn is_still(&self, later: &Self) -> bool {
        let same_content = match (&self.content, &later.content) {
            (Content::Other(_), Content::Other(_)) => true,
            (seen, now) => seen.is_whole() && seen == now,
        };
        let no_more_time = match (self.expiry, later.expiry) {
            (Expiry::In(seen), Expiry::In(now)) => now <= seen,
            (seen, now) => seen == now,
        };
        self.redis_key == later.redis_key && same_content && (self.content == Content::Absent || no_more_time)
    }
}

/// What stands at a Redis key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Nothing.
    Absent,
    /// A string, read in part or as a whole.
    Text {
        /// The bytes that were read.
        head: Vec<u8>,
        /// How many bytes there are; `None` when there are more than were read and nobody asked how many.
        length: Option<u64>,
    },
    /// Another type, by Redis's name for it.
    Other(String),
}

impl Content {
    /// A string that was read as a whole.
    pub fn text(bytes: Vec<u8>) -> Self {
        Self::Text { length: Some(bytes.len() as u64), head: bytes }
    }

    /// How many bytes of it were read.
    pub fn read_bytes(&self) -> usize {
        match self {
            Self::Text { head, .. } => head.len(),
            _ => 0,
        }
    }

    /// True when it is what was seen, as far as that was read: the same bytes at the beginning, and the same length
    /// where both are known.
    pub fn begins_as(&self, seen: &Self) -> bool {
        match (self, seen) {
            (Self::Text { head, length }, Self::Text { head: seen, length: seen_length }) => {
                head.starts_with(seen) && (length.is_none() || seen_length.is_none() || length == seen_length)
            }
            (now, seen) => now == seen,
        }
    }

    /// True when all bytes of the string were read.
    pub fn is_whole(&self) -> bool {
        match self {
            Self::Text { head, length } => *length == Some(head.len() as u64),
            _ => true,
        }
    }
}

/// When a Redis key goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// Never.
    Never,
    /// After this many milliseconds.
    In(u64),
}

impl Expiry {
    /// Reads the reply of PTTL; a missing key counts as expiring now.
    pub fn from_pttl(pttl: i64) -> Self {
        if pttl == -1 { Self::Never } else { Self::In(u64::try_from(pttl).unwrap_or(0)) }
    }

    /// The milliseconds left, or `None` when it stays for ever.
    pub fn millis(self) -> Option<u64> {
        match self {
            Self::Never => None,
            Self::In(ms) => Some(ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::samples::{schema, seen, text};

    fn slot(content: Content, expiry: Expiry) -> Observation {
        seen(&schema("go-chi"), &[(content, expiry)])
    }

    #[test]
    fn time_goes_by_and_nothing_else_may() {
        let was = slot(text("a"), Expiry::In(500));
        assert!(was.is_still(&was) && was.is_still(&slot(text("a"), Expiry::In(1))));
        for now in [
            slot(text("a"), Expiry::In(501)),
            slot(text("a"), Expiry::Never),
            slot(text("b"), Expiry::In(500)),
            slot(Content::Absent, Expiry::In(0)),
            slot(Content::Other("hash".into()), Expiry::In(500)),
        ] {
            assert!(!was.is_still(&now), "{now:?}");
        }
        assert!(!slot(text("a"), Expiry::Never).is_still(&slot(text("a"), Expiry::In(5))));
    }

    #[test]
    fn what_was_not_there_may_not_come() {
        let was = slot(Content::Absent, Expiry::In(0));
        assert!(was.is_still(&was) && !was.is_still(&slot(text(""), Expiry::In(9))));
    }

    #[test]
    fn what_was_read_in_part_is_never_known_to_be_the_same() {
        let part = slot(Content::Text { head: b"a".to_vec(), length: Some(2) }, Expiry::Never);
        assert!(!part.is_still(&part));
    }
}
