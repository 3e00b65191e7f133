//! What a Redis key turned out to hold under a schema.

use serde_json::Value;

use super::form::Form;
use super::stored::Stored;
use crate::domain::schema::{KeyIs, PastExpiry};

#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    Absent,
    Value(Box<Decoded>),
    /// A string that cannot be read, and why.
    Unreadable(String),
    /// A string of which only the beginning was read: what stands behind the beginning decides what the string is.
    Undecided,
    /// A string that can be read and is of no case: somebody else wrote it.
    Foreign {
        why: String,
        /// True when only the beginning was read, and what comes behind decides which case a script takes it for.
        is_part: bool,
    },
    /// Not a string: Redis's name of the type.
    WrongType(String),
}

impl Reading {
    /// True when a `when` condition's word holds for the Redis key.
    pub fn is(&self, asked: &KeyIs) -> bool {
        match asked {
            KeyIs::Absent => self.is_absent(),
            KeyIs::Present => !self.is_absent(),
            KeyIs::Reclaimable => self.lapsed() == Some(PastExpiry::Reclaimable),
            KeyIs::Unreadable => self.unread().is_some(),
            KeyIs::WrongType => matches!(self, Self::WrongType(_)),
            KeyIs::Value(case) => {
                matches!(self, Self::Value(decoded) if decoded.case == *case && decoded.lapsed.is_none())
            }
        }
    }

    /// True when there is nothing, or nothing any more to whoever goes by the moment in the value.
    pub(crate) fn is_absent(&self) -> bool {
        *self == Self::Absent || self.lapsed() == Some(PastExpiry::Absent)
    }

    /// What a value is to the next request whose own moment is past.
    pub(crate) fn lapsed(&self) -> Option<PastExpiry> {
        self.decoded().and_then(|value| value.lapsed)
    }

    /// Why the string is of no case, where there is one that is of none.
    pub(crate) fn unread(&self) -> Option<&str> {
        match self {
            Self::Unreadable(why) | Self::Foreign { why, .. } => Some(why),
            Self::Undecided => Some("what it is stands beyond the part that was read"),
            _ => None,
        }
    }

    /// Why the value is none of the schema's own, where that is known.
    pub(crate) fn foreign_because(&self) -> Option<&str> {
        match self {
            Self::Foreign { why, .. } => Some(why),
            Self::Value(value) => value.form.strangeness(),
            _ => None,
        }
    }

    /// True when the value is told, or there is none, and nothing that was read of it is another program's.
    pub(crate) fn is_own(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Value(value) => !value.form.is_foreign(),
            _ => false,
        }
    }

    pub fn decoded(&self) -> Option<&Decoded> {
        match self {
            Self::Value(decoded) => Some(decoded),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The index of the case in `Schema::values`.
    pub case: usize,
    pub(crate) form: Form,
    /// The token of the lock's holder.
    pub owner: Option<Vec<u8>>,
    pub(crate) fingerprint: Option<String>,
    /// When the lock was taken, in milliseconds since the epoch.
    pub(crate) created_ms: Option<u64>,
    /// When the result was stored, in milliseconds since the epoch.
    pub(crate) completed_ms: Option<u64>,
    /// When the value ends by what it holds, in milliseconds since the epoch.
    pub(crate) expires_ms: Option<u64>,
    /// What it is past that moment; `None` before the moment, and where nobody knows the time.
    pub(crate) lapsed: Option<PastExpiry>,
    pub(crate) response: Option<Stored>,
    pub(crate) error: Option<String>,
    pub(crate) blob: Option<Value>,
}
