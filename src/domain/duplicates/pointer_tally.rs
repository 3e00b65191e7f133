//! Counts which places of response bodies could identify an operation. Keeps hashes only, and a
//! bounded number of them.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use serde_json::Value;

use super::canonical;
use crate::domain::schema::closed_fields::escaped;

/// The most pointers that are counted. With [`MAX_VALUES`] of each, about two million hashes are in
/// memory.
const MAX_POINTERS: usize = 64;

/// The most values of a pointer that are kept. Beyond it, a part of all values is kept, chosen by
/// their hashes, and the counts become estimates.
const MAX_VALUES: usize = 1 << 15;

/// How deep objects are searched.
const MAX_STEPS: usize = 6;

/// Longer pointers and longer texts are not counted, because values that identify an operation are
/// shorter.
const MAX_TEXT: usize = 200;

/// The values at the pointers of many response bodies.
#[derive(Debug, Default)]
pub(crate) struct PointerTally {
    pointers: HashMap<String, PointerValues>,
    hasher: RandomState,
    /// True if bodies have more pointers than are counted.
    pub(crate) leaves_out: bool,
}

/// The values at one pointer.
#[derive(Debug, Default)]
struct PointerValues {
    /// For each hash of a value, the hash of the first key, and whether another key has the value.
    values: HashMap<u64, (u64, bool)>,
    /// How many times the kept part was halved.
    halved: u32,
}

/// How many values are at a pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PointerCount {
    pub(crate) pointer: String,
    /// The number of different values.
    pub(crate) values: u64,
    /// How many of these two or more idempotency keys have.
    pub(crate) repeated: u64,
    /// True if the numbers come from a part of the values.
    pub(crate) is_estimate: bool,
}

impl PointerTally {
    /// Counts the texts and numbers in the objects of a response body. A body that is not JSON has
    /// none.
    pub(crate) fn add(&mut self, key: &[u8], body: &[u8]) {
        let Some(document) = canonical::body(body) else { return };
        let key = self.hasher.hash_one(key);
        self.add_members(String::new(), &document.to_value(), key, 0);
    }

    fn add_members(&mut self, pointer: String, value: &Value, key: u64, steps: usize) {
        let text = match value {
            Value::Object(members) if steps < MAX_STEPS => {
                for (name, member) in members {
                    let pointer = format!("{pointer}/{}", escaped(name));
                    if pointer.len() <= MAX_TEXT {
                        self.add_members(pointer, member, key, steps + 1);
                    }
                }
                return;
            }
            Value::String(_) | Value::Number(_) => canonical::text_of(value),
            _ => None,
        };
        let Some(text) = text else { return };
        if text.len() > MAX_TEXT || pointer.is_empty() {
            return;
        }
        if !self.pointers.contains_key(&pointer) {
            if self.pointers.len() == MAX_POINTERS {
                self.leaves_out = true;
                return;
            }
            self.pointers.insert(pointer.clone(), PointerValues::default());
        }
        let value = self.hasher.hash_one(text);
        if let Some(values) = self.pointers.get_mut(&pointer) {
            values.add(value, key);
        }
    }

    /// The pointers, those with repeated values first, and among these those with the fewest.
    /// Pointers of only one record are left out, because their names may be data.
    pub(crate) fn counts(&self) -> Vec<PointerCount> {
        let mut counts = Vec::new();
        for (pointer, values) in &self.pointers {
            let count = values.count(pointer);
            if count.values > 1 || count.repeated > 0 {
                counts.push(count);
            }
        }
        // Values that repeat are what the operator looks for, as long as most do not.
        counts.sort_by_key(|count| {
            let share = count.repeated * 1_000 / count.values;
            (count.repeated == 0, share, std::cmp::Reverse(count.values), count.pointer.clone())
        });
        counts
    }
}

impl PointerValues {
    fn add(&mut self, value: u64, key: u64) {
        if !self.keeps(value) {
            return;
        }
        let (first, is_repeated) = self.values.entry(value).or_insert((key, false));
        *is_repeated |= *first != key;
        while self.values.len() > MAX_VALUES {
            self.halved += 1;
            let halved = self.halved;
            self.values.retain(|value, _| value.trailing_zeros() >= halved);
        }
    }

    fn keeps(&self, value: u64) -> bool {
        value.trailing_zeros() >= self.halved
    }

    fn count(&self, pointer: &str) -> PointerCount {
        let repeated = self.values.values().filter(|(_, is_repeated)| *is_repeated).count() as u64;
        PointerCount {
            pointer: pointer.to_owned(),
            values: (self.values.len() as u64) << self.halved,
            repeated: repeated << self.halved,
            is_estimate: self.halved > 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_by_key_and_pointer() {
        let mut tally = PointerTally::default();
        for (key, body) in [
            ("k-1", r#"{"order":{"id":"o-1"},"paid":true,"currency":"EUR"}"#),
            ("k-1", r#"{"order":{"id":"o-1"},"paid":true,"currency":"EUR"}"#),
            ("k-2", r#"{"order":{"id":"o-1"},"paid":true,"currency":"EUR"}"#),
            ("k-3", r#"{"order":{"id":"o-2"},"paid":true,"currency":"EUR"}"#),
            ("k-4", "not json"),
        ] {
            tally.add(key.as_bytes(), body.as_bytes());
        }
        let id = PointerCount {
            pointer: "/order/id".to_owned(),
            values: 2,
            repeated: 1,
            is_estimate: false,
        };
        let counts = tally.counts();
        let pointers: Vec<_> = counts.iter().map(|count| count.pointer.as_str()).collect();
        assert_eq!((&counts[0], pointers.as_slice()), (&id, &["/order/id", "/currency"][..]));
        tally.add(b"k-5", br#"{"secret-name":1}"#);
        assert_eq!(tally.counts().len(), 2, "a name that one record has may be data");
    }

    #[test]
    fn memory_is_bounded_and_the_counts_become_estimates() {
        let mut tally = PointerTally::default();
        for number in 0..100_000_u32 {
            let body = format!(r#"{{"id":{}}}"#, number / 2);
            tally.add(format!("k-{number}").as_bytes(), body.as_bytes());
        }
        let counts = tally.counts();
        assert!(counts[0].is_estimate && tally.pointers["/id"].values.len() <= MAX_VALUES);
        assert!((45_000..55_000).contains(&counts[0].values), "{counts:?}");
        assert!((45_000..55_000).contains(&counts[0].repeated), "{counts:?}");
        for number in 0..200 {
            tally.add(b"k", format!(r#"{{"member-{number}":1}}"#).as_bytes());
        }
        assert!(tally.leaves_out && tally.pointers.len() == MAX_POINTERS);
    }
}
