//! The identity of a record: the type, the bytes and the expiry of each of its Redis keys.
//!
//! The remaining time does not distinguish locks. A lock that was released and re-acquired holds
//! the same bytes and has less time left than an earlier read showed, and so does an untouched
//! lock. The time of expiry differs for each lock that is acquired or renewed. Identity does not
//! prove that a holder is dead, because a live lock has the same identity between two renewals.

use super::deadline::Deadline;
use super::key_identity::{KeyIdentity, ValueDigest};
use super::observation::Observation;

/// The state of a record when it was read, in a form that stays small even if the values are large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity(Vec<KeyIdentity>);

/// The result of comparing a record with a later read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Same,
    /// The bytes are the same, but a Redis key expires at another time. A lock was renewed, or
    /// released and re-acquired.
    Renewed,
    /// A Redis key was created or is gone, holds other bytes, or has another type.
    Changed,
}

impl Identity {
    /// The identity of a record as it was read. If a value was read in part, only that part is
    /// compared.
    pub(crate) fn of(seen: &Observation) -> Self {
        Self(seen.keys.iter().map(KeyIdentity::of).collect())
    }

    /// The most bytes of a value that were read. A later read has to read as many to be comparable.
    pub(crate) fn read_bytes(&self) -> usize {
        self.0.iter().map(KeyIdentity::read_bytes).max().unwrap_or(0)
    }

    /// Compares with the current record, of whose values at least as much was read.
    pub(crate) fn compare(&self, now: &Observation) -> Comparison {
        if self.0.len() != now.keys.len() {
            return Comparison::Changed;
        }
        // All values come first: if one key was renewed and another holds other bytes, the record
        // changed.
        for (seen, now) in self.0.iter().zip(&now.keys) {
            if !seen.value.is_of(now) {
                return Comparison::Changed;
            }
        }
        for (seen, now) in self.0.iter().zip(&now.keys) {
            if seen.value != ValueDigest::Absent && !seen.deadline.is_same(now.deadline) {
                return Comparison::Renewed;
            }
        }
        Comparison::Same
    }

    /// True if the record changed as far as both reads can show. A deadline that one of them does
    /// not know counts as unchanged. That is good enough for output, and for a read that is
    /// repeated more exactly, but never for a change.
    pub(crate) fn differs(&self, now: &Observation) -> bool {
        match self.compare(now) {
            Comparison::Same => false,
            Comparison::Changed => true,
            Comparison::Renewed => {
                for (seen, now) in self.0.iter().zip(&now.keys) {
                    let is_unknown = [seen.deadline, now.deadline].contains(&Deadline::Unknown);
                    if seen.value != ValueDigest::Absent && is_unknown {
                        return false;
                    }
                }
                true
            }
        }
    }
}

