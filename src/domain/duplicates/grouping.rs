//! The groups of records that agree. The module doc of [`super`] defines them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use serde::Serialize;

use super::compare::{ComparedName, ComparedRecord, ResultOutcome};
use super::record_time::RecordTime;
use crate::domain::schema::{Schema, State};

/// The memory in bytes that the records of a comparison may use. Millions of records with keys and
/// values of usual length fit.
const MAX_BYTES: usize = 1 << 30;

/// What the table takes for one record beside its texts. A table that is full is copied into one of
/// twice its size.
const BYTES_OF_RECORD: usize = 3 * size_of::<KeptRecord>();

/// The records that were compared, by their values. Their texts are in one buffer, because most
/// records agree with no other, and an allocation for each text would take more time than reading
/// it.
#[derive(Debug)]
pub(crate) struct KeptRecords {
    records: Vec<KeptRecord>,
    texts: Vec<u8>,
    hasher: RandomState,
    /// How much more memory the records may use.
    free_bytes: usize,
}

/// A record, and where its texts are: its key, its owner, and the lines of its values.
#[derive(Debug)]
struct KeptRecord {
    /// Equal if the values are equal.
    hash: u64,
    start: usize,
    key_bytes: usize,
    owner_bytes: Option<usize>,
    value_bytes: usize,
    schema: Arc<Schema>,
    state: State,
    status: Option<i64>,
    outcome: ResultOutcome,
    time: Option<RecordTime>,
}

/// Records that agree.
#[derive(Debug)]
pub(crate) struct DuplicateGroup {
    /// The canonical texts at the pointers.
    pub(crate) values: Vec<String>,
    /// By time, those of unknown time last.
    pub(crate) records: Vec<ComparedRecord>,
    pub(crate) counts: ResultCounts,
}

/// How many different keys of a group have an outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ResultCounts {
    pub(crate) keys: usize,
    pub(crate) completed: usize,
    pub(crate) failed: usize,
    pub(crate) in_progress: usize,
    pub(crate) unknown: usize,
}

impl Default for KeptRecords {
    fn default() -> Self {
        Self {
            records: Vec::new(),
            texts: Vec::new(),
            hasher: RandomState::new(),
            free_bytes: MAX_BYTES,
        }
    }
}

impl KeptRecords {
    /// Keeps a record with its canonical texts, which are single lines. False if there is no memory
    /// left for it.
    pub(crate) fn add(&mut self, values: &[String], record: &ComparedRecord) -> bool {
        let values = values.join("\n");
        let owner = record.owner.as_deref();
        let owner_bytes = owner.map(<[u8]>::len);
        let texts = record.key.len() + owner_bytes.unwrap_or(0) + values.len();
        let bytes = BYTES_OF_RECORD + 2 * texts;
        if bytes > self.free_bytes {
            return false;
        }
        self.free_bytes -= bytes;
        self.records.push(KeptRecord {
            hash: self.hasher.hash_one(&values),
            start: self.texts.len(),
            key_bytes: record.key.len(),
            owner_bytes,
            value_bytes: values.len(),
            schema: Arc::clone(&record.schema),
            state: record.state,
            status: record.status,
            outcome: record.outcome,
            time: record.time,
        });
        self.texts.extend_from_slice(&record.key);
        self.texts.extend_from_slice(owner.unwrap_or_default());
        self.texts.extend_from_slice(values.as_bytes());
        true
    }

    /// The groups, by the number of keys, the largest first. Also the records that agree with
    /// others and are in no group, because --within needs their times, and these are unknown or
    /// estimated.
    pub(crate) fn groups(
        mut self,
        within_ms: Option<u64>,
    ) -> (Vec<DuplicateGroup>, Vec<ComparedName>) {
        let mut groups = Vec::new();
        let mut time_unknown = BTreeSet::new();
        self.records.sort_unstable_by_key(|record| record.hash);
        for alike in self.records.chunk_by(|one, other| one.hash == other.hash) {
            if alike.len() == 1 {
                continue;
            }
            // Different values may have the same hash.
            let mut by_values: BTreeMap<Vec<String>, Vec<ComparedRecord>> = BTreeMap::new();
            for record in alike {
                let (values, record) = self.compared(record);
                by_values.entry(values).or_default().push(record);
            }
            for (values, records) in by_values {
                if has_two_keys(&records) {
                    split_by_time(values, records, within_ms, &mut groups, &mut time_unknown);
                }
            }
        }
        groups.retain(|group| group.counts.keys > 1);
        groups.sort_by(|one, other| one.order().cmp(&other.order()));
        (groups, time_unknown.into_iter().collect())
    }

