//! The records of a snapshot in 24 bytes each: a million of them take 24 MB, whatever the size of
//! their keys and values.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};

use super::difference::DifferenceKind;
use super::listed_record::ListedRecord;
use super::print::KeyPrint;

/// The compact form of a record. Two records share a place with a probability of one in 2^64. The
/// hasher is seeded at random, so clients cannot construct such keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SnapshotEntry {
    place: u64,
    /// From the highest bits: whether the record is chosen (1), the state (3), how its first two
    /// Redis keys end (2 each), the uncertainty of the expiries (8), the number of its lengths in
    /// [`SnapshotIndex::partial_lengths`] (9), a hash of the bytes (39).
    content: u64,
    /// The lowest 32 bits of the expiry of its first Redis key in milliseconds, and those of the
    /// sum of the others' expiries. A value repeats after 49 days.
    at: [u32; 2],
}

/// States by number. The last number also stands for any other word.
const STATES: [&str; 6] =
    ["in-progress", "completed", "failed", "released", "unreadable", "absent"];

const CHOSEN: u32 = 63;
const STATE: u32 = 60;
const ENDS: u32 = 56;
const WITHIN: u32 = 48;
const READ: u32 = 39;

/// The number for lengths that no longer fit into [`SnapshotIndex::partial_lengths`].
const OTHER_LENGTHS: u64 = (1 << 9) - 1;

/// How many bytes were read of the first two Redis keys of a record, and a hash of these numbers
/// for the others; `None` if all bytes were read, or if the key does not exist.
type PartialLengths = [Option<u64>; 3];

/// The records of one snapshot, for comparison with another.
#[derive(Debug, Default)]
pub(crate) struct SnapshotIndex {
    hasher: RandomState,
    /// Sorted by place after [`SnapshotIndex::close`].
    all: Vec<SnapshotEntry>,
    /// The different lengths that were read of values. There are few, because a read that does not
    /// reach the end of a value ends at a fixed length or with the part that was needed.
    partial_lengths: Vec<PartialLengths>,
    /// The entries that the other snapshot also has, one bit each.
    met: Vec<u64>,
    /// The places of records that only the other snapshot has.
    came: HashSet<u64>,
}

impl SnapshotIndex {
    /// An empty index with room for this many records.
    pub(crate) fn with_capacity(records: usize) -> Self {
        Self { all: Vec::with_capacity(records), ..Self::default() }
    }

    /// Adds a record of the first snapshot. `is_chosen` is true if the selection matches it.
    pub(crate) fn add(&mut self, listed_record: &ListedRecord, is_chosen: bool) {
        let kept = self.kept(listed_record, is_chosen);
        self.all.push(kept);
    }

    /// Completes the first snapshot. Duplicates are merged, because SCAN may return a key twice.
    pub(crate) fn close(&mut self) {
        self.all.sort_unstable();
        self.all.dedup_by_key(|kept| kept.place);
        self.met = vec![0; self.all.len().div_ceil(64)];
    }

    /// True if the first snapshot has all bytes of all values.
    pub(crate) fn is_all_whole(&self) -> bool {
        self.partial_lengths.iter().all(|lengths| *lengths == [None; 3])
    }

    /// Compares a record of the other snapshot. `None` if an earlier line contained the record, or
    /// if the selection matches it in neither snapshot.
    pub(crate) fn meet(&mut self, now: &ListedRecord, is_chosen: bool) -> Option<RecordMatch> {
        let now = self.kept(now, is_chosen);
        let Ok(index) = self.all.binary_search_by_key(&now.place, |kept| kept.place) else {
            // SCAN may return a key twice, so each new place counts once.
            if !is_chosen || !self.came.insert(now.place) {
                return None;
            }
            let what = Some(DifferenceKind::Came);
            return Some(RecordMatch { what, before: None, is_partial: false });
        };
        let before = self.all[index];
        let is_first = self.mark_met(index);
        // A record that the selection matched only in the first snapshot counts as well.
        let is_selected = is_chosen || before.content >> CHOSEN == 1;
        if !is_first || !is_selected {
            return None;
        }
        Some(RecordMatch {
            what: before.compare(&now),
            before: Some(STATES[before.state()]),
            is_partial: !self.is_whole(before) || !self.is_whole(now),
        })
    }

