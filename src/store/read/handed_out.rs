//! Which records a walk over a cluster has handed out. A slot that moves meanwhile is read on two nodes.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use crate::domain::hash_slot;
use crate::domain::record::Candidate;

/// The records, by the slots of their first Redis keys: 8 bytes a record, as few are ever asked for.
pub(in crate::store) struct HandedOut {
    hasher: RandomState,
    records: Vec<Vec<u64>>,
    /// Slots that were read on two nodes.
    asked_for: HashMap<u16, HashSet<u64>>,
}

impl HandedOut {
    pub(in crate::store) fn new() -> Self {
        let records = vec![Vec::new(); usize::from(hash_slot::SLOTS)];
        Self { hasher: RandomState::new(), records, asked_for: HashMap::new() }
    }

    /// Notes a record that is handed out.
    pub(in crate::store) fn note(&mut self, record: &Candidate) {
        let (slot, hash) = self.place(record);
        match self.asked_for.get_mut(&slot) {
            Some(records) => drop(records.insert(hash)),
            None => self.records[usize::from(slot)].push(hash),
        }
    }

    /// True for a record that was handed out.
    pub(in crate::store) fn has(&mut self, record: &Candidate) -> bool {
        let (slot, hash) = self.place(record);
        let noted = &mut self.records[usize::from(slot)];
        let records = self.asked_for.entry(slot).or_default();
        records.extend(std::mem::take(noted));
        records.contains(&hash)
    }

    /// True once a record of this record's slot was asked for: the slot was read on two nodes.
    pub(in crate::store) fn is_of_two_nodes(&self, record: &Candidate) -> bool {
        !self.asked_for.is_empty() && self.asked_for.contains_key(&hash_slot::of(&record.redis_keys[0]))
    }

    fn place(&self, record: &Candidate) -> (u16, u64) {
        let first = &record.redis_keys[0];
        (hash_slot::of(first), self.hasher.hash_one((first, &record.key)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn record(key: &str) -> Candidate {
        let redis_keys = vec![format!("idem:{key}").into_bytes(), format!("done:{key}").into_bytes()];
        Candidate { key: key.as_bytes().to_vec(), redis_keys, schemas: Arc::from([]), is_owned: true }
    }

    #[test]
    fn a_record_is_handed_out_once_before_and_after_its_slot_is_asked_for() {
        let mut handed_out = HandedOut::new();
        handed_out.note(&record("{t}a"));
        assert!(!handed_out.is_of_two_nodes(&record("{t}a")));
        assert!(handed_out.has(&record("{t}a")) && !handed_out.has(&record("{t}b")));
        assert!(handed_out.is_of_two_nodes(&record("{t}b")));
        handed_out.note(&record("{t}b"));
        assert!(handed_out.has(&record("{t}b")) && handed_out.has(&record("{t}a")));
        assert!(!handed_out.has(&record("elsewhere")));
    }
}
