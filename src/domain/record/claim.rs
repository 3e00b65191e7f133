//! Claims: whether a record is its schema's, or somebody else's value that a schema can read all the same.

use super::decode::{Form, Reading};
use crate::domain::schema::Schema;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The schema's: its values have forms that the schema writes.
    Own,
    /// The schema's, as far as the values were read: the rest of a value may have another form.
    SoFar,
    /// Another program's, and why.
    Foreign(String),
    /// Not the schema's lock: the schema of this name reads it as a result.
    ResultOf(String),
    /// Not the schema's result: the schema of this name reads it as a lock.
    LockOf(String),
}

impl Claim {
    /// What the readings of a record's Redis keys say.
    pub(crate) fn of(schema: &Schema, readings: &[Reading]) -> Self {
        if let Some(why) = readings.iter().find_map(Reading::foreign_because) {
            return Self::Foreign(why.to_owned());
        }
        if let Some(unclaimed_key) =
            readings.iter().find(|reading| !reading.is_own()).filter(|_| !schema.has_prefix())
        {
            let what = unclaimed_key.unread().unwrap_or("no string");
            return Self::Foreign(format!("{what}, and its Redis key has no literal prefix"));
        }
        let is_open =
            |reading: &Reading| reading.decoded().is_some_and(|value| value.form == Form::SoFar);
        if readings.iter().any(is_open) { Self::SoFar } else { Self::Own }
    }

    /// True when the record is not the schema's: nothing that changes many records touches it.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self, Self::Foreign(_) | Self::ResultOf(_) | Self::LockOf(_))
    }

    pub(crate) fn foreign_because(&self) -> Option<String> {
        match self {
            Self::Own | Self::SoFar => None,
            Self::Foreign(why) => Some(why.clone()),
            Self::ResultOf(other) => Some(format!("{other} reads it as a completed result")),
            Self::LockOf(other) => Some(format!("{other} reads it as a lock")),
        }
    }
}
