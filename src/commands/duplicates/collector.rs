//! Collects what is compared of each record, in bounded memory.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};

use super::spool::{Spool, SpoolReader};
use crate::domain::duplicates::{
    CompareCounts, CompareRule, ComparedRecord, EvidenceEntry, EvidenceIndex, MilliSeconds,
    PointerTally, RecordTime, TooManyEntries,
};
use crate::exit::CommandError;

/// The most records of one kind of evidence: 1.6 GB of memory.
const MAX_ENTRIES: usize = 50_000_000;

/// The most memory of the records that are read a second time, in bytes. All of them are in memory
/// until the groups are known.
const MAX_KEPT_BYTES: usize = 1 << 30;

/// The most records that are read a second time for one kind of evidence. If more records agree
/// with another one, the value hardly identifies one operation.
const MAX_NOMINATED: usize = 1_000_000;

pub(super) struct Collector<'a> {
    rule: &'a CompareRule,
    /// Seeded at random, so that clients cannot construct values with equal hashes.
    hasher: RandomState,
    by_values: EvidenceIndex,
    by_fingerprint: EvidenceIndex,
    spool: Spool,
    pub(super) counts: CompareCounts,
    pub(super) tally: PointerTally,
}

/// A record that may belong to a group, and the hashes by which it may.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Nomination {
    pub(super) place: u64,
    pub(super) values: Option<u64>,
    pub(super) fingerprint: Option<u64>,
}

impl Nomination {
    /// True if the record no longer has what it was nominated for.
    pub(super) fn is_outdated(&self, now: &ComparedRecord, hasher: &RandomState) -> bool {
        let values = self.values.is_some_and(|hash| now.values_hash(hasher) != Some(hash));
        let fingerprint =
            self.fingerprint.is_some_and(|hash| now.fingerprint_hash(hasher) != Some(hash));
        values || fingerprint
    }
}

impl<'a> Collector<'a> {
    pub(super) fn new(rule: &'a CompareRule) -> Result<Self, CommandError> {
        Ok(Self {
            rule,
            hasher: RandomState::new(),
            by_values: EvidenceIndex::new(MAX_ENTRIES),
            by_fingerprint: EvidenceIndex::new(MAX_ENTRIES),
            spool: Spool::create()?,
            counts: CompareCounts::default(),
            tally: PointerTally::default(),
        })
    }

    /// Adds a record. `spooled` is what a second read needs.
    ///
    /// # Errors
    /// Usage: too many records, or the temporary file cannot be written.
    pub(super) fn add(
        &mut self,
        record: &ComparedRecord,
        spooled: &[u8],
    ) -> Result<(), CommandError> {
        self.counts.add(self.rule, record);
        let values = record.values_hash(&self.hasher);
        let fingerprint = record.fingerprint_hash(&self.hasher);
        if values.is_none() && fingerprint.is_none() {
            return Ok(());
        }
        let place = self.spool.add(spooled)?;
        let key = self.hasher.hash_one(&record.name.key);
        let time = record.time.filter(RecordTime::separates);
        let at_ms = time.and_then(|time| MilliSeconds::new(time.at_ms));
        if let Some(value) = values {
            let entry = EvidenceEntry { value, key, at_ms, place };
            self.by_values.add(entry).map_err(too_many)?;
        }
        if let Some(value) = fingerprint {
            let entry = EvidenceEntry { value, key, at_ms, place };
            self.by_fingerprint.add(entry).map_err(too_many)?;
        }
        Ok(())
    }

    /// True while it is possible that no record has a fingerprint, so that the operator needs to
    /// know what the responses could be compared by.
    pub(super) fn tallies_pointers(&self) -> bool {
        self.rule.pointers.is_empty() && self.counts.compared == 0
    }

    /// The records that have to be read again, in the order of their places. If too many have equal
    /// fingerprints, and the operator named values, the fingerprints are left out.
    ///
    /// # Errors
    /// Usage: too many records agree, or the temporary file cannot be written.
    pub(super) fn finish(self, within_ms: Option<u64>) -> Result<Collected, CommandError> {
        self.finish_with_most(within_ms, MAX_NOMINATED)
    }

