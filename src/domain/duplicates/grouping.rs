//! The groups of records that agree. The module doc of [`super`] defines them.

use std::collections::{BTreeMap, BTreeSet};

use strum::IntoStaticStr;

use super::compare::{CompareRule, ComparedRecord, ResultOutcome};
use super::key_stem::{is_uuid, key_stem};
use crate::domain::as_str::as_str;
use crate::domain::record::Evidence;

/// The kind of evidence of a group, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum GroupBasis {
    /// Equal values at all `--same` pointers.
    Values,
    /// Equal fingerprints of one schema, and equal owners, if the operator says that owners matter.
    FingerprintAndOwner,
    /// Equal fingerprints of one schema, which honest requests may have as well.
    Fingerprint,
}

as_str!(GroupBasis);

impl GroupBasis {
    pub(crate) fn is_strong(self) -> bool {
        self != Self::Fingerprint
    }
}

/// Records that agree, each as an index into [`GroupedRecords::records`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DuplicateGroup {
    pub(crate) basis: GroupBasis,
    /// What agrees: the canonical texts at the pointers, or the fingerprint.
    pub(crate) values: Vec<String>,
    /// What agrees as well, in the order of [`super::CompareRule::further_names`].
    pub(crate) further: Vec<Vec<u8>>,
    /// By time, those of unknown time last.
    pub(crate) members: Vec<usize>,
}

/// How many different keys of a group have an outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ResultCounts {
    pub(crate) keys: usize,
    pub(crate) completed: usize,
    pub(crate) failed: usize,
    pub(crate) in_progress: usize,
    pub(crate) unknown: usize,
}

/// The groups, and the records that they refer to.
#[derive(Debug, Default)]
pub(crate) struct GroupedRecords {
    pub(crate) records: Vec<ComparedRecord>,
    /// Strong groups first, and then by the number of keys, the largest first.
    pub(crate) groups: Vec<DuplicateGroup>,
    /// Records that agree with others and are in no group, because --within needs their times, and
    /// these are unknown or estimated.
    pub(crate) time_unknown: Vec<usize>,
}

/// What the records of a part agree in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Agreement {
    /// The schema of the fingerprint; empty for values, which may cross schemas.
    schema: String,
    values: Vec<String>,
    further: Vec<Vec<u8>>,
}

impl GroupedRecords {
    /// Groups records. Each of them must be there once.
    pub(crate) fn of(
        records: Vec<ComparedRecord>,
        rule: &CompareRule,
        within_ms: Option<u64>,
    ) -> Self {
        let mut records = records;
        // The order of a scan must not decide anything.
        records.sort_by(|one, other| one.name.cmp(&other.name));
        let mut grouped = Self { records, groups: Vec::new(), time_unknown: Vec::new() };
        let mut time_unknown = BTreeSet::new();
        // The groups of each record so far. There are few, because each kind of evidence puts a
        // record into one group at most.
        let mut groups_of: Vec<Vec<usize>> = vec![Vec::new(); grouped.records.len()];
        for basis in [GroupBasis::Values, GroupBasis::FingerprintAndOwner, GroupBasis::Fingerprint]
        {
            // An owner is often the worker that holds the lock, which says nothing about clients.
            if basis == GroupBasis::FingerprintAndOwner && !rule.with_owner {
                continue;
            }
            for (agreement, mut members) in grouped.parts(basis) {
                if grouped.keys(&members) < 2 {
                    continue;
                }
                if within_ms.is_some() {
                    let (timed, unknown) =
                        members.into_iter().partition(|index| grouped.has_separating_time(*index));
                    members = timed;
                    time_unknown.extend::<Vec<_>>(unknown);
                }
                members.sort_by_key(|index| {
                    let at_ms = grouped.at_ms(*index);
                    (at_ms.is_none(), at_ms, *index)
                });
                for part in grouped.cut(&members, within_ms) {
                    if grouped.keys(&part) < 2 || is_told(&groups_of, &part) {
                        continue;
                    }
                    // The values that the operator named contradict the stronger evidence.
                    let is_contradicted = grouped.values_differ(&part);
                    if basis == GroupBasis::FingerprintAndOwner && is_contradicted {
                        continue;
                    }
                    for index in &part {
                        groups_of[*index].push(grouped.groups.len());
                    }
                    grouped.groups.push(DuplicateGroup {
                        basis,
                        values: agreement.values.clone(),
                        further: agreement.further.clone(),
                        members: part,
                    });
                }
            }
        }
        grouped.time_unknown = time_unknown.into_iter().collect();
        grouped.sort_groups();
        grouped
    }

