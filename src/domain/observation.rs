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