    /// True for a record of this snapshot that the other one does not have. Later calls for the
    /// same record return false.
    pub(crate) fn is_gone(&mut self, then: &ListedRecord) -> bool {
        let place = then.place(&self.hasher);
        let Ok(index) = self.all.binary_search_by_key(&place, |kept| kept.place) else {
            return false;
        };
        self.mark_met(index)
    }

    /// A hash of how many bytes were read of the Redis keys after the second one; `None` if all
    /// were read, or if there is no such key.
    fn other_lengths(&self, of: &ListedRecord) -> Option<u64> {
        let mut hasher = self.hasher.build_hasher();
        let mut is_partial = false;
        for print in of.identity.iter().skip(2) {
            let length = partial_length(print.as_ref());
            is_partial |= length.is_some();
            length.hash(&mut hasher);
        }
        if is_partial { Some(hasher.finish()) } else { None }
    }

    /// True if all bytes of the entry's values were read.
    fn is_whole(&self, entry: SnapshotEntry) -> bool {
        let number = entry.part(READ, 9) as usize;
        self.partial_lengths.get(number) == Some(&[None; 3])
    }

    /// Notes that the other snapshot has this entry too; true if that was not noted before.
    fn mark_met(&mut self, index: usize) -> bool {
        let word = index / 64;
        let bit = 1 << (index % 64);
        let is_first = self.met[word] & bit == 0;
        self.met[word] |= bit;
        is_first
    }

