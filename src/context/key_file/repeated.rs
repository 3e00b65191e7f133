//! Which keys of a list are named more than once: eight bytes a key while they are counted, and afterwards those keys alone.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hash};

/// Takes each key of a list once, however often the list names the key.
pub(super) struct Once<K> {
    hasher: RandomState,
    /// Hashes that more than one place of the list has.
    repeated: HashSet<u64>,
    /// Keys with such a hash that were taken already.
    taken: HashSet<K>,
}

impl<K: Hash + Eq + Clone> Once<K> {
    pub(super) fn of<E>(keys: impl Iterator<Item = Result<K, E>>) -> Result<Self, E> {
        let hasher = RandomState::new();
        let mut hashes =
            keys.map(|key| key.map(|key| hasher.hash_one(key))).collect::<Result<Vec<_>, _>>()?;
        hashes.sort_unstable();
        let repeated =
            hashes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        Ok(Self { hasher, repeated, taken: HashSet::new() })
    }

    /// True for a key that was not taken before.
    pub(super) fn takes(&mut self, key: &K) -> bool {
        !self.repeated.contains(&self.hasher.hash_one(key)) || self.taken.insert(key.clone())
    }

    /// Begins anew with the same list.
    pub(super) fn rewind(&mut self) {
        self.taken.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: a key that is named twice is one, and memory holds only such keys.
    #[test]
    fn each_key_is_taken_once_each_time_the_list_is_read() {
        let list: Vec<_> =
            (0..1_000u32).chain([7, 7, 900]).map(|number| number.to_be_bytes().to_vec()).collect();
        let mut once = Once::of(list.iter().cloned().map(Ok::<_, ()>)).unwrap();
        for _ in 0..2 {
            assert_eq!(list.iter().filter(|key| once.takes(key)).count(), 1_000);
            assert_eq!(once.taken.len(), 2);
            once.rewind();
        }
    }
}
