//! The observation of a record: bytes, types and expiries of its Redis keys as they were read.

use std::time::Duration;

use super::deadline::Deadline;

/// The Redis keys of one record as they were read together, the lock's first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The server's clock, in milliseconds since the epoch; `None` if the Redis user may not ask.
    pub(crate) server_ms: Option<u64>,
    /// One entry per Redis key.
    pub keys: Vec<KeyState>,
    /// False if the Redis keys were read one after the other.
    pub(crate) atomic: bool,
}

impl Observation {
    /// True if none of the Redis keys exists.
    pub(crate) fn is_absent(&self) -> bool {
        self.keys.iter().all(|key| key.content.is_absent())
    }

    /// True if the expiry of one of the Redis keys is unknown.
    pub(crate) fn has_unknown_deadline(&self) -> bool {
        self.keys.iter().any(|key| !key.content.is_absent() && key.deadline == Deadline::Unknown)
    }
}

/// The state of one Redis key as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyState {
    pub redis_key: Vec<u8>,
    pub content: Content,
    /// How long it stays, from the time of the read on.
    pub(crate) time_left: TimeLeft,
    /// When it expires.
    pub(crate) deadline: Deadline,
    /// The last bytes of DUMP, which are the checksum of the whole value. Read only for a value
    /// that was read in part, or is not a string.
    pub(crate) checksum: Option<[u8; 8]>,
    /// True if DUMP showed a hash whose fields have no TTL, so that their names and values identify
    /// it. False if DUMP was not read.
    pub(crate) has_plain_fields: bool,
    /// Time since the key was last touched before this read; `None` if unknown.
    pub(crate) idle: Option<Duration>,
    /// Bytes of memory that the key takes by the server's account; `None` if unknown.
    pub(crate) memory: Option<u64>,
}

impl KeyState {
    pub(crate) fn new(
        redis_key: &[u8],
        content: Content,
        time_left: TimeLeft,
        deadline: Deadline,
    ) -> Self {
        Self {
            redis_key: redis_key.to_vec(),
            content,
            time_left,
            deadline,
            checksum: None,
            has_plain_fields: false,
            idle: None,
            memory: None,
        }
    }

    /// True if a later read shows the same Redis key, as far as both reads can show it.
    pub(crate) fn is_unchanged_in(&self, later: &Self) -> bool {
        // An absent key has no expiry to compare.
        self.content == later.content
            && (self.content.is_absent() || self.deadline.is_same(later.deadline))
    }

    /// True if a change can be made conditional on this state. The expiry must be known. A string
    /// needs all its bytes, or the beginning, the length and the checksum; any other type needs the
    /// checksum. An absent key is always comparable.
    pub(crate) fn is_comparable(&self) -> bool {
        match &self.content {
            Content::Absent => true,
            Content::Hash(_) | Content::Other(_) => {
                self.checksum.is_some() && self.deadline.is_comparable()
            }
            Content::Text { length, .. } => {
                let is_known =
                    self.content.is_whole() || (length.is_some() && self.checksum.is_some());
                is_known && self.deadline.is_comparable()
            }
        }
    }
}

/// The value of a Redis key, as far as it was read.
#[derive(Debug, Clone, PartialEq, Eq, std::hash::Hash)]
pub enum Content {
    /// The Redis key does not exist.
    Absent,
    /// A string, read in part or as a whole.
    Text {
        head: Vec<u8>,
        /// How many bytes it has; `None` if it has more than were read and idemctl did not ask how
        /// many.
        length: Option<u64>,
    },
    /// A hash, with the fields that were read.
    Hash(Box<Hash>),
    /// Another type, by Redis's name for it.
    Other(String),
}

/// The fields of a hash, in the order of their names.
#[derive(Debug, Clone, PartialEq, Eq, Default, std::hash::Hash)]
pub struct Hash {
    /// The fields that were read: all, or none of a hash that has too many.
    pub(crate) fields: Vec<Field>,
    /// How many fields it has.
    pub(crate) count: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, std::hash::Hash)]
pub(crate) struct Field {
    pub(crate) name: Vec<u8>,
    /// The bytes of the value that were read.
    pub(crate) head: Vec<u8>,
    /// How many bytes the value has.
    pub(crate) length: u64,
}

impl Field {
    pub(crate) fn whole(name: Vec<u8>, value: Vec<u8>) -> Self {
        Self { name, length: value.len() as u64, head: value }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.length == self.head.len() as u64
    }
}

impl Hash {
    pub(crate) fn new(mut fields: Vec<Field>, count: u64) -> Self {
        // Redis returns fields in no fixed order, and equal hashes must compare equal.
        fields.sort_unstable();
        Self { fields, count }
    }

    /// True if every field was read, at least in part.
    pub(crate) fn has_all(&self) -> bool {
        self.fields.len() as u64 == self.count
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.has_all() && self.fields.iter().all(Field::is_whole)
    }