    /// The records that agree by one kind of evidence.
    fn parts(&self, basis: GroupBasis) -> BTreeMap<Agreement, Vec<usize>> {
        let mut parts: BTreeMap<Agreement, Vec<usize>> = BTreeMap::new();
        for (index, record) in self.records.iter().enumerate() {
            let Some(agreement) = Agreement::of(record, basis) else { continue };
            parts.entry(agreement).or_default().push(index);
        }
        parts
    }

    /// Cuts records that are sorted by time wherever the gap to the previous one is longer.
    fn cut(&self, members: &[usize], within_ms: Option<u64>) -> Vec<Vec<usize>> {
        let Some(within_ms) = within_ms else { return vec![members.to_vec()] };
        let is_near = |one: &usize, next: &usize| match (self.at_ms(*one), self.at_ms(*next)) {
            (Some(one), Some(next)) => next.saturating_sub(one) <= within_ms,
            _ => false,
        };
        members.chunk_by(is_near).map(<[usize]>::to_vec).collect()
    }

    /// True if two of these records have different values at the --same pointers.
    pub(crate) fn values_differ(&self, members: &[usize]) -> bool {
        let mut first = None;
        for index in members {
            if let Some(values) = self.records[*index].values.value()
                && *first.get_or_insert(values) != values
            {
                return true;
            }
        }
        false
    }

    fn sort_groups(&mut self) {
        let mut groups = std::mem::take(&mut self.groups);
        groups.sort_by_cached_key(|group| {
            let counts = self.counts(group);
            (
                !group.basis.is_strong(),
                std::cmp::Reverse((counts.keys, counts.completed)),
                self.first_ms(group),
                group.basis,
                group.values.clone(),
                group.members.clone(),
            )
        });
        self.groups = groups;
    }

    fn has_separating_time(&self, index: usize) -> bool {
        self.records[index].time.is_some_and(|time| time.separates())
    }

    fn at_ms(&self, index: usize) -> Option<u64> {
        Some(self.records[index].time?.at_ms)
    }

    /// The number of different idempotency keys.
    fn keys(&self, members: &[usize]) -> usize {
        let keys: BTreeSet<_> =
            members.iter().map(|index| &self.records[*index].name.key).collect();
        keys.len()
    }

    /// The earliest known time of a group.
    fn first_ms(&self, group: &DuplicateGroup) -> Option<u64> {
        group.members.iter().find_map(|index| self.at_ms(*index))
    }

    /// The keys of a group by outcome. A key under two schemas counts once, with its best outcome.
    pub(crate) fn counts(&self, group: &DuplicateGroup) -> ResultCounts {
        let mut outcomes: BTreeMap<&[u8], ResultOutcome> = BTreeMap::new();
        for index in &group.members {
            let record = &self.records[*index];
            let outcome = outcomes.entry(&record.name.key).or_insert(record.outcome);
            *outcome = record.outcome.min(*outcome);
        }
        let mut counts = ResultCounts { keys: outcomes.len(), ..ResultCounts::default() };
        for outcome in outcomes.values() {
            match outcome {
                ResultOutcome::Completed => counts.completed += 1,
                ResultOutcome::Failed => counts.failed += 1,
                ResultOutcome::InProgress => counts.in_progress += 1,
                ResultOutcome::Unknown => counts.unknown += 1,
            }
        }
        counts
    }

    /// The milliseconds between each record of a group and the one before it. `None` for the first
    /// one, and if one of the two times is unknown.
    pub(crate) fn gaps(&self, group: &DuplicateGroup) -> Vec<Option<u64>> {
        let mut gaps = Vec::with_capacity(group.members.len());
        let mut before = None;
        for index in &group.members {
            let at_ms = self.at_ms(*index);
            gaps.push(match (before, at_ms) {
                (Some(before), Some(at_ms)) => Some(at_ms - before),
                _ => None,
            });
            before = at_ms;
        }
        gaps
    }

    /// The weakest evidence for the times of a group; `None` if one of them is unknown.
    pub(crate) fn time_evidence(&self, group: &DuplicateGroup) -> Option<Evidence> {
        let mut weakest = Evidence::Known;
        for index in &group.members {
            weakest = weakest.min(self.records[*index].time?.evidence);
        }
        Some(weakest)
    }

