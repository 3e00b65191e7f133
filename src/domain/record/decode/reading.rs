//! The reading of a Redis key's value under a schema.

use serde_json::Value;

use super::conformance::Conformance;
use super::stored::Stored;
use crate::domain::record::{FieldSet, ValueField};
use crate::domain::schema::{KeyIs, PastExpiry};

/// What the value of a Redis key is under a schema.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading {
    Absent,
    /// A value of one of the schema's formats.
    Value(Box<Decoded>),
    /// A string that begins as a value of the schema does and cannot be decoded, and why.
    Unreadable(String),
    /// A value of which only the beginning was read: the rest decides which format it has.
    Undecided,
    /// A value that has none of the schema's formats, and is not a damaged value of one: another
    /// program wrote it.
    Unrecognised {
        why: String,
        /// True if only the beginning was read, and the rest decides which format a script takes it
        /// for.
        is_cut: bool,
    },
    /// A value that is near to formats of different states and has none of them, and why. The
    /// service may take it for a value of either.
    Ambiguous(String),
    /// An empty text, which none of the schema's formats is. Some services take it for nothing.
    EmptyText,
    /// A type that the schema does not keep there: Redis's name of the type.
    WrongType(String),
}

/// Why an empty text has none of the formats.
const EMPTY_TEXT: &str = "an empty text";

impl Reading {
    /// True if a `when` condition's word holds for the Redis key.
    pub fn is(&self, asked: &KeyIs) -> bool {
        match asked {
            KeyIs::Absent => self.is_absent(),
            KeyIs::Present => !self.is_absent(),
            KeyIs::Reclaimable => self.past_expiry() == Some(PastExpiry::Reclaimable),
            KeyIs::Unreadable => self.mismatch().is_some(),
            KeyIs::EmptyText => matches!(self, Self::EmptyText),
            KeyIs::WrongType => matches!(self, Self::WrongType(_)),
            KeyIs::Value(format) => {
                let Self::Value(decoded) = self else { return false };
                decoded.format == *format && decoded.past_expiry.is_none()
            }
        }
    }

    /// True if only the beginning of the value was read, and the rest decides which format it has.
    pub(crate) fn is_undecided(&self) -> bool {
        matches!(self, Self::Undecided | Self::Unrecognised { is_cut: true, .. })
    }

    /// True if the key is absent, or if the value's contained expiry has passed and the service
    /// then treats it as absent.
    pub(crate) fn is_absent(&self) -> bool {
        // This is asked several times per record, and comparing whole readings takes longer.
        matches!(self, Self::Absent) || self.past_expiry() == Some(PastExpiry::Absent)
    }

    /// How the next request treats a value whose contained expiry has passed; `None` for any other
    /// value.
    pub(crate) fn past_expiry(&self) -> Option<PastExpiry> {
        self.decoded()?.past_expiry
    }

    /// Why the value has none of the schema's formats; `None` if it has one, or is absent.
    pub(crate) fn mismatch(&self) -> Option<&str> {
        match self {
            Self::Unreadable(why) | Self::Unrecognised { why, .. } | Self::Ambiguous(why) => {
                Some(why)
            }
            Self::EmptyText => Some(EMPTY_TEXT),
            Self::Undecided => Some("its format depends on a part of the value that was not read"),
            _ => None,
        }
    }

    /// Why another program wrote the value; `None` unless that is known.
    pub(crate) fn unrecognised_because(&self) -> Option<&str> {
        match self {
            Self::Unrecognised { why, .. } | Self::Ambiguous(why) => Some(why),
            Self::EmptyText => Some(EMPTY_TEXT),
            Self::Value(value) => value.conformance.deviation(),
            _ => None,
        }
    }

    /// Why, in words, the service may take the value for another one: it lacks a field that every
    /// value of its format has, is between several formats, its expiry is not a time, or a field of
    /// its response cannot be decoded. `None` if none of this is so.
    pub fn lacks_field(&self) -> Option<&str> {
        if let Self::Ambiguous(why) = self {
            return Some(why);
        }
        let value = self.decoded()?;
        let unclear = value.unclear_expiry.as_deref().or(value.unclear_response.as_deref());
        value.conformance.lacks_field().or(unclear)
    }

    /// True if the value is absent, or has one of the schema's formats and does not deviate from it
    /// as far as it was read.
    pub(crate) fn conforms_or_absent(&self) -> bool {
        match self {
            Self::Absent => true,
            Self::Value(value) => !value.conformance.deviates(),
            _ => false,
        }
    }

    /// The decoded value, if it has one of the schema's formats.
    pub fn decoded(&self) -> Option<&Decoded> {
        match self {
            Self::Value(decoded) => Some(decoded),
            _ => None,
        }
    }
}

/// A decoded value.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The index of the value's format in `Schema::values`.
    pub format: usize,
    pub(crate) conformance: Conformance,
    /// The token of the lock's holder.
    pub owner: Option<Vec<u8>>,
    pub(crate) fingerprint: Option<String>,
    /// When the lock was taken, in milliseconds since the epoch.
    pub(crate) created_ms: Option<u64>,
    /// When the result was stored, in milliseconds since the epoch.
    pub(crate) completed_ms: Option<u64>,
    /// The expiry that the value itself holds, in milliseconds since the epoch.
    pub(crate) expires_ms: Option<u64>,
    /// Why that is unknown although the value holds an expiry: the field is not a time.
    pub(crate) unclear_expiry: Option<Box<str>>,
    /// Why the service may fail to decode a field of the response, and so may not replay it.
    pub(crate) unclear_response: Option<Box<str>>,
    /// How the service treats the value after that time; `None` before, and if the time is unknown.
    pub(crate) past_expiry: Option<PastExpiry>,
    pub(crate) response: Option<Stored>,
    pub(crate) error: Option<String>,
    pub(crate) blob: Option<Value>,
    /// The fields that are unknown, because the value was read only in part.
    pub(crate) unread: FieldSet,
}

impl Decoded {
    /// A value with this format, and no data. Predictions need only the format.
    pub(crate) fn of_format(format: usize) -> Self {
        Self {
            format,
            conformance: Conformance::Full,
            owner: None,
            fingerprint: None,
            created_ms: None,
            completed_ms: None,
            expires_ms: None,
            unclear_expiry: None,
            unclear_response: None,
            past_expiry: None,
            response: None,
            error: None,
            blob: None,
            unread: FieldSet::NONE,
        }
    }

    /// Drops fields that may be cut: a part of a fingerprint or an owner is another one.
    pub(super) fn drop_cut_fields(&mut self) {
        if self.unread.contains(ValueField::Owner) {
            self.owner = None;
        }
        if self.unread.contains(ValueField::Fingerprint) {
            self.fingerprint = None;
        }
        if self.unread.contains(ValueField::Status)
            && let Some(response) = &mut self.response
        {
            response.status = None;
        }
    }
}