    fn kept(&mut self, of: &ListedRecord, is_chosen: bool) -> SnapshotEntry {
        let state =
            STATES.iter().position(|state| *state == of.state).unwrap_or(STATES.len() - 1) as u64;
        let mut bytes = self.hasher.build_hasher();
        let mut within_ms = 0;
        for print in &of.identity {
            print.as_ref().map(|print| (print.crc64, print.read)).hash(&mut bytes);
            if let Some(print) = print {
                within_ms = within_ms.max(print.within_ms);
            }
        }
        // The owner comes from the whole value, even if the print covers only the beginning.
        of.owner.hash(&mut bytes);
        let hash = bytes.finish() & ((1 << READ) - 1);
        // The uncertainties of the expiries in a sum add up. The entry has 8 bits for them.
        let summed = of.identity.len().saturating_sub(1).max(1) as u64;
        let within = within_ms.saturating_mul(summed).min(255);
        let first = of.identity.first().and_then(Option::as_ref);
        let second = of.identity.get(1).and_then(Option::as_ref);
        let ends = ends(first) << 2 | ends(second);
        let lengths = [partial_length(first), partial_length(second), self.other_lengths(of)];
        let lengths = number_of(lengths, &mut self.partial_lengths);
        let mut other_expiries = 0_u32;
        for print in of.identity.iter().skip(1) {
            other_expiries = other_expiries.wrapping_add(low_expiry_bits(print.as_ref()));
        }
        SnapshotEntry {
            place: of.place(&self.hasher),
            content: u64::from(is_chosen) << CHOSEN
                | state << STATE
                | ends << ENDS
                | within << WITHIN
                | lengths << READ
                | hash,
            at: [low_expiry_bits(first), other_expiries],
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

/// The number of these lengths; adds them if they are new and there is room.
fn number_of(lengths: PartialLengths, known: &mut Vec<PartialLengths>) -> u64 {
    if let Some(number) = known.iter().position(|other| *other == lengths) {
        return number as u64;
    }
    if known.len() as u64 >= OTHER_LENGTHS {
        return OTHER_LENGTHS;
    }
    known.push(lengths);
    known.len() as u64 - 1
}

/// How a Redis key ends: 0 if it does not exist, 1 if it never expires, 2 if it expires.
fn ends(print: Option<&KeyPrint>) -> u64 {
    match print {
        None => 0,
        Some(print) => 1 + u64::from(print.expires_at_ms.is_some()),
    }
}

/// How many bytes of a value were read; `None` if that was all of them, or if there is no value.
fn partial_length(print: Option<&KeyPrint>) -> Option<u64> {
    let print = print?;
    if print.whole { None } else { Some(print.read) }
}

/// The lowest 32 bits of an expiry in milliseconds; 0 if there is none.
fn low_expiry_bits(print: Option<&KeyPrint>) -> u32 {
    match print.and_then(|print| print.expires_at_ms) {
        Some(expires_at_ms) => expires_at_ms as u32,
        None => 0,
    }
}

impl SnapshotEntry {
    fn state(&self) -> usize {
        (self.content >> STATE & 0b111) as usize
    }

    fn compare(&self, now: &Self) -> Option<DifferenceKind> {
        if self.state() != now.state() {
            return Some(DifferenceKind::State);
        }
        let lengths = self.part(READ, 9);
        let is_same_length = lengths == now.part(READ, 9) && lengths != OTHER_LENGTHS;
        // The same number of bytes was read of both, so different hashes mean different values.
        if is_same_length && self.part(0, READ) != now.part(0, READ) {
            return Some(DifferenceKind::Retaken);
        }
        // Both reads may be off, so the uncertainties add up.
        let within = self.part(WITHIN, 8) + now.part(WITHIN, 8);
        let ends_alike = self.part(ENDS, 4) == now.part(ENDS, 4);
        if ends_alike && self.is_near(now, 0, within) && self.is_near(now, 1, within) {
            None
        } else {
            Some(DifferenceKind::Renewed)
        }
    }

    /// This many bits of the content, from a bit on.
    fn part(&self, from: u32, bits: u32) -> u64 {
        self.content >> from & ((1 << bits) - 1)
    }

    /// True if the expiries of a Redis key differ by at most this many milliseconds.
    fn is_near(&self, now: &Self, key_index: usize, within_ms: u64) -> bool {
        // The difference wraps with the 32 bits, so that expiries on both sides of the wrap still
        // compare.
        let apart = self.at[key_index].wrapping_sub(now.at[key_index]);
        u64::from(apart.min(apart.wrapping_neg())) <= within_ms
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
        let mut known = SnapshotIndex::with_capacity(1);
        known.add(then, true);
        known.close();
        known.meet(now, true).unwrap().what
    }

    #[test]
    fn a_record_takes_24_bytes() {
        assert_eq!(size_of::<SnapshotEntry>(), 24);
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
        let mut known = SnapshotIndex::with_capacity(2);
        known.add(&a, true);
        known.add(&a, true);
        known.close();
        assert!(known.meet(&b, true).is_some() && known.meet(&b, true).is_none());
        assert!(known.is_gone(&a) && !known.is_gone(&a) && !known.is_gone(&b));
    }

    #[test]
    fn a_record_counts_if_either_snapshot_selects_it() {
        let (then, now) = (record("a", "in-progress", &[]), record("a", "completed", &[]));
        for (before, after, counts) in
            [(true, true, true), (true, false, true), (false, true, true), (false, false, false)]
        {
            let mut known = SnapshotIndex::with_capacity(1);
            known.add(&then, before);
            known.close();
            let met = known.meet(&now, after);
            assert_eq!(
                met.is_some_and(|met| met.what == Some(DifferenceKind::State)),
                counts,
                "{before} {after}"
            );
        }
        let mut known = SnapshotIndex::with_capacity(0);
        assert!(known.meet(&now, false).is_none() && known.meet(&now, true).is_some());
    }
}
