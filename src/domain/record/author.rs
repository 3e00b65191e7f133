//! The author of a record: the schema's service, or another program.

use super::decode::{Conformance, Reading};
use crate::domain::schema::{Schema, State};

/// Who wrote a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Author {
    /// No value shows that another program wrote it. The values have formats that the schema
    /// writes, or are unreadable under its fixed prefix. Usually its service wrote them, but
    /// another schema with the same Redis keys may have; a finding names that schema.
    NotForeign,
    /// The schema's service, as far as the values were read: the rest of a value may deviate.
    Provisional,
    /// Another program, and why.
    Unrecognised(String),
    /// The schema's service wrote the lock, and another program the value beside it, and why. No
    /// command changes that value together with others.
    OfLock(String),
    /// Not the schema's lock, because the schema of this name reads it as a result.
    ResultOf(String),
    /// Not the schema's result, because the schema of this name reads it as a lock.
    LockOf(String),
}

impl Author {
    /// The author that the readings of a record's Redis keys show.
    pub(crate) fn of(schema: &Schema, readings: &[Reading]) -> Self {
        let author = Self::of_values(schema, readings);
        match author {
            Self::Unrecognised(why) if has_own_lock(schema, readings) => Self::OfLock(why),
            author => author,
        }
    }

    fn of_values(schema: &Schema, readings: &[Reading]) -> Self {
        if let Some(why) = readings.iter().find_map(Reading::unrecognised_because) {
            return Self::Unrecognised(why.to_owned());
        }
        for reading in readings {
            if let Reading::WrongType(kind) = reading {
                return Self::Unrecognised(format!("it has the Redis type {kind}"));
            }
        }
        if !schema.has_fixed_prefix() {
            // Any Redis key may match a schema without a prefix, so a value that cannot be read is
            // no evidence.
            for reading in readings {
                if !reading.conforms_or_absent() {
                    let what = reading.mismatch().unwrap_or("no string");
                    let why = format!("{what}, and its Redis key has no fixed prefix");
                    return Self::Unrecognised(why);
                }
            }
        }
        for reading in readings {
            if let Some(value) = reading.decoded()
                && value.conformance == Conformance::Provisional
            {
                return Self::Provisional;
            }
        }
        Self::NotForeign
    }

    /// True if another program wrote the record. A change of many records leaves it alone. If the
    /// lock alone is the service's, only `sweep` changes it, which removes nothing but the lock.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(
            self,
            Self::Unrecognised(_) | Self::OfLock(_) | Self::ResultOf(_) | Self::LockOf(_)
        )
    }

    /// True if the lock is the service's, and another program wrote the value beside it.
    pub(crate) fn is_of_lock(&self) -> bool {
        matches!(self, Self::OfLock(_))
    }

    /// Why another program must have written the record; `None` if nothing shows that.
    pub(crate) fn unrecognised_because(&self) -> Option<String> {
        match self {
            Self::NotForeign | Self::Provisional => None,
            Self::Unrecognised(why) | Self::OfLock(why) => Some(why.clone()),
            Self::ResultOf(other) => Some(format!("{other} reads it as a completed result")),
            Self::LockOf(other) => Some(format!("{other} reads it as a lock")),
        }
    }
}

/// True if a lock of the schema's format has a Redis key of its own. Under a prefix, only the
/// service has such a lock, whatever another program wrote beside it.
fn has_own_lock(schema: &Schema, readings: &[Reading]) -> bool {
    if !schema.has_locks() || !schema.has_separate_result() || !schema.has_fixed_prefix() {
        return false;
    }
    match readings[schema.lock_key_index()].decoded() {
        Some(lock) => {
            schema.values[lock.format].state == State::InProgress && !lock.conformance.deviates()
        }
        None => false,
    }
}