    /// True if some times are those of the arrival, and others those of the result. Gaps between
    /// such times contain the duration of an operation.
    pub(crate) fn has_mixed_times(&self, group: &DuplicateGroup) -> bool {
        let mut kinds = group.members.iter().filter_map(|index| self.records[*index].time);
        let Some(first) = kinds.next() else { return false };
        kinds.any(|time| time.is != first.is)
    }

    /// The stem that all keys of a group have: each is the stem, or ends with a counter, timestamp
    /// or UUID after it.
    pub(crate) fn common_stem(&self, group: &DuplicateGroup) -> Option<&[u8]> {
        for index in &group.members {
            let Some(stem) = key_stem(&self.records[*index].name.key) else { continue };
            let has_stem = |key: &[u8]| key == stem || key_stem(key) == Some(stem);
            if group.members.iter().all(|index| has_stem(&self.records[*index].name.key)) {
                return Some(stem);
            }
        }
        None
    }

    /// True if every key of a group is a UUID.
    pub(crate) fn has_uuids(&self, group: &DuplicateGroup) -> bool {
        group.members.iter().all(|index| is_uuid(&self.records[*index].name.key))
    }
}

/// True if one group has all of these records.
fn is_told(groups_of: &[Vec<usize>], members: &[usize]) -> bool {
    let Some(first) = members.first() else { return true };
    groups_of[*first]
        .iter()
        .any(|group| members.iter().all(|index| groups_of[*index].contains(group)))
}