impl Observation {
    /// True if a later read shows the same record. For a value that was read in part, or that is
    /// not a string, both reads must have the checksum.
    pub fn is_still(&self, later: &Self) -> bool {
        for (key, now) in self.keys.iter().zip(&later.keys) {
            let needs_checksum = !key.content.is_whole();
            if !key.is_comparable()
                || !now.is_comparable()
                || (needs_checksum && now.checksum.is_none())
            {
                return false;
            }
        }
        Identity::of(self).compare(later) == Comparison::Same
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::record::{Content, TimeLeft};
    use crate::domain::samples::{schema, seen, text};

    fn observation(keys: &[(Content, Deadline)]) -> Observation {
        let keys: Vec<_> =
            keys.iter().map(|(content, _)| (content.clone(), TimeLeft::NoExpiry)).collect();
        seen(&schema("event-consumer"), &keys)
    }

    fn compare(first: &[(Content, Deadline)], now: &[(Content, Deadline)]) -> Comparison {
        let (mut before, mut after) = (observation(first), observation(now));
        for (key, (_, deadline)) in before.keys.iter_mut().zip(first) {
            key.deadline = *deadline;
        }
        for (key, (_, deadline)) in after.keys.iter_mut().zip(now) {
            key.deadline = *deadline;
        }
        Identity::of(&before).compare(&after)
    }

    const GONE: (Content, Deadline) = (Content::Absent, Deadline::Never);

    fn lock(deadline: Deadline) -> [(Content, Deadline); 2] {
        [(text("1"), deadline), GONE]
    }

    #[test]
    fn nothing_but_time_went_by() {
        for deadline in [Deadline::Never, Deadline::At(9)] {
            assert_eq!(compare(&lock(deadline), &lock(deadline)), Comparison::Same);
        }
    }

    #[test]
    fn another_moment_of_expiry_is_another_lock_be_it_earlier_or_later() {
        for (first, now) in [
            (Deadline::At(9), Deadline::At(10)),
            (Deadline::At(9), Deadline::At(8)),
            (Deadline::Never, Deadline::At(9)),
            (Deadline::At(9), Deadline::Never),
        ] {
            assert_eq!(compare(&lock(first), &lock(now)), Comparison::Renewed, "{first:?} {now:?}");
        }
    }

    #[test]
    fn a_look_to_compare_with_reads_as_much_of_each_value_as_was_read() {
        let read = |keys: &[(Content, Deadline)]| Identity::of(&observation(keys)).read_bytes();
        assert_eq!(read(&[(text("four"), Deadline::Never), (text("longest"), Deadline::Never)]), 7);
        assert_eq!(read(&[(text("longest"), Deadline::Never), GONE]), 7);
        assert_eq!(read(&[GONE, GONE]), 0);
    }

    #[test]
    fn the_expiry_of_a_records_other_key_counts_too() {
        let both = |deadline| [(text("1"), Deadline::Never), (text("1"), deadline)];
        assert_eq!(compare(&both(Deadline::At(9)), &both(Deadline::At(9))), Comparison::Same);
        assert_eq!(compare(&both(Deadline::At(9)), &both(Deadline::At(10))), Comparison::Renewed);
    }

    #[test]
    fn other_bytes_another_type_and_a_result_that_came_are_changes() {
        let at = Deadline::At(9);
        let done = [(text("1"), at), (text("1"), at)];
        let other = [(text("2"), at), GONE];
        let hash = [(Content::Other("hash".into()), at), GONE];
        for now in [&done[..], &other, &[GONE, GONE], &hash, &done[..1]] {
            assert_eq!(compare(&lock(at), now), Comparison::Changed, "{now:?}");
        }
        assert_eq!(compare(&[GONE, GONE], &[(text(""), at), GONE]), Comparison::Changed);
        assert_eq!(compare(&[GONE, GONE], &[GONE, GONE]), Comparison::Same);
    }

    #[test]
    fn a_deadline_that_nobody_told_is_no_difference_to_show_and_enough_to_stop_a_change() {
        let observation = |deadline| one_key(text("1"), deadline);
        for (first, now) in
            [(Deadline::Unknown, Deadline::At(9)), (Deadline::At(9), Deadline::Unknown)]
        {
            let (first, now) = (Identity::of(&observation(first)), observation(now));
            assert!(!first.differs(&now) && first.compare(&now) == Comparison::Renewed);
        }
        assert!(Identity::of(&observation(Deadline::At(9))).differs(&observation(Deadline::At(8))));
    }

    fn one_key(content: Content, deadline: Deadline) -> Observation {
        let mut seen = seen(&schema("go-chi"), &[(content, TimeLeft::NoExpiry)]);
        seen.keys[0].deadline = deadline;
        seen
    }

    #[test]
    fn only_the_record_that_was_seen_is_still_there() {
        let was = one_key(text("a"), Deadline::At(500));
        assert!(was.is_still(&was));
        for now in [
            one_key(text("a"), Deadline::At(501)),
            one_key(text("a"), Deadline::Never),
            one_key(text("b"), Deadline::At(500)),
            one_key(Content::Absent, Deadline::Never),
            one_key(Content::Other("hash".into()), Deadline::At(500)),
        ] {
            assert!(!was.is_still(&now), "{now:?}");
        }
    }

    #[test]
    fn what_was_read_in_part_is_never_known_to_be_the_same() {
        let part = one_key(Content::Text { head: b"a".to_vec(), length: Some(2) }, Deadline::Never);
        assert!(!part.is_still(&part));
    }

    #[test]
    fn two_types_that_are_no_strings_are_told_apart() {
        let of = |kind: &str| [(Content::Other(kind.into()), Deadline::Never), GONE];
        assert_eq!(compare(&of("hash"), &of("hash")), Comparison::Same);
        assert_eq!(compare(&of("hash"), &of("set")), Comparison::Changed);
    }

    #[test]
    fn a_checksum_tells_what_the_beginning_does_not() {
        let long = |checksum| {
            let mut long =
                one_key(Content::Text { head: b"a".to_vec(), length: Some(9) }, Deadline::Never);
            long.keys[0].checksum = checksum;
            long
        };
        let compare = |first, now| Identity::of(&long(first)).compare(&long(now));
        assert_eq!(compare(Some([1; 8]), Some([1; 8])), Comparison::Same);
        assert_eq!(compare(Some([1; 8]), Some([2; 8])), Comparison::Changed);
        assert_eq!(compare(None, Some([2; 8])), Comparison::Same);
    }

    /// Rule: what is no string is the one that was seen by the checksum of its DUMP.
    #[test]
    fn a_checksum_tells_what_is_no_string() {
        let hash = |checksum| {
            let mut hash = one_key(Content::Other("hash".into()), Deadline::At(9));
            hash.keys[0].checksum = checksum;
            hash
        };
        let compare = |first, now| Identity::of(&hash(first)).compare(&hash(now));
        assert_eq!(compare(Some([1; 8]), Some([1; 8])), Comparison::Same);
        assert_eq!(compare(Some([1; 8]), Some([2; 8])), Comparison::Changed);
        assert!(
            hash(Some([1; 8])).is_still(&hash(Some([1; 8]))) && !hash(None).is_still(&hash(None))
        );
    }

    proptest! {
        #[test]
        fn a_look_at_the_beginning_compares_with_the_whole(
            value in prop::collection::vec(any::<u8>(), 1..40),
            read in 0..40_usize,
        ) {
            let head = value[..read.min(value.len())].to_vec();
            let part = Content::Text { head, length: Some(value.len() as u64) };
            let now = |value: &[u8]| [(text(value), Deadline::At(9)), GONE];
            let first = [(part, Deadline::At(9)), GONE];
            prop_assert_eq!(compare(&first, &now(&value)), Comparison::Same);
            let longer = [&value[..], b"x"].concat();
            prop_assert_eq!(compare(&first, &now(&longer)), Comparison::Changed);
        }

        #[test]
        fn any_flipped_bit_that_was_read_is_a_change(
            value in prop::collection::vec(any::<u8>(), 1..40),
            at in any::<prop::sample::Index>(),
            bit in 0..8_u8,
        ) {
            let mut other = value.clone();
            other[at.index(value.len())] ^= 1 << bit;
            let of = |value: &[u8]| [(text(value), Deadline::At(9)), GONE];
            prop_assert_eq!(compare(&of(&value), &of(&other)), Comparison::Changed);
        }
    }
}
