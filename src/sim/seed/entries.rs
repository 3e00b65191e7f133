//! The Redis keys of seeded records, with realistic idempotency keys, owners and responses. The
//! same number always gives the same record.

use std::sync::Arc;

use fastrand::Rng;

use super::situation::{Distribution, Situation, cut_off, huge_body};
use crate::domain::record::Response;
use crate::domain::record::age::millis;
use crate::domain::schema::Schema;
use crate::domain::step::StepInputs;
use crate::store::{EntryValue, SandboxKey};

/// The Redis keys of `count` records of each schema. `now_ms` is the time in the values, in
/// milliseconds since the epoch.
pub fn entries(
    schemas: &[Arc<Schema>],
    count: u64,
    now_ms: u64,
) -> impl Iterator<Item = SandboxKey> {
    let distribution = Distribution::new(schemas, count);
    let schemas = schemas.to_vec();
    (0..count).flat_map(move |number| {
        let mut entries = Vec::new();
        for (index, schema) in schemas.iter().enumerate() {
            let overall = number * schemas.len() as u64 + index as u64;
            let situation = distribution.situation(index, number);
            entries.extend(SeededRecord::new(schema, overall, now_ms).entries(situation));
        }
        entries
    })
}

/// In milliseconds. Even part of an infinite TTL is longer than this, and every other TTL is
/// shorter.
const FOR_EVER_MS: u64 = u64::MAX / 100;

struct SeededRecord<'a> {
    schema: &'a Schema,
    number: u64,
    rng: Rng,
    key: String,
    now_ms: u64,
}

impl<'a> SeededRecord<'a> {
    fn new(schema: &'a Schema, number: u64, now_ms: u64) -> Self {
        // Seeded with the number, so that each run creates the same records.
        let mut rng = Rng::with_seed(number);
        let key = idempotency_key(&mut rng, number, is_of_messages(schema));
        Self { schema, number, rng, key, now_ms }
    }

    fn entries(mut self, situation: Situation) -> Vec<SandboxKey> {
        let lock_ttl = millis(self.schema.lock_ttl);
        let result_ttl = millis(self.schema.result_ttl);
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
            Situation::CutOff | Situation::Hash | Situation::Huge => {
                let left = self.part(result_ttl, 30, 95);
                let value = match situation {
                    Situation::Hash => EntryValue::Hash(b"attempts".to_vec()),
                    Situation::CutOff => EntryValue::Text(cut_off(self.schema)),
                    _ => EntryValue::Text(self.result_value(Some(huge_body()))),
                };
                vec![self.at(self.schema.result_key_index(), value, Some(left))]
            }
        }
    }

    fn lock(&mut self, ttl_ms: Option<u64>) -> SandboxKey {
        let owner = uuid(&mut self.rng);
        let response = response(&mut self.rng, &self.key, self.number);
        let request = StepInputs {
            now_ms: self.now_ms,
            ..StepInputs::new(self.schema, self.key.as_bytes(), &owner, &response)
        };
        self.at(self.schema.lock_key_index(), EntryValue::Text(request.lock_value()), ttl_ms)
    }

    /// A result with enough time left that it has no finding.
    fn finished(&mut self) -> SandboxKey {
        let lock_ttl = millis(self.schema.lock_ttl);
        let result_ttl = millis(self.schema.result_ttl);
        let left = self.part(result_ttl, 10, 99);
        // A TTL close to the lock TTL would be a finding.
        self.result(Some(if left > lock_ttl.saturating_mul(2) { left } else { result_ttl }))
    }

    fn result(&mut self, ttl_ms: Option<u64>) -> SandboxKey {
        let value = self.result_value(None);
        self.at(self.schema.result_key_index(), EntryValue::Text(value), ttl_ms)
    }

    /// The value that the service writes. If the service may write a bare marker instead, half of
    /// the values are markers.
    fn result_value(&mut self, body: Option<Vec<u8>>) -> Vec<u8> {
        let owner = uuid(&mut self.rng);
        let mut response = response(&mut self.rng, &self.key, self.number);
        if let Some(body) = body {
            response.body = body;
        } else if let Some(marker) = result_marker(self.schema)
            && self.rng.bool()
        {
            return marker.clone();
        }
        let request = StepInputs {
            now_ms: self.now_ms,
            ..StepInputs::new(self.schema, self.key.as_bytes(), &owner, &response)
        };
        request.result_value()
    }

    fn at(&self, key_index: usize, value: EntryValue, ttl_ms: Option<u64>) -> SandboxKey {
        // A service that sets no TTL has an infinite one, and so has every part of it.
        let ttl_ms = ttl_ms.filter(|ms| *ms < FOR_EVER_MS);
        let redis_key = self.schema.keys[key_index].template.redis_key(self.key.as_bytes());
        SandboxKey { redis_key, value, ttl_ms }
    }

    /// A random part of a time, between `from` and `to` percent.
    fn part(&mut self, of: u64, from: u64, to: u64) -> u64 {
        (of / 100).saturating_mul(self.rng.u64(from..to)).max(1)
    }
}