impl Agreement {
    /// What a record agrees with others in, by one kind of evidence.
    fn of(record: &ComparedRecord, basis: GroupBasis) -> Option<Self> {
        let further = record.further.clone();
        if basis == GroupBasis::Values {
            let values = record.values.value()?.clone();
            return Some(Self { schema: String::new(), values, further });
        }
        Some(Self {
            schema: record.name.schema.clone(),
            values: vec![record.fingerprint.value()?.clone()],
            further,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::duplicates::comparable::{Comparable, NotCompared};
    use crate::domain::duplicates::compare::ComparedName;
    use crate::domain::duplicates::record_time::{RecordTime, TimeIs};

    /// A record: the number of its key, its value, its fingerprint, its owner, and its time; 0 for
    /// none.
    fn record(key: u8, value: u8, fingerprint: u8, owner: u8, at_ms: u64) -> ComparedRecord {
        let time = RecordTime { at_ms, is: TimeIs::Created, evidence: Evidence::Known };
        ComparedRecord {
            name: ComparedName { schema: "s".to_owned(), key: vec![b'a' + key] },
            state: None,
            status: None,
            outcome: ResultOutcome::Unknown,
            owner: if owner == 0 { None } else { Some(vec![owner]) },
            time: if at_ms == 0 { None } else { Some(time) },
            values: match value {
                0 => Comparable::No(NotCompared::Value),
                value => Comparable::Yes(vec![value.to_string()]),
            },
            fingerprint: match fingerprint {
                0 => Comparable::No(NotCompared::Fingerprint),
                fingerprint => Comparable::Yes(fingerprint.to_string()),
            },
            further: Vec::new(),
        }
    }

    fn grouped(records: &[ComparedRecord], within_ms: Option<u64>) -> GroupedRecords {
        GroupedRecords::of(records.to_vec(), &CompareRule::default(), within_ms)
    }

    /// The basis and the keys of each group.
    fn shown(grouped: &GroupedRecords) -> Vec<(GroupBasis, String)> {
        let mut shown = Vec::new();
        for group in &grouped.groups {
            let mut keys = String::new();
            for index in &group.members {
                keys.push(char::from(grouped.records[*index].name.key[0]));
            }
            shown.push((group.basis, keys));
        }
        shown
    }

    #[test]
    fn a_gap_to_the_previous_record_cuts_and_not_the_length_of_the_group() {
        let records: Vec<_> = [(0, 10), (1, 60), (2, 110), (3, 161), (4, 211)]
            .map(|(key, at_ms)| record(key, 1, 0, 0, at_ms))
            .to_vec();
        let values = |keys: &str| (GroupBasis::Values, keys.to_owned());
        assert_eq!(shown(&grouped(&records, Some(50))), [values("abc"), values("de")]);
        assert_eq!(shown(&grouped(&records, Some(49))), []);
        assert_eq!(shown(&grouped(&records, None)), [values("abcde")]);
    }

    #[test]
    fn weaker_evidence_is_left_out_if_one_stronger_group_has_all_of_it() {
        let values = |keys: &str| (GroupBasis::Values, keys.to_owned());
        let one_group = [record(0, 1, 5, 1, 1), record(1, 1, 5, 2, 1)];
        assert_eq!(shown(&grouped(&one_group, None)), [values("ab")]);
        // Two strong groups stay apart, although all fingerprints are equal.
        let two: Vec<_> = [(0, 1), (1, 1), (2, 2), (3, 2)]
            .map(|(key, value)| record(key, value, 5, 0, 1))
            .to_vec();
        let all = (GroupBasis::Fingerprint, "abcd".to_owned());
        assert_eq!(shown(&grouped(&two, None)), [values("ab"), values("cd"), all.clone()]);
        // Nor do equal owners join what has different values.
        let owned: Vec<_> = [(0, 1), (1, 1), (2, 2), (3, 2)]
            .map(|(key, value)| record(key, value, 5, 7, 1))
            .to_vec();
        assert_eq!(shown(&grouped(&owned, None)), [values("ab"), values("cd"), all]);
    }

    #[test]
    fn owners_make_a_fingerprint_strong_only_if_the_operator_says_so() {
        let mut records = vec![record(0, 0, 5, 1, 1), record(1, 0, 5, 1, 1), record(2, 0, 5, 2, 1)];
        let all = (GroupBasis::Fingerprint, "abc".to_owned());
        assert_eq!(shown(&grouped(&records, None)), [all]);
        for record in &mut records {
            record.further = vec![record.owner.clone().unwrap()];
        }
        let rule = CompareRule { with_owner: true, ..CompareRule::default() };
        let owned = GroupedRecords::of(records, &rule, None);
        assert_eq!(shown(&owned), [(GroupBasis::FingerprintAndOwner, "ab".to_owned())]);
    }

    #[test]
    fn a_common_stem_may_be_a_key_itself() {
        let stem = |keys: &[&str]| {
            let mut records = Vec::new();
            for key in keys {
                let mut record = record(0, 1, 0, 0, 1);
                record.name.key = key.as_bytes().to_vec();
                records.push(record);
            }
            let grouped = grouped(&records, None);
            grouped.common_stem(&grouped.groups[0]).map(<[u8]>::to_vec)
        };
        assert_eq!(stem(&["order-42", "order-42-1"]), Some(b"order-42".to_vec()));
        assert_eq!(stem(&["order-42-1", "order-42-2"]), Some(b"order-42".to_vec()));
        assert_eq!(stem(&["order-42-1", "order-43-1"]), None);
    }

    #[test]
    fn a_time_that_is_unknown_is_named_only_if_another_key_agrees() {
        let records = [record(0, 1, 0, 0, 0), record(1, 1, 0, 0, 10), record(2, 2, 0, 0, 0)];
        let within = grouped(&records, Some(1_000));
        assert_eq!((within.groups.len(), within.time_unknown), (0, vec![0]));
        let without = grouped(&records, None);
        assert_eq!((shown(&without)[0].1.as_str(), without.time_unknown.len()), ("ba", 0));
    }

    #[test]
    fn an_estimated_time_is_unknown_for_a_limit_of_gaps() {
        let mut records = [record(0, 1, 0, 0, 10), record(1, 1, 0, 0, 20), record(2, 1, 0, 0, 900)];
        let mut set = |evidence| {
            if let Some(time) = &mut records[2].time {
                time.evidence = evidence;
            }
            let within = grouped(&records, Some(50));
            assert_eq!(shown(&within), [(GroupBasis::Values, "ab".to_owned())]);
            within.time_unknown
        };
        assert_eq!(set(Evidence::Estimated), [2]);
        assert!(set(Evidence::Stated).is_empty() && set(Evidence::Known).is_empty());
    }

    proptest! {
        #[test]
        fn groups_do_not_depend_on_the_order_of_the_records(
            parts in prop::collection::vec((0_u8..4, 0_u8..3, 0_u8..3, 0_u64..200), 0..12),
            shift in any::<prop::sample::Index>(),
            within in prop::option::of(1_u64..100),
        ) {
            let mut records = Vec::new();
            for (key, (value, fingerprint, owner, at_ms)) in parts.iter().enumerate() {
                records.push(record(key as u8, *value, *fingerprint, *owner, *at_ms));
            }
            let first = grouped(&records, within);
            if !records.is_empty() {
                let middle = shift.index(records.len());
                records.rotate_left(middle);
                records.reverse();
            }
            let again = grouped(&records, within);
            prop_assert_eq!(&first.groups, &again.groups);
            prop_assert_eq!(&first.time_unknown, &again.time_unknown);
            for group in &first.groups {
                prop_assert!(first.counts(group).keys >= 2);
            }
        }
    }
}
