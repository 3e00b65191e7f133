//! The fields of a value that select records, and which of them are unknown because the value was
//! read only in part.

use strum::{IntoStaticStr, VariantArray};

use crate::domain::as_str::as_str;

/// The most bytes that a scan reads of a value. More than this much of a
/// reply, requested at once, makes a server evict keys: 200 pipelined replies of 1 MiB evicted 22
/// of 50 locks in a trial.
pub const MAX_SCANNED: usize = 1 << 20;

/// A field of a value that filters and columns use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, VariantArray, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ValueField {
    Owner,
    Fingerprint,
    /// The HTTP status of the stored response.
    Status,
    /// The time at which the lock was acquired or the result stored.
    Time,
    /// The end of the value, which decides whether it can be decoded.
    End,
    /// How long its Redis key was not touched. Redis knows that, not the value.
    Idle,
}

as_str!(ValueField);

/// A set of [`ValueField`]s. A scan builds one for each value that it reads in part, so that it
/// must not allocate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FieldSet {
    bits: u8,
}

impl FieldSet {
    pub(crate) const NONE: Self = Self { bits: 0 };

    /// Every field, without the end of the value and the idle time.
    pub(crate) const ALL: Self = Self { bits: 0b1111 };

    /// The set of these fields.
    pub(crate) fn of(fields: &[ValueField]) -> Self {
        let mut set = Self::NONE;
        for field in fields {
            set.insert(*field);
        }
        set
    }

    pub(crate) fn insert(&mut self, field: ValueField) {
        self.bits |= 1 << field as u8;
    }

    pub(crate) fn contains(self, field: ValueField) -> bool {
        self.bits & (1 << field as u8) != 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// The fields in either set.
    #[must_use]
    pub(crate) fn union(self, other: Self) -> Self {
        Self { bits: self.bits | other.bits }
    }

    /// The fields in both sets.
    #[must_use]
    pub(crate) fn intersection(self, other: Self) -> Self {
        Self { bits: self.bits & other.bits }
    }

    /// The names of the fields.
    pub(crate) fn names(self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for field in ValueField::VARIANTS {
            if self.contains(*field) {
                names.push(field.as_str());
            }
        }
        names
    }

    /// The first field of the set; `None` if it is empty.
    pub(crate) fn first(self) -> Option<ValueField> {
        ValueField::VARIANTS.iter().copied().find(|field| self.contains(*field))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_inserted_and_all_holds_every_field() {
        let set = FieldSet::of(&[ValueField::Status, ValueField::Owner]);
        assert!(set.contains(ValueField::Status) && !set.contains(ValueField::Time));
        assert_eq!(set.first(), Some(ValueField::Owner));
        assert_eq!(FieldSet::of(&ValueField::VARIANTS[..4]), FieldSet::ALL);
        assert!(set.intersection(FieldSet::of(&[ValueField::Time])).is_empty());
        assert_eq!(FieldSet::NONE.first(), None);
    }
}
