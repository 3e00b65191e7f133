//! What a sample of the records shows of their keys, TTLs and memory.

use std::sync::Arc;

use super::client_keys::ClientKeys;
use super::refusal::RefusedFact;
use crate::domain::record::age::{TTL_TOLERANCE_MS, millis};
use crate::domain::record::{KeyState, Record, TimeLeft};
use crate::domain::schema::{Schema, State, TtlOf};

/// The fewest results from which the check of a whole schema follows.
pub(super) const MIN_RESULTS: usize = 20;

/// Memory that MEMORY USAGE does not count, per Redis key with a TTL: its part of the tables of
/// keys and of expiries. On Redis 6.2, 7.0 and 8 with up to 120,000 keys it was between 28 and 77
/// bytes.
const TABLE_BYTES: u64 = 64;

/// The records in a sample of the Redis keys.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordSample {
    /// True if the sample contains all Redis keys.
    pub(crate) is_all: bool,
    /// Records in the sample that the Redis user may not read, or that a node did not return.
    pub(crate) unread: u64,
    /// How many Redis keys were sampled.
    pub(crate) keys: u64,
    /// The number of the database.
    pub(crate) db: i64,
    pub(crate) schemas: Vec<SchemaSample>,
    /// The schemas with records that are members of a Redis key, which the sample does not have.
    pub(crate) of_members: Vec<String>,
}

/// The records of one schema in a sample.
#[derive(Debug, Clone)]
pub(crate) struct SchemaSample {
    pub(crate) schema: Arc<Schema>,
    pub(crate) lock_ttls: TimesLeft,
    pub(crate) result_ttls: TimesLeft,
    pub(crate) keys: ClientKeys,
    pub(crate) results: Vec<SizedResult>,
}

/// A result in a sample, and the memory that it takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SizedResult {
    /// How long it stays, in milliseconds; `None` if it never expires.
    pub(crate) left_ms: Option<u64>,
    /// Memory of its Redis keys; `None` if the server did not report it.
    pub(crate) bytes: Option<u64>,
    /// The part of its Redis keys that were sampled: each of them could have been drawn.
    pub(crate) weight: f64,
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
            return self.unseen_because();
        }
        Some(RefusedFact {
            command: "reading the sample".to_owned(),
            rule: Some("~PATTERN, with a pattern that matches the Redis keys".to_owned()),
            why: format!("{} of the records in it could not be read", self.unread),
            instead: None,
        })
    }

    /// Why the sample has not the records that matter; `None` if it has some of all schemas.
    fn unseen_because(&self) -> Option<RefusedFact> {
        let Some(first) = self.of_members.first() else {
            let is_unseen = self.schemas.is_empty() && self.keys > 0;
            return if is_unseen { Some(self.without_schema()) } else { None };
        };
        let names = self.of_members.join(", ");
        Some(RefusedFact::unknown(
            "the sample",
            format!("the records of {names} are members of a Redis key, which are not sampled"),
            format!("Look at them yourself: `idemctl list --schema {first}`."),
        ))
    }

    /// Why nothing is known of schemas: no sampled key belongs to one.
    pub(super) fn without_schema(&self) -> RefusedFact {
        let more = if self.is_all { "" } else { ", and there are more" };
        let keys = self.keys;
        RefusedFact::unknown(
            "the sample",
            format!("none of {keys} sampled Redis keys belongs to a known schema{more}"),
            "Name the schemas of your services with --schema, and their database. If their keys \
                 are rare among others, `idemctl stats` reads all of them.",
        )
    }

    /// Adds a record that the schema's own service wrote.
    pub(crate) fn add(&mut self, record: &Record) {
        let of = self.of_schema(&record.schema);
        of.keys.add(&record.key);
        if record.state == State::InProgress {
            // An operator gave an extended lock its time.
            if !record.is_extended {
                of.lock_ttls.add(record, TtlOf::Lock, record.lock());
            }
        } else if record.state.is_result() {
            of.result_ttls.add(record, TtlOf::Result, record.result());
        }
    }

    /// Adds the memory of a result, of which so many Redis keys were sampled.
    pub(crate) fn add_size(&mut self, record: &Record, drawn: u64) {
        if !record.state.is_result() {
            return;
        }
        let keys = record.seen.keys.iter().filter(|key| !key.content.is_absent()).count() as u64;
        let result = SizedResult {
            left_ms: record.kept_for().and_then(TimeLeft::millis),
            bytes: record.memory_bytes().map(|bytes| bytes + TABLE_BYTES * keys),
            weight: drawn.min(keys) as f64 / keys.max(1) as f64,
        };
        self.of_schema(&record.schema).results.push(result);
    }

    pub(super) fn of_schema(&mut self, schema: &Arc<Schema>) -> &mut SchemaSample {
        let position = self.schemas.iter().position(|of| of.schema.name == schema.name);
        let index = match position {
            Some(index) => index,
            None => {
                self.schemas.push(SchemaSample {
                    schema: Arc::clone(schema),
                    lock_ttls: TimesLeft::default(),
                    result_ttls: TimesLeft::default(),
                    keys: ClientKeys::default(),
                    results: Vec::new(),
                });
                self.schemas.len() - 1
            }
        };
        &mut self.schemas[index]
    }
}

impl TimesLeft {
    fn add(&mut self, record: &Record, of: TtlOf, key: Option<&KeyState>) {
        let Some(key) = key else { return };
        let TimeLeft::Millis(left) = key.time_left else { return };
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

    /// How many have this time left or more, in milliseconds.
    pub(crate) fn at_least(&self, millis: u64) -> usize {
        self.left.iter().filter(|left| **left >= millis).count()
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