/// The bare marker that the service may write instead of a result.
fn result_marker(schema: &Schema) -> Option<&Vec<u8>> {
    for case in &schema.values {
        if case.key_index == schema.result_key_index()
            && case.state.is_result()
            && let Some(marker) = &case.tests.equals
        {
            return Some(marker);
        }
    }
    None
}

/// True if the schema stores no HTTP status, so that its idempotency keys are names of messages.
fn is_of_messages(schema: &Schema) -> bool {
    schema.has_separate_result() && schema.values.iter().all(|case| case.fields.status.is_none())
}

const CUSTOMERS: [&str; 6] = ["acme", "globex", "initech", "umbrella", "hooli", "müller & söhne"];
const CURRENCIES: [&str; 4] = ["EUR", "USD", "GBP", "CHF"];
const TOPICS: [&str; 3] = ["orders.created", "payments.captured", "invoices.sent"];

/// An idempotency key as clients choose them; `number` makes it unique.
fn idempotency_key(rng: &mut Rng, number: u64, is_message: bool) -> String {
    if is_message {
        return format!(
            "{}-{}-{}",
            TOPICS[rng.usize(..TOPICS.len())],
            rng.u8(..12),
            48_000 + number
        );
    }
    match rng.u8(..3) {
        0 => format!("order-{}", 10_000 + number),
        1 => format!("pay_{:08x}{:06x}", rng.u32(..), number),
        _ => uuid(rng),
    }
}

fn uuid(rng: &mut Rng) -> String {
    let mut bytes = [0; 16];
    rng.fill(&mut bytes);
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}

/// The response of an operation: a JSON body, and headers that sometimes contain a credential.
fn response(rng: &mut Rng, key: &str, number: u64) -> Response {
    let status = [200, 201, 201, 202][rng.usize(..4)];
    let mut headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
    match number % 5 {
        0 => headers.push(("Location".to_owned(), format!("/v1/orders/{}", 10_000 + number))),
        1 => headers.push((
            "Set-Cookie".to_owned(),
            format!("session={:016x}; HttpOnly; Secure", rng.u64(..)),
        )),
        2 => headers.push((
            "Authorization".to_owned(),
            format!("Bearer {:016x}{:016x}", rng.u64(..), rng.u64(..)),
        )),
        3 => headers.push(("X-Request-Id".to_owned(), uuid(rng))),
        _ => {}
    }
    let body = serde_json::json!({
        "id": key,
        "customer": CUSTOMERS[rng.usize(..CUSTOMERS.len())],
        "amount": rng.u32(100..250_000),
        "currency": CURRENCIES[rng.usize(..CURRENCIES.len())],
        "status": if status == 202 { "accepted" } else { "done" },
    });
    Response { status: Some(status), headers, body: body.to_string().into_bytes(), whole: true }
}
