//! What was read of a record: bytes, types and expiry of its Redis keys at one moment.

use std::time::Duration;

use super::deadline::Deadline;

/// The Redis keys of one record as they were at one moment, in slot order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The server's clock, in milliseconds since the epoch; `None` where it may not be asked.
    pub(crate) server_ms: Option<u64>,
    /// One entry a Redis key.
    pub slots: Vec<SeenSlot>,
    /// False when the two keys of a record were not read at one moment.
    pub(crate) atomic: bool,
}

impl Observation {
    pub(crate) fn is_absent(&self) -> bool {
        self.slots.iter().all(|slot| slot.content == Content::Absent)
    }

    /// True when the look did not tell when one of the Redis keys expires.
    pub(crate) fn has_unknown_deadline(&self) -> bool {
        self.slots.iter().any(|slot| slot.content != Content::Absent && slot.deadline == Deadline::Unknown)
    }
}

/// One Redis key as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenSlot {
    pub redis_key: Vec<u8>,
    pub content: Content,
    /// How long it stays, from the moment of the look on.
    pub(crate) expiry: Expiry,
    pub(crate) deadline: Deadline,
    /// Of a value that was read in part: the last bytes of DUMP, which are the checksum of all of it.
    pub(crate) checksum: Option<[u8; 8]>,
    /// Time since the key was last touched, asked before the value was read; `None` where unknown.
    pub(crate) idle: Option<Duration>,
    /// Bytes of memory the server says the key takes; `None` where unknown.
    pub(crate) memory: Option<u64>,
}

impl SeenSlot {
    pub(crate) fn new(redis_key: &[u8], content: Content, expiry: Expiry, deadline: Deadline) -> Self {
        Self { redis_key: redis_key.to_vec(), content, expiry, deadline, checksum: None, idle: None, memory: None }
    }

    /// True when the Redis key is the same one at another look, as far as both looks tell.
    pub(crate) fn is_as(&self, later: &Self) -> bool {
        self.content == later.content && (self.content == Content::Absent || self.deadline.is_same(later.deadline))
    }

    /// True when a change can be compared with what was read: a string or nothing, its bytes, or its beginning, its length
    /// and its checksum, and when it expires.
    pub(crate) fn is_sharp(&self) -> bool {
        match &self.content {
            Content::Absent => true,
            Content::Other(_) => false,
            Content::Text { length, .. } => {
                let is_told = self.content.is_whole() || (length.is_some() && self.checksum.is_some());
                is_told && self.deadline.is_sharp()
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    Absent,
    /// A string, read in part or as a whole.
    Text {
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

    pub(crate) fn read_bytes(&self) -> usize {
        match self {
            Self::Text { head, .. } => head.len(),
            _ => 0,
        }
    }

    pub(crate) fn is_whole(&self) -> bool {
        match self {
            Self::Text { head, length } => *length == Some(head.len() as u64),
            _ => true,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    Never,
    /// After this many milliseconds.
    In(u64),
}

impl Expiry {
    /// Reads the reply of PTTL; a missing key counts as expiring now.
    pub(crate) fn from_pttl(pttl: i64) -> Self {
        if pttl == -1 { Self::Never } else { Self::In(u64::try_from(pttl).unwrap_or(0)) }
    }

    /// What is left at this moment by the server's clock until a deadline.
    pub(crate) fn until(deadline: Deadline, now_ms: u64) -> Self {
        deadline.millis().map_or(Self::Never, |at| Self::In(at.saturating_sub(now_ms)))
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
    use crate::domain::samples::{schema, seen};

    fn slot(content: Content, deadline: Deadline) -> Observation {
        let mut seen = seen(&schema("go-chi"), &[(content, Expiry::Never)]);
        seen.slots[0].deadline = deadline;
        seen
    }

    #[test]
    fn a_change_is_compared_with_what_was_read_well_enough() {
        let part = |length, checksum, deadline| {
            let mut seen = slot(Content::Text { head: b"a".to_vec(), length }, deadline);
            seen.slots[0].checksum = checksum;
            seen.slots[0].is_sharp()
        };
        let sum = Some([0; 8]);
        assert!(part(Some(1), None, Deadline::At(1)) && part(Some(2), sum, Deadline::Never));
        assert!(!part(Some(2), None, Deadline::At(1)) && !part(None, sum, Deadline::At(1)));
        assert!(!part(Some(1), None, Deadline::Unknown) && !part(Some(1), None, Deadline::Between(1, 60)));
        assert!(slot(Content::Absent, Deadline::Unknown).slots[0].is_sharp());
        assert!(!slot(Content::Other("hash".into()), Deadline::Never).slots[0].is_sharp());
    }

    #[test]
    fn what_is_left_runs_out() {
        assert_eq!(Expiry::until(Deadline::At(9), 4), Expiry::In(5));
        assert_eq!(Expiry::until(Deadline::At(9), 10), Expiry::In(0));
        assert_eq!(Expiry::until(Deadline::Never, 10), Expiry::Never);
    }
}