    fn finish_with_most(
        self,
        within_ms: Option<u64>,
        most: usize,
    ) -> Result<Collected, CommandError> {
        let mut nominations: BTreeMap<u64, Nomination> = BTreeMap::new();
        let by_values = self.by_values.candidates(within_ms, most);
        for entry in by_values.map_err(|_| too_many_agree(self.rule))? {
            let nomination = nominations.entry(entry.place).or_default();
            nomination.place = entry.place;
            nomination.values = Some(entry.value);
        }
        let mut leaves_fingerprints_out = false;
        match self.by_fingerprint.candidates(within_ms, most) {
            Ok(entries) => {
                for entry in entries {
                    let nomination = nominations.entry(entry.place).or_default();
                    nomination.place = entry.place;
                    nomination.fingerprint = Some(entry.value);
                }
            }
            Err(TooManyEntries) if self.rule.pointers.is_empty() => {
                return Err(too_many_agree(self.rule));
            }
            Err(TooManyEntries) => leaves_fingerprints_out = true,
        }
        Ok(Collected {
            nominations: nominations.into_values().collect(),
            spool: self.spool.finish()?,
            counts: self.counts,
            tally: self.tally,
            hasher: self.hasher,
            leaves_fingerprints_out,
        })
    }
}

/// What was collected of all records.
pub(super) struct Collected {
    pub(super) nominations: Vec<Nomination>,
    pub(super) spool: SpoolReader,
    pub(super) counts: CompareCounts,
    pub(super) tally: PointerTally,
    pub(super) hasher: RandomState,
    /// True if so many records have equal fingerprints that only the values are compared.
    pub(super) leaves_fingerprints_out: bool,
}

/// The records that are read a second time, within a limit of their memory.
#[derive(Default)]
pub(super) struct KeptRecords {
    records: Vec<ComparedRecord>,
    bytes: usize,
}

impl KeptRecords {
    /// Keeps a record.
    ///
    /// # Errors
    /// Usage: the records take too much memory.
    pub(super) fn add(
        &mut self,
        mut record: ComparedRecord,
        leaves_fingerprints_out: bool,
    ) -> Result<(), CommandError> {
        if leaves_fingerprints_out {
            record.forget_fingerprint();
        }
        self.bytes += record.memory();
        if self.bytes > MAX_KEPT_BYTES {
            return Err(CommandError::usage(
                "the records that agree with others take more than 1 GiB of memory",
            )
            .hint("compare by a shorter value, or pass --within 15m"));
        }
        self.records.push(record);
        Ok(())
    }

    pub(super) fn into_records(self) -> Vec<ComparedRecord> {
        self.records
    }
}

fn too_many_agree(rule: &CompareRule) -> CommandError {
    let hint = if rule.pointers.is_empty() {
        "pass --same with a pointer to a value that identifies one operation, or --within 15m"
    } else {
        "compare by a value that identifies one operation, or pass --within 15m"
    };
    CommandError::usage(
        "more than 1,000,000 records agree with another one, too many for groups of duplicates",
    )
    .hint(hint)
}

fn too_many(_: TooManyEntries) -> CommandError {
    CommandError::usage("more than 50,000,000 records to compare, too many for the memory")
        .hint("select fewer records, for example with --newer-than or --schema")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::duplicates::FileLine;

    fn collector(rule: &CompareRule) -> Collector<'_> {
        let mut collector = Collector::new(rule).unwrap();
        for number in 0..3 {
            let line = format!(r#"{{"key":"k-{number}","fingerprint":"f","id":{}}}"#, number / 2);
            let record = FileLine::parse(line.as_bytes()).unwrap().compare(rule);
            collector.add(&record, b"").unwrap();
        }
        collector
    }

    /// Rule: too many equal fingerprints do not prevent groups by values.
    #[test]
    fn too_many_equal_fingerprints_are_left_out_if_values_are_compared() {
        let rule = CompareRule { pointers: vec!["/id".to_owned()], ..CompareRule::default() };
        let collected = collector(&rule).finish_with_most(None, 2).ok().unwrap();
        assert!(collected.leaves_fingerprints_out && collected.nominations.len() == 2);
        let collected = collector(&rule).finish_with_most(None, 3).ok().unwrap();
        assert!(!collected.leaves_fingerprints_out && collected.nominations.len() == 3);
        assert!(collector(&rule).finish_with_most(None, 1).is_err());
        let by_fingerprint = CompareRule::default();
        assert!(collector(&by_fingerprint).finish_with_most(None, 2).is_err());
    }

    #[test]
    fn the_memory_of_kept_records_is_limited() {
        let rule = CompareRule::default();
        let mut kept = KeptRecords { records: Vec::new(), bytes: MAX_KEPT_BYTES - 1_000 };
        let record = || FileLine::parse(br#"{"key":"k"}"#).unwrap().compare(&rule);
        assert!(kept.add(record(), false).is_ok());
        while kept.records.len() < 10 && kept.add(record(), false).is_ok() {}
        assert!(kept.records.len() < 10);
    }
}
