//! What a sample of the records shows of their keys, TTLs and memory.

use std::sync::Arc;

use super::client_keys::ClientKeys;
use super::refusal::{FactResult, RefusedFact};
use crate::domain::record::Record;
use crate::domain::record::age::{TTL_TOLERANCE_MS, millis};
use crate::domain::schema::{Schema, TtlOf};

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
}

/// The records of one schema in a sample.
#[derive(Debug, Clone)]
pub(crate) struct SchemaSample {
    pub(crate) schema: Arc<Schema>,
    pub(crate) keys: ClientKeys,
    pub(crate) results: Vec<SampledResult>,
}

/// A result in a sample, and the memory that it takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampledResult {
    /// How long it stays, in milliseconds; `None` if it never expires.
    pub(crate) left_ms: Option<u64>,
    /// True if that is longer than its TTL.
    pub(crate) is_longer: bool,
    /// Memory of its Redis keys; `None` if the server did not report it.
    pub(crate) bytes: Option<u64>,
    /// The part of its Redis keys that were sampled: each of them could have been drawn.
    pub(crate) weight: f64,
}

impl RecordSample {
    /// Passes if every record in the sample was read, and some belong to a known schema.
    ///
    /// # Errors
    /// Why the sample does not show that all is well.
    pub(super) fn check_read(&self) -> FactResult<()> {
        if self.unread > 0 {
            let why = format!("{} of the records in it could not be read", self.unread);
            return Err(RefusedFact {
                instead: Some(
                    "Start the servers that do not answer, or allow the user to read these keys."
                        .to_owned(),
                ),
                ..RefusedFact::unusable("reading the sample", why)
            });
        }
        if self.schemas.is_empty() && self.keys > 0 {
            return Err(self.without_schema());
        }
        Ok(())
    }

    /// Why nothing is known of schemas: no sampled key belongs to one.
    pub(super) fn without_schema(&self) -> RefusedFact {
        let keys = self.keys;
        RefusedFact::unknown(
            "the sample",
            format!("none of {keys} sampled Redis keys belongs to a known schema"),
            "Name the schemas of your services with --schema, and their database.",
        )
    }

    /// Adds a record that the schema's own service wrote, of which so many Redis keys were sampled.
    pub(crate) fn add(&mut self, record: &Record, drawn: u64) {
        let of = self.of_schema(&record.schema);
        of.keys.add(&record.key);
        let Some(result) = record.result().filter(|_| record.state.is_result()) else { return };
        let left_ms = result.time_left.millis();
        let ttl_ms = record.schema.ttl(TtlOf::Result).map_or(u64::MAX, millis);
        let keys = record.seen.keys.iter().filter(|key| !key.content.is_absent()).count() as u64;
        of.results.push(SampledResult {
            left_ms,
            is_longer: left_ms.is_some_and(|left| left > ttl_ms.saturating_add(TTL_TOLERANCE_MS)),
            bytes: record.memory_bytes().map(|bytes| bytes + TABLE_BYTES * keys),
            weight: drawn.min(keys) as f64 / keys.max(1) as f64,
        });
    }

    pub(super) fn of_schema(&mut self, schema: &Arc<Schema>) -> &mut SchemaSample {
        let position = self.schemas.iter().position(|of| of.schema.name == schema.name);
        let index = position.unwrap_or_else(|| {
            let (schema, keys) = (Arc::clone(schema), ClientKeys::default());
            self.schemas.push(SchemaSample { schema, keys, results: Vec::new() });
            self.schemas.len() - 1
        });
        &mut self.schemas[index]
    }
}

impl SchemaSample {
    /// The times left of the results that expire, in milliseconds and in ascending order.
    pub(super) fn times_left(&self) -> Vec<u64> {
        let mut times: Vec<_> = self.results.iter().filter_map(|result| result.left_ms).collect();
        times.sort_unstable();
        times
    }
}
