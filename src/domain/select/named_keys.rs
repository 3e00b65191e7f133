//! The keys that an operator named, and what was there.

use std::collections::BTreeMap;

use crate::domain::record::Name;
use crate::domain::schema::State;

/// Keys that are told by name; further ones are counted.
const MOST_TOLD: usize = 20;

/// What became of keys that were named one by one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NamedKeys {
    /// Keys under which no record was found.
    pub(crate) absent: u64,
    /// The first of those.
    pub(crate) told: Vec<Vec<u8>>,
    /// Keys that name more than one record each: nothing is changed for them.
    pub(crate) ambiguous: u64,
    /// The first of those, and the records.
    pub(crate) told_ambiguous: Vec<(Vec<u8>, Vec<Name>)>,
    /// Records of named keys that the filters left out, by state.
    pub(crate) passed: BTreeMap<&'static str, u64>,
}

impl NamedKeys {
    pub(crate) fn add_absent(&mut self, key: &[u8]) {
        self.absent += 1;
        if self.told.len() < MOST_TOLD {
            self.told.push(key.to_vec());
        }
    }

    pub(crate) fn add_ambiguous(&mut self, key: &[u8], names: Vec<Name>) {
        self.ambiguous += 1;
        if self.told_ambiguous.len() < MOST_TOLD {
            self.told_ambiguous.push((key.to_vec(), names));
        }
    }

    pub(crate) fn add_passed(&mut self, state: State) {
        *self.passed.entry(state.as_str()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: memory does not grow with the number of keys that are not there.
    #[test]
    fn some_keys_are_told_and_all_are_counted() {
        let mut keys = NamedKeys::default();
        (0..50).for_each(|number| keys.add_absent(&[number]));
        assert_eq!((keys.absent, keys.told.len()), (50, MOST_TOLD));
    }
}
