//! What a sample of the records shows of their TTLs and of their writers.

use std::sync::Arc;

use super::refusal::RefusedFact;
use super::releases::{self, PlaceSample};
use crate::domain::diagnosis::FindingCode;
use crate::domain::record::age::{TTL_TOLERANCE_MS, millis};
use crate::domain::record::{Expiry, KeyState, Record};
use crate::domain::schema::{Schema, State, TtlOf};

/// The records in a sample of the Redis keys.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordSample {
    /// True if the sample contains all Redis keys.
    pub(crate) is_all: bool,
    /// Records in the sample that the user may not read, or that a node did not return.
    pub(crate) unread: u64,
    pub(crate) schemas: Vec<SchemaSample>,
    /// Who wrote the values under each template of Redis keys.
    pub(crate) places: Vec<PlaceSample>,
}

/// The records of one schema in a sample.
#[derive(Debug, Clone)]
pub(crate) struct SchemaSample {
    pub(crate) schema: Arc<Schema>,
    pub(crate) locks: u64,
    /// Locks that never expire.
    pub(crate) endless_locks: u64,
    pub(crate) lock_ttls: TimesLeft,
    pub(crate) result_ttls: TimesLeft,
}

/// The times left of sampled locks or results.
#[derive(Debug, Clone, Default)]
pub(crate) struct TimesLeft {
    /// In milliseconds.
    left: Vec<u64>,
    /// How many of them are longer than the TTL of their record.
    pub(crate) longer: u64,
}

impl RecordSample {
    /// Why the sample does not show that all is well; `None` if every record in it was read.
    pub(super) fn unread_because(&self) -> Option<RefusedFact> {
        if self.unread == 0 {
            return None;
        }
        Some(RefusedFact {
            command: "reading the sample".to_owned(),
            rule: Some("~PATTERN, with a pattern that matches the Redis keys".to_owned()),
            why: format!("{} of the records in it could not be read", self.unread),
            instead: None,
        })
    }

    /// Counts a record for the schema that wrote it. `other` is that schema, if it is not the
    /// schema of the record.
    pub(crate) fn add_writer(&mut self, record: &Record, other: Option<Arc<Schema>>) {
        releases::add(&mut self.places, record, other);
    }

    /// Adds a record that the schema's own service wrote.
    pub(crate) fn add(&mut self, record: &Record) {
        let position = self.schemas.iter().position(|of| of.schema.name == record.schema.name);
        let index = match position {
            Some(index) => index,
            None => {
                self.schemas.push(SchemaSample {
                    schema: Arc::clone(&record.schema),
                    locks: 0,
                    endless_locks: 0,
                    lock_ttls: TimesLeft::default(),
                    result_ttls: TimesLeft::default(),
                });
                self.schemas.len() - 1
            }
        };
        let of = &mut self.schemas[index];
        if record.state == State::InProgress {
            of.locks += 1;
            if record.findings.iter().any(|finding| finding.code == FindingCode::NoExpiry) {
                of.endless_locks += 1;
            }
            // An operator gave an extended lock its time.
            if !record.is_extended {
                of.lock_ttls.add(record, TtlOf::Lock, record.lock());
            }
        } else if record.state.is_result() {
            of.result_ttls.add(record, TtlOf::Result, record.result());
        }
    }
}

impl TimesLeft {
    fn add(&mut self, record: &Record, of: TtlOf, key: Option<&KeyState>) {
        let Some(key) = key else { return };
        let Expiry::In(left) = key.expiry else { return };
        self.left.push(left);
        if let Some(ttl) = record.ttl(of)
            && left > millis(ttl).saturating_add(TTL_TOLERANCE_MS)
        {
            self.longer += 1;
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.left.len()
    }

    /// The time below which this share of them is, in percent; 100 for the longest. `None` without
    /// any.
    pub(crate) fn percentile(&self, percent: usize) -> Option<u64> {
        let mut sorted = self.left.clone();
        sorted.sort_unstable();
        let last = sorted.len().checked_sub(1)?;
        sorted.get(last * percent / 100).copied()
    }
}
