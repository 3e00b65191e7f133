//! The Redis keys of seeded records. The same number gives the same records, every time.

use std::sync::Arc;

use fastrand::Rng;

use super::distribution::Distribution;
use super::operation;
use super::situation::{Situation, cut_off, huge_body};
use crate::domain::record::age::millis;
use crate::domain::schema::{Schema, State};
use crate::domain::step::Request;
use crate::store::{Entry, EntryValue};

/// The Redis keys of `count` records of each schema. Times in the values are `now_ms`, in milliseconds since the epoch.
pub fn entries(schemas: &[Arc<Schema>], count: u64, now_ms: u64) -> impl Iterator<Item = Entry> {
    let distribution = Distribution::new(schemas, count);
    let schemas = schemas.to_vec();
    (0..count).flat_map(move |number| {
        let all: Vec<_> = schemas
            .iter()
            .enumerate()
            .flat_map(|(index, schema)| {
                let overall = number * schemas.len() as u64 + index as u64;
                Record::new(schema, overall, now_ms).entries(distribution.situation(index, number))
            })
            .collect();
        all
    })
}

/// A part of no TTL at all is longer than this; every other TTL is shorter.
const FOR_EVER_MS: u64 = u64::MAX / 100;

struct Record<'a> {
    schema: &'a Schema,
    number: u64,
    rng: Rng,
    key: String,
    now_ms: u64,
}

impl<'a> Record<'a> {
    fn new(schema: &'a Schema, number: u64, now_ms: u64) -> Self {
        let mut rng = Rng::with_seed(number);
        let key = operation::key(&mut rng, number, is_of_messages(schema));
        Self { schema, number, rng, key, now_ms }
    }

    fn entries(mut self, situation: Situation) -> Vec<Entry> {
        let (lock_ttl, result_ttl) = (millis(self.schema.lock_ttl), millis(self.schema.result_ttl));
        match situation {
            Situation::Running => {
                let left = self.part(lock_ttl, 40, 95);
                vec![self.lock(Some(left))]
            }
            Situation::StuckForEver => vec![self.lock(None)],
            Situation::SecondsForMillis => vec![self.lock(Some(lock_ttl.saturating_mul(1_000)))],
            Situation::ResultTtlOnLock => vec![self.lock(Some(result_ttl))],
            Situation::Finished => vec![self.finished()],
            Situation::LeftoverLock => vec![self.finished(), self.lock(None)],
            Situation::KeptForEver => vec![self.result(None)],
            Situation::LockTtlOnResult => vec![self.result(Some(lock_ttl))],
            Situation::CutOff => {
                let left = self.part(result_ttl, 30, 95);
                vec![self.at(self.schema.result_role(), EntryValue::Text(cut_off(self.schema)), Some(left))]
            }
            Situation::Hash => {
                let left = self.part(result_ttl, 30, 95);
                vec![self.at(self.schema.result_role(), EntryValue::Hash(b"attempts".to_vec()), Some(left))]
            }
            Situation::Huge => {
                let left = self.part(result_ttl, 30, 95);
                let value = self.result_value(Some(huge_body()));
                vec![self.at(self.schema.result_role(), EntryValue::Text(value), Some(left))]
            }
        }
    }

    fn lock(&mut self, ttl_ms: Option<u64>) -> Entry {
        let owner = operation::uuid(&mut self.rng);
        let response = operation::response(&mut self.rng, &self.key, self.number);
        let request =
            Request { now_ms: self.now_ms, ..Request::new(self.schema, self.key.as_bytes(), &owner, &response) };
        self.at(self.schema.lock_role(), EntryValue::Text(request.lock_value()), ttl_ms)
    }

    /// A result with so much of its TTL left that nothing is wrong with it.
    fn finished(&mut self) -> Entry {
        let (lock_ttl, result_ttl) = (millis(self.schema.lock_ttl), millis(self.schema.result_ttl));
        let left = self.part(result_ttl, 10, 99);
        self.result(Some(if left > lock_ttl.saturating_mul(2) { left } else { result_ttl }))
    }

    fn result(&mut self, ttl_ms: Option<u64>) -> Entry {
        let value = self.result_value(None);
        self.at(self.schema.result_role(), EntryValue::Text(value), ttl_ms)
    }

    /// The value that the service writes; half of the time a bare marker, where the service may write one.
    fn result_value(&mut self, body: Option<Vec<u8>>) -> Vec<u8> {
        let owner = operation::uuid(&mut self.rng);
        let mut response = operation::response(&mut self.rng, &self.key, self.number);
        let marker = self.schema.values.iter().find_map(|case| {
            let marks = case.role == self.schema.result_role() && case.state == State::Completed;
            case.tests.equals.as_ref().filter(|_| marks)
        });
        match (marker, body) {
            (_, Some(body)) => response.body = body,
            (Some(marker), None) if self.rng.bool() => return marker.clone(),
            _ => {}
        }
        let request =
            Request { now_ms: self.now_ms, ..Request::new(self.schema, self.key.as_bytes(), &owner, &response) };
        request.result_value()
    }

    fn at(&self, role: usize, value: EntryValue, ttl_ms: Option<u64>) -> Entry {
        // Of a TTL that the service does not give a part is asked for as well.
        let ttl_ms = ttl_ms.filter(|ms| *ms < FOR_EVER_MS);
        let redis_key = self.schema.keys[role].template.redis_key(self.key.as_bytes());
        Entry { redis_key, value, ttl_ms }
    }

    /// A random part of a time, from `from` to `to` percent.
    fn part(&mut self, of: u64, from: u64, to: u64) -> u64 {
        (of / 100).saturating_mul(self.rng.u64(from..to)).max(1)
    }
}

/// True when the schema keeps no HTTP status: its idempotency keys are names of messages.
fn is_of_messages(schema: &Schema) -> bool {
    schema.keys.len() == 2 && schema.values.iter().all(|case| case.fields.status.is_none())
}
