//! The records of a snapshot, as far as a comparison with another one needs them: a million of them
//! take about 150 MB, whatever the size of their keys and values.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use super::difference::DifferenceKind;
use super::listed_record::ListedRecord;
use super::print::KeyPrint;

/// A record of the first snapshot.
#[derive(Debug)]
struct SnapshotEntry {
    state: &'static str,
    owner_hash: u64,
    identity: Box<[Option<KeyPrint>]>,
    /// True if the selection matches it.
    is_chosen: bool,
    /// True if the other snapshot has it, too.
    is_met: bool,
}

/// The states. The last one also stands for any other word.
const STATES: [&str; 6] =
    ["in-progress", "completed", "failed", "released", "unreadable", "absent"];

/// The records of one snapshot, for comparison with another.
#[derive(Debug, Default)]
pub(crate) struct SnapshotIndex {
    hasher: RandomState,
    /// By the hash of their names. Two records share one with a probability of one in 2^64. The
    /// hasher is seeded at random, so clients cannot construct such keys.
    all: HashMap<u64, SnapshotEntry>,
    /// The hashes of records that only the other snapshot has.
    came: HashSet<u64>,
}

impl SnapshotIndex {
    /// Adds a record of the first snapshot. `is_chosen` is true if the selection matches it.
    pub(crate) fn add(&mut self, listed_record: &ListedRecord, is_chosen: bool) {
        let entry = self.entry(listed_record, is_chosen);
        // SCAN may return a key twice.
        self.all.entry(listed_record.place(&self.hasher)).or_insert(entry);
    }

    /// True if the first snapshot has all bytes of all values.
    pub(crate) fn is_all_whole(&self) -> bool {
        self.all.values().all(SnapshotEntry::is_whole)
    }

    /// Compares a record of the other snapshot. `None` if an earlier line contained the record, or
    /// if the selection matches it in neither snapshot.
    pub(crate) fn meet(&mut self, now: &ListedRecord, is_chosen: bool) -> Option<RecordMatch> {
        let place = now.place(&self.hasher);
        let now = self.entry(now, is_chosen);
        let Some(before) = self.all.get_mut(&place) else {
            // SCAN may return a key twice, so each new place counts once.
            if !is_chosen || !self.came.insert(place) {
                return None;
            }
            let what = Some(DifferenceKind::Came);
            return Some(RecordMatch { what, before: None, is_partial: false });
        };
        let is_first = !std::mem::replace(&mut before.is_met, true);
        // A record that the selection matched only in the first snapshot counts as well.
        if !is_first || !(is_chosen || before.is_chosen) {
            return None;
        }
        Some(RecordMatch {
            what: before.compare(&now),
            before: Some(before.state),
            is_partial: !before.is_whole() || !now.is_whole(),
        })
    }

    /// True for a record of this snapshot that the other one does not have. Later calls for the
    /// same record return false.
    pub(crate) fn is_gone(&mut self, then: &ListedRecord) -> bool {
        match self.all.get_mut(&then.place(&self.hasher)) {
            Some(entry) => !std::mem::replace(&mut entry.is_met, true),
            None => false,
        }
    }

    fn entry(&self, of: &ListedRecord, is_chosen: bool) -> SnapshotEntry {
        let known = STATES.into_iter().find(|state| *state == of.state);
        SnapshotEntry {
            state: known.unwrap_or(STATES[STATES.len() - 1]),
            owner_hash: self.hasher.hash_one(&of.owner),
            identity: of.identity.clone().into_boxed_slice(),
            is_chosen,
            is_met: false,
        }
    }
}

/// A record of the other snapshot, compared with the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordMatch {
    /// `None` if the record is unchanged.
    pub(crate) what: Option<DifferenceKind>,
    /// Its state in the first snapshot.
    pub(crate) before: Option<&'static str>,
    /// True if a snapshot has only the beginning of a value.
    pub(crate) is_partial: bool,
}

impl SnapshotEntry {
    /// True if all bytes of the values were read.
    fn is_whole(&self) -> bool {
        self.identity.iter().flatten().all(|print| print.whole)
    }