    /// Names and values in turn, as far as they were read.
    pub(crate) fn into_words(self) -> Vec<Vec<u8>> {
        let mut words = Vec::with_capacity(2 * self.fields.len());
        for field in self.fields {
            words.push(field.name);
            words.push(field.head);
        }
        words
    }

    /// The bytes of names and values; `None` if fields were left out.
    pub(crate) fn bytes(&self) -> Option<u64> {
        if !self.has_all() {
            return None;
        }
        Some(self.fields.iter().map(|field| field.name.len() as u64 + field.length).sum())
    }
}

impl Content {
    /// A string that was read as a whole.
    pub fn text(bytes: Vec<u8>) -> Self {
        Self::Text { length: Some(bytes.len() as u64), head: bytes }
    }

    /// A value that exists, and of which nothing was read.
    pub(crate) fn not_read() -> Self {
        Self::Text { head: Vec::new(), length: None }
    }

    /// True if the Redis key does not exist.
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// How many bytes of the value were read.
    pub(crate) fn read_bytes(&self) -> usize {
        match self {
            Self::Text { head, .. } => head.len(),
            Self::Hash(hash) => hash.fields.iter().map(|field| field.head.len()).sum(),
            _ => 0,
        }
    }

    /// The size of the value in bytes; `None` if unknown. A type that is not read counts as 0.
    pub(crate) fn size(&self) -> Option<u64> {
        match self {
            Self::Text { length, .. } => *length,
            Self::Hash(hash) => hash.bytes(),
            Self::Absent | Self::Other(_) => Some(0),
        }
    }

    /// A hash that was read as a whole: names and values in turn, as HGETALL replies.
    pub fn hash(words: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut words = words.into_iter();
        let mut fields = Vec::new();
        while let (Some(name), Some(value)) = (words.next(), words.next()) {
            fields.push(Field::whole(name, value));
        }
        let count = fields.len() as u64;
        Self::Hash(Box::new(Hash::new(fields, count)))
    }

    /// Redis's name of the type of a value that is not a string.
    pub(crate) fn other_type(&self) -> Option<&str> {
        match self {
            Self::Hash(_) => Some("hash"),
            Self::Other(kind) => Some(kind),
            Self::Absent | Self::Text { .. } => None,
        }
    }

    /// False only for a string or a hash that was cut.
    pub(crate) fn is_whole(&self) -> bool {
        match self {
            Self::Text { head, length } => *length == Some(head.len() as u64),
            Self::Hash(hash) => hash.is_whole(),
            _ => true,
        }
    }
}

/// How much longer a Redis key stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeLeft {
    NoExpiry,
    /// After this many milliseconds.
    Millis(u64),
}

impl TimeLeft {
    /// Reads the reply of PTTL; a missing key counts as expiring now.
    pub(crate) fn from_pttl(pttl: i64) -> Self {
        if pttl == -1 { Self::NoExpiry } else { Self::Millis(u64::try_from(pttl).unwrap_or(0)) }
    }

    /// The time left from this time by the server's clock until a deadline.
    pub(crate) fn until(deadline: Deadline, now_ms: u64) -> Self {
        match deadline.millis() {
            Some(at) => Self::Millis(at.saturating_sub(now_ms)),
            None => Self::NoExpiry,
        }
    }

    /// The milliseconds left, or `None` if it never expires.
    pub fn millis(self) -> Option<u64> {
        match self {
            Self::NoExpiry => None,
            Self::Millis(ms) => Some(ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::samples::{schema, seen};

    fn one_key(content: Content, deadline: Deadline) -> Observation {
        let mut seen = seen(&schema("go-chi"), &[(content, TimeLeft::NoExpiry)]);
        seen.keys[0].deadline = deadline;
        seen
    }

    #[test]
    fn a_change_is_compared_with_what_was_read_well_enough() {
        let part = |length, checksum, deadline| {
            let mut seen = one_key(Content::Text { head: b"a".to_vec(), length }, deadline);
            seen.keys[0].checksum = checksum;
            seen.keys[0].is_comparable()
        };
        let sum = Some([0; 8]);
        assert!(part(Some(1), None, Deadline::At(1)) && part(Some(2), sum, Deadline::Never));
        assert!(!part(Some(2), None, Deadline::At(1)) && !part(None, sum, Deadline::At(1)));
        assert!(
            !part(Some(1), None, Deadline::Unknown)
                && !part(Some(1), None, Deadline::Between(1, 60))
        );
        assert!(one_key(Content::Absent, Deadline::Unknown).keys[0].is_comparable());
        let mut hash = one_key(Content::Other("hash".into()), Deadline::Never);
        assert!(!hash.keys[0].is_comparable());
        hash.keys[0].checksum = sum;
        assert!(hash.keys[0].is_comparable());
    }

    #[test]
    fn what_is_left_runs_out() {
        assert_eq!(TimeLeft::until(Deadline::At(9), 4), TimeLeft::Millis(5));
        assert_eq!(TimeLeft::until(Deadline::At(9), 10), TimeLeft::Millis(0));
        assert_eq!(TimeLeft::until(Deadline::Never, 10), TimeLeft::NoExpiry);
    }
}
