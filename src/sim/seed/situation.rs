//! The situations of seeded records, and their distribution. Every problem occurs once among as few
//! records as possible. After that, one record in four has a problem.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::domain::diagnosis::Thresholds;
use crate::domain::record::age::millis;
use crate::domain::record::{Content, Reading, Response, decode};
use crate::domain::schema::{Schema, TtlOf};
use crate::domain::step::StepInputs;

/// The situation of a seeded record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Situation {
    Running,
    Finished,
    StuckForEver,
    /// A lock whose TTL in seconds was sent as milliseconds, or the reverse.
    SecondsForMillis,
    ResultTtlOnLock,
    LeftoverLock,
    CutOff,
    /// A hash where the schema expects a string.
    Hash,
    KeptForEver,
    LockTtlOnResult,
    Huge,
}

/// The situations with a problem, the worst first.
pub(super) const SICK: [Situation; 9] = [
    Situation::StuckForEver,
    Situation::SecondsForMillis,
    Situation::Hash,
    Situation::LeftoverLock,
    Situation::CutOff,
    Situation::KeptForEver,
    Situation::LockTtlOnResult,
    Situation::Huge,
    Situation::ResultTtlOnLock,
];

impl Situation {
    /// True if a record of this schema can be in this situation, and idemctl reports it.
    pub fn fits(self, schema: &Schema) -> bool {
        match self {
            Self::LeftoverLock => schema.has_separate_result(),
            Self::ResultTtlOnLock => {
                millis(schema.result_ttl) > millis(schema.lock_ttl).saturating_add(60_000)
            }
            // If the service sets no TTL, a key that never expires has no problem.
            Self::StuckForEver | Self::SecondsForMillis => schema.ttl(TtlOf::Lock).is_some(),
            Self::KeptForEver => schema.ttl(TtlOf::Result).is_some(),
            Self::LockTtlOnResult => schema.lock_ttl < schema.result_ttl,
            Self::CutOff => {
                let content = Content::text(cut_off(schema));
                matches!(
                    decode::decode_value(schema, schema.result_key_index(), &content),
                    Reading::Unreadable(_)
                )
            }
            Self::Huge => {
                sample(schema, huge_body()).len() as u64 > Thresholds::default().oversized_bytes
            }
            _ => true,
        }
    }
}

/// The first half of a result.
pub(super) fn cut_off(schema: &Schema) -> Vec<u8> {
    let mut value = sample(schema, br#"{"status":"accepted"}"#.to_vec());
    value.truncate(value.len() / 2);
    value
}

/// A JSON body that idemctl reports as oversized.
pub(super) fn huge_body() -> Vec<u8> {
    let item = r#"{"sku":"A-1047","quantity":2,"price":1295}"#;
    format!("{{\"items\":[{}]}}", vec![item; 2_000].join(",")).into_bytes()
}

fn sample(schema: &Schema, body: Vec<u8>) -> Vec<u8> {
    let response = Response { status: Some(201), headers: Vec::new(), body, whole: true };
    StepInputs::new(schema, b"k", "o", &response).result_value()
}

/// From the fourth record of a schema on, one record in this number has a problem.
const ONE_IN: u64 = 4;

/// Only records with smaller numbers may be huge, so that a large seed needs little memory.
const HUGE_UNTIL: u64 = 100;

/// The distribution of situations among records.
pub(super) struct Distribution {
    /// For each schema, the problems that its records can have.
    ailments: Vec<Vec<Situation>>,
    /// The assigned situations, by schema and record number.
    first: HashMap<(usize, u64), Situation>,
}

impl Distribution {
    /// Assigns each problem once to the first records of the schemas. Schemas without a literal
    /// prefix get additional problems, because a plain scan does not include their records.
    pub fn new(schemas: &[Arc<Schema>], count: u64) -> Self {
        let mut ailments: Vec<Vec<_>> = Vec::new();
        for schema in schemas {
            ailments.push(SICK.into_iter().filter(|situation| situation.fits(schema)).collect());
        }
        let some_are_seen = schemas.iter().any(|schema| schema.has_fixed_prefix());
        let mut open: VecDeque<_> = SICK.into();
        let mut first = HashMap::new();
        // The first record has no problem, unless it is the only one.
        let mut number = u64::from(count > 1);
        while number < count && !open.is_empty() {
            for (index, schema) in schemas.iter().enumerate() {
                if some_are_seen && !schema.has_fixed_prefix() {
                    if let Some(situation) = pick(&ailments[index], index) {
                        first.entry((index, number)).or_insert(situation);
                    }
                    continue;
                }
                let fitting = &ailments[index];
                let place = open.iter().position(|situation| fitting.contains(situation));
                if let Some(place) = place
                    && let Some(situation) = open.remove(place)
                {
                    first.insert((index, number), situation);
                }
            }
            // A problem that no schema can have is omitted.
            open.retain(|situation| ailments.iter().any(|fitting| fitting.contains(situation)));
            // Every third record has no problem.
            number += if number % 3 == 2 { 2 } else { 1 };
        }
        Self { ailments, first }
    }

    /// The situation of record `number` of the schema with this index.
    pub fn situation(&self, index: usize, number: u64) -> Situation {
        if let Some(dealt) = self.first.get(&(index, number)) {
            return *dealt;
        }
        let turn = usize::try_from(number / ONE_IN).unwrap_or(0) + index;
        let is_sick = number >= ONE_IN && number % ONE_IN == ONE_IN - 1;
        if is_sick
            && let Some(situation) = pick(&self.ailments[index], turn)
            && (situation != Situation::Huge || number < HUGE_UNTIL)
        {
            return situation;
        }
        if (number + index as u64).is_multiple_of(2) {
            Situation::Running
        } else {
            Situation::Finished
        }
    }
}

fn pick(ailments: &[Situation], turn: usize) -> Option<Situation> {
    ailments.get(turn.checked_rem(ailments.len())?).copied()
}