    fn compare(&self, now: &Self) -> Option<DifferenceKind> {
        if self.state != now.state {
            return Some(DifferenceKind::State);
        }
        let mut is_same_length = true;
        let mut is_renewed = false;
        for (before, now) in self.identity.iter().zip(&now.identity) {
            let (before, now) = match (before, now) {
                (Some(before), Some(now)) => (before, now),
                (None, None) => continue,
                _ => return Some(DifferenceKind::Retaken),
            };
            // Beginnings of different lengths cannot be compared.
            let is_cut = !before.whole || !now.whole;
            if is_cut && (before.whole != now.whole || before.read != now.read) {
                is_same_length = false;
            } else if (before.crc64, before.read) != (now.crc64, now.read) {
                return Some(DifferenceKind::Retaken);
            }
            is_renewed |= match (before.expires_at_ms, now.expires_at_ms) {
                // Both reads may be off, so the uncertainties add up.
                (Some(one), Some(other)) => {
                    one.abs_diff(other) > before.within_ms.saturating_add(now.within_ms)
                }
                (one, other) => one != other,
            };
        }
        // The owner comes from the whole value, even if the print covers only the beginning.
        if is_same_length && self.owner_hash != now.owner_hash {
            return Some(DifferenceKind::Retaken);
        }
        if is_renewed { Some(DifferenceKind::Renewed) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(crc: u64, read: u64, at: Option<u64>) -> Option<KeyPrint> {
        // The lists of these tests read at most 256 bytes.
        Some(KeyPrint {
            crc64: Some(crc),
            read,
            whole: read < 256,
            expires_at_ms: at,
            within_ms: 0,
        })
    }

    fn record(key: &str, state: &str, identity: &[Option<KeyPrint>]) -> ListedRecord {
        ListedRecord {
            schema: "express".to_owned(),
            key: key.to_owned(),
            key_base64: None,
            redis_keys: vec![format!("idem:{key}")],
            state: state.to_owned(),
            owner: None,
            fingerprint: None,
            response: None,
            findings: Vec::new(),
            age_ms: None,
            age_evidence: None,
            lock_ttl_ms: None,
            result_ttl_ms: None,
            ends_in_ms: None,
            no_expiry: None,
            identity: identity.to_vec(),
        }
    }

    fn compare(then: &ListedRecord, now: &ListedRecord) -> Option<DifferenceKind> {
        let mut known = SnapshotIndex::default();
        known.add(then, true);
        known.meet(now, true).unwrap().what
    }

    /// Rule: identity consists of the bytes and the expiry of each Redis key.
    #[test]
    fn a_difference_follows_from_state_bytes_and_expiry() {
        let then = record("a", "in-progress", &[print(1, 9, Some(5_000)), None]);
        let with = |state: &str, prints: [Option<KeyPrint>; 2]| {
            compare(&then, &record("a", state, &prints))
        };
        assert_eq!(with("in-progress", [print(1, 9, Some(5_000)), None]), None);
        assert_eq!(
            with("completed", [print(1, 9, Some(5_000)), None]),
            Some(DifferenceKind::State)
        );
        assert_eq!(
            with("in-progress", [print(2, 9, Some(5_000)), None]),
            Some(DifferenceKind::Retaken)
        );
        assert_eq!(
            with("in-progress", [print(2, 8, Some(5_000)), None]),
            Some(DifferenceKind::Retaken)
        );
        for renewed in [print(1, 9, Some(5_001)), print(1, 9, Some(4_999)), print(1, 9, None)] {
            assert_eq!(with("in-progress", [renewed, None]), Some(DifferenceKind::Renewed));
        }
        assert_eq!(
            with("in-progress", [print(1, 9, Some(5_000)), print(1, 1, None)]),
            Some(DifferenceKind::Retaken)
        );
        assert_eq!(compare(&then, &record("b", "in-progress", &[])), Some(DifferenceKind::Came));
    }

    #[test]
    fn prefixes_of_different_length_are_not_compared() {
        let then = record("a", "completed", &[print(1, 256, Some(5_000))]);
        assert_eq!(
            compare(&then, &record("a", "completed", &[print(2, 9_000, Some(5_000))])),
            None
        );
        assert_eq!(
            compare(&then, &record("a", "completed", &[print(2, 9_000, Some(6_000))])),
            Some(DifferenceKind::Renewed)
        );
    }

    #[test]
    fn uncertain_expiries_compare_as_equal_within_their_range() {
        let about = |at, within_ms| {
            record(
                "a",
                "in-progress",
                &[print(1, 9, Some(at)).map(|print| KeyPrint { within_ms, ..print })],
            )
        };
        assert_eq!(compare(&about(5_000, 3), &about(5_004, 2)), None);
        assert_eq!(compare(&about(5_000, 3), &about(5_006, 2)), Some(DifferenceKind::Renewed));
        // Beyond the lowest 32 bits.
        let far = 1_u64 << 32;
        assert_eq!(compare(&about(far - 1, 1), &about(far + 1, 1)), None);
    }

    #[test]
    fn a_record_that_is_listed_twice_counts_once() {
        let (a, b) = (record("a", "completed", &[]), record("b", "completed", &[]));
        let mut known = SnapshotIndex::default();
        known.add(&a, true);
        known.add(&a, true);
        assert!(known.meet(&b, true).is_some() && known.meet(&b, true).is_none());
        assert!(known.is_gone(&a) && !known.is_gone(&a) && !known.is_gone(&b));
    }

    #[test]
    fn a_record_counts_if_either_snapshot_selects_it() {
        let (then, now) = (record("a", "in-progress", &[]), record("a", "completed", &[]));
        for (before, after, counts) in
            [(true, true, true), (true, false, true), (false, true, true), (false, false, false)]
        {
            let mut known = SnapshotIndex::default();
            known.add(&then, before);
            let met = known.meet(&now, after);
            assert_eq!(
                met.is_some_and(|met| met.what == Some(DifferenceKind::State)),
                counts,
                "{before} {after}"
            );
        }
        let mut known = SnapshotIndex::default();
        assert!(known.meet(&now, false).is_none() && known.meet(&now, true).is_some());
    }
}
