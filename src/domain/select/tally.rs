//! Counts records by group: how many, the oldest, and a few examples.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::record::{Age, Record};

/// The number of example records per group.
const SAMPLE: usize = 3;

/// Records by group. The memory use depends only on the number of groups and schemas.
#[derive(Debug, Clone)]
pub struct Tally<K> {
    groups: BTreeMap<K, TallyGroup>,
    /// The names of the schemas of all records that were counted.
    schemas: BTreeSet<String>,
}

/// The records of one group, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TallyGroup {
    pub(crate) count: u64,
    /// The age of the oldest; `None` if no age is known.
    pub(crate) oldest: Option<Age>,
    /// The number of records without an age, any of which may be older.
    pub(crate) without_age: u64,
    pub(crate) sample: Vec<TallySample>,
}

/// A record of a group, as an example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TallySample {
    pub(crate) schema: String,
    pub(crate) key: Vec<u8>,
}

impl<K> Default for Tally<K> {
    fn default() -> Self {
        Self { groups: BTreeMap::new(), schemas: BTreeSet::new() }
    }
}

impl<K: Ord> Tally<K> {
    /// Counts a record. `age` is its own age, or that of its lock.
    pub(crate) fn add(&mut self, group: K, record: &Record, age: Option<Age>) {
        // Looked up first, because most records have a schema that is known already.
        if !self.schemas.contains(&record.schema.name) {
            self.schemas.insert(record.schema.name.clone());
        }
        let group = self.groups.entry(group).or_default();
        group.count += 1;
        group.oldest = older(group.oldest, age);
        group.without_age += u64::from(age.is_none());
        if group.sample.len() < SAMPLE {
            group
                .sample
                .push(TallySample { schema: record.schema.name.clone(), key: record.key.clone() });
        }
    }

    /// The names of the schemas of all records that were counted.
    pub(crate) fn schemas(&self) -> &BTreeSet<String> {
        &self.schemas
    }

    /// The groups in their order.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (&K, &TallyGroup)> {
        self.groups.iter()
    }

    /// All records that were counted.
    pub(crate) fn total(&self) -> u64 {
        self.groups.values().map(|group| group.count).sum()
    }
}

fn older(one: Option<Age>, other: Option<Age>) -> Option<Age> {
    match (one, other) {
        (Some(first), Some(second)) if first.millis > second.millis => one,
        (_, Some(_)) => other,
        (_, None) => one,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::TimeLeft;
    use crate::domain::samples::{CHI_LOCK, chi};

    #[test]
    fn counts_keeps_the_oldest_and_a_few() {
        let mut tally = Tally::default();
        for left in [10_000, 5_000, 20_000, 30_000] {
            let record = chi(CHI_LOCK, TimeLeft::Millis(left));
            tally.add("overdue", &record, record.age);
        }
        tally.add("no-expiry", &chi(CHI_LOCK, TimeLeft::NoExpiry), None);
        let groups: Vec<_> = tally
            .groups()
            .map(|(name, group)| {
                (*name, group.count, group.oldest.map(|age| age.millis), group.sample.len())
            })
            .collect();
        assert_eq!(groups, [("no-expiry", 1, None, 1), ("overdue", 4, Some(55_000), 3)]);
        assert_eq!(tally.total(), 5);
    }
}