    /// A record and its values, as they were before they were kept.
    fn compared(&self, kept: &KeptRecord) -> (Vec<String>, ComparedRecord) {
        let (key, rest) = self.texts[kept.start..].split_at(kept.key_bytes);
        let (owner, rest) = rest.split_at(kept.owner_bytes.unwrap_or(0));
        let values = String::from_utf8_lossy(&rest[..kept.value_bytes]);
        let record = ComparedRecord {
            schema: Arc::clone(&kept.schema),
            key: key.to_vec(),
            state: kept.state,
            status: kept.status,
            outcome: kept.outcome,
            owner: kept.owner_bytes.map(|_| owner.to_vec()),
            time: kept.time,
        };
        (values.split('\n').map(str::to_owned).collect(), record)
    }
}

/// Adds the records that agree as one group, or with `within_ms` as one for each series of records
/// whose times are at most so far apart.
fn split_by_time(
    values: Vec<String>,
    mut records: Vec<ComparedRecord>,
    within_ms: Option<u64>,
    groups: &mut Vec<DuplicateGroup>,
    time_unknown: &mut BTreeSet<ComparedName>,
) {
    // The order of a scan must not decide anything. Unknown times are last.
    records.sort_by(|one, other| order(one).cmp(&order(other)));
    // SCAN may return a record twice.
    records.dedup_by(|next, kept| order(next) == order(kept) && next.state == kept.state);
    let Some(within_ms) = within_ms else {
        groups.push(DuplicateGroup::of(values, records));
        return;
    };
    let mut part: Vec<ComparedRecord> = Vec::new();
    for record in records {
        let Some(time) = record.time.filter(RecordTime::separates) else {
            time_unknown.insert(record.name());
            continue;
        };
        let before = part.last().and_then(|last| last.time);
        if before.is_some_and(|before| time.at_ms - before.at_ms > within_ms) {
            groups.push(DuplicateGroup::of(values.clone(), std::mem::take(&mut part)));
        }
        part.push(record);
    }
    groups.push(DuplicateGroup::of(values, part));
}

/// Records by time, and then by name. Those of unknown time are last.
fn order(record: &ComparedRecord) -> (bool, Option<u64>, &str, &[u8]) {
    let at_ms = record.time.map(|time| time.at_ms);
    (at_ms.is_none(), at_ms, &record.schema.name, &record.key)
}

fn has_two_keys(records: &[ComparedRecord]) -> bool {
    records.iter().any(|record| record.key != records[0].key)
}

