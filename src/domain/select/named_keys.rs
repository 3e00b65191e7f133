//! The keys that an operator named, and the records found for each.

use crate::domain::record::{Record, RecordName};

/// The most keys that are listed by name; further ones are only counted.
const MAX_LISTED: usize = 20;

/// The outcome for keys that were named one by one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NamedKeys {
    /// Keys under which no record was found.
    pub(crate) absent: u64,
    /// The first of the absent keys.
    pub(crate) listed_absent: Vec<Vec<u8>>,
    /// The first key that names a record of an excluded schema, why that is, and what to do.
    pub(crate) first_excluded: Option<(Vec<u8>, String, String)>,
    /// Keys that name more than one record each. Their records are not changed.
    pub(crate) ambiguous: u64,
    /// The first of the ambiguous keys, and their records.
    pub(crate) listed_ambiguous: Vec<(Vec<u8>, Vec<RecordName>)>,
    /// Records of named keys that were left alone.
    pub(crate) left_alone: u64,
    /// Records among these that the command refuses, whatever its filters are.
    pub(crate) refused: u64,
    /// The first of the records that were left alone, each with the reason.
    pub(crate) listed_left: Vec<(RecordName, String)>,
    /// The first lock that the filters left out.
    pub(crate) first_lock: Option<RecordName>,
}

impl NamedKeys {
    /// Adds a key under which no record was found. `excluded` says why, and what to do, if it names
    /// a record of an excluded schema.
    pub(crate) fn add_absent(&mut self, key: &[u8], excluded: Option<(String, String)>) {
        self.absent += 1;
        if let Some((why, hint)) = excluded
            && self.first_excluded.is_none()
        {
            self.first_excluded = Some((key.to_vec(), why, hint));
        }
        if self.listed_absent.len() < MAX_LISTED {
            self.listed_absent.push(key.to_vec());
        }
    }

    /// Adds a key that names more than one record.
    pub(crate) fn add_ambiguous(&mut self, key: &[u8], names: Vec<RecordName>) {
        self.ambiguous += 1;
        if self.listed_ambiguous.len() < MAX_LISTED {
            self.listed_ambiguous.push((key.to_vec(), names));
        }
    }

    /// Adds a record of a named key that the command leaves alone, and why.
    pub(crate) fn add_left(&mut self, name: RecordName, why: String) {
        self.left_alone += 1;
        if self.listed_left.len() < MAX_LISTED {
            self.listed_left.push((name, why));
        }
    }

    /// Adds a record of a named key that the filters leave out, and why. `is_unlockable` is true if
    /// `force-unlock` removes its lock.
    pub(crate) fn add_not_chosen(&mut self, record: &Record, why: String, is_unlockable: bool) {
        if is_unlockable && self.first_lock.is_none() {
            self.first_lock = Some(RecordName::of(record));
        }
        self.add_left(RecordName::of(record), why);
    }

    /// Adds a record of a named key that the command refuses, and why.
    pub(crate) fn add_refused(&mut self, record: &Record, why: String) {
        self.refused += 1;
        self.add_left(RecordName::of(record), why);
    }

    /// True if the command left some of the named keys alone. With `is_filtered`, the operator
    /// chose among the keys, so that records which the filters left out do not count.
    pub(crate) fn has_left_any(&self, is_filtered: bool) -> bool {
        let left = if is_filtered { self.refused } else { self.left_alone };
        self.absent + self.ambiguous + left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: memory does not grow with the number of keys that are not there.
    #[test]
    fn some_keys_are_told_and_all_are_counted() {
        let mut keys = NamedKeys::default();
        (0..50).for_each(|number| keys.add_absent(&[number], None));
        assert_eq!((keys.absent, keys.listed_absent.len()), (50, MAX_LISTED));
    }
}