impl DuplicateGroup {
    fn of(values: Vec<String>, records: Vec<ComparedRecord>) -> Self {
        // A key under two schemas counts once, with its best outcome.
        let mut outcomes: BTreeMap<&[u8], ResultOutcome> = BTreeMap::new();
        for record in &records {
            let outcome = outcomes.entry(&record.key).or_insert(record.outcome);
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
        Self { values, records, counts }
    }

    /// The largest first. Times do not decide, because estimated ones differ from run to run.
    fn order(&self) -> (Reverse<(usize, usize)>, &[String]) {
        (Reverse((self.counts.keys, self.counts.completed)), &self.values)
    }

    /// The milliseconds since the record before this one; `None` for the first one, and if one of
    /// the two times is unknown.
    pub(crate) fn gap_ms(&self, index: usize) -> Option<u64> {
        let before = self.records[index.checked_sub(1)?].time?;
        Some(self.records[index].time?.at_ms - before.at_ms)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::duplicates::record_time::TimeIs;
    use crate::domain::record::{Evidence, TimeLeft};
    use crate::domain::samples::{CHI_LOCK, chi};

    /// A record with the number of its key, and its time; 0 for none.
    fn record(key: u8, at_ms: u64) -> ComparedRecord {
        let time = RecordTime { at_ms, is: TimeIs::Created, evidence: Evidence::Known };
        let time = if at_ms == 0 { None } else { Some(time) };
        let mut record = ComparedRecord::of(&chi(CHI_LOCK, TimeLeft::NoExpiry), time);
        record.key = vec![b'a' + key];
        record
    }

    fn kept(records: &[(u8, ComparedRecord)]) -> KeptRecords {
        let mut kept = KeptRecords::default();
        for (value, record) in records {
            assert!(kept.add(&[value.to_string()], record));
        }
        kept
    }

    /// The keys of each group, and of the records whose times are unknown.
    fn grouped(
        records: &[(u8, ComparedRecord)],
        within_ms: Option<u64>,
    ) -> (Vec<String>, Vec<ComparedName>) {
        let (groups, time_unknown) = kept(records).groups(within_ms);
        let mut shown = Vec::new();
        for group in groups {
            assert!(group.counts.keys > 1);
            let keys = group.records.iter().map(|record| char::from(record.key[0]));
            shown.push(keys.collect::<String>());
        }
        (shown, time_unknown)
    }

    #[test]
    fn a_gap_to_the_previous_record_cuts_and_not_the_length_of_the_group() {
        let records = [(0, 10), (1, 60), (2, 110), (3, 161), (4, 211)]
            .map(|(key, at_ms)| (1, record(key, at_ms)));
        assert_eq!(grouped(&records, Some(50)).0, ["abc", "de"]);
        assert_eq!(grouped(&records, Some(49)).0, [] as [&str; 0]);
        assert_eq!(grouped(&records, None).0, ["abcde"]);
    }

    #[test]
    fn a_time_that_is_unknown_is_named_only_if_another_key_agrees() {
        let records = [(1, record(0, 0)), (1, record(1, 10)), (2, record(2, 0))];
        let (groups, unknown) = grouped(&records, Some(1_000));
        assert_eq!((groups.len(), unknown), (0, vec![records[0].1.name()]));
        assert_eq!(grouped(&records, None), (vec!["ba".to_owned()], vec![]));
    }

    #[test]
    fn an_estimated_time_is_unknown_for_a_limit_of_gaps() {
        let mut records = [(1, record(0, 10)), (1, record(1, 20)), (1, record(2, 900))];
        for (evidence, unknown) in
            [(Evidence::Estimated, 1), (Evidence::Stated, 0), (Evidence::Known, 0)]
        {
            if let Some(time) = &mut records[2].1.time {
                time.evidence = evidence;
            }
            let (groups, named) = grouped(&records, Some(50));
            assert_eq!((groups, named.len()), (vec!["ab".to_owned()], unknown));
        }
    }

    #[test]
    fn the_memory_of_kept_records_is_limited() {
        let mut kept = KeptRecords { free_bytes: 3_000, ..KeptRecords::default() };
        let mut long = record(0, 0);
        long.key = vec![b'k'; 4_000];
        assert!(!kept.add(&["1".to_owned()], &long));
        assert!(kept.add(&["1".to_owned()], &record(0, 0)));
        assert!(kept.add(&["1".to_owned()], &record(1, 0)));
        assert!(!kept.add(&["v".repeat(3_000)], &record(2, 0)));
        assert_eq!(kept.groups(None).0.len(), 1);
    }

    proptest! {
        #[test]
        fn groups_do_not_depend_on_the_order_of_the_records(
            parts in prop::collection::vec((0_u8..3, 0_u64..200), 0..12),
            shift in any::<prop::sample::Index>(),
            within in prop::option::of(1_u64..100),
        ) {
            let mut records = Vec::new();
            for (key, (value, at_ms)) in parts.iter().enumerate() {
                records.push((*value, record(key as u8, *at_ms)));
            }
            let first = grouped(&records, within);
            if !records.is_empty() {
                let middle = shift.index(records.len());
                // A scan may return a record twice.
                records.push(records[middle].clone());
                records.rotate_left(middle);
                records.reverse();
            }
            prop_assert_eq!(first, grouped(&records, within));
        }
    }
}
