//! What a seeded record is in the middle of, or suffers from.

use crate::domain::diagnosis::Thresholds;
use crate::domain::record::age::millis;
use crate::domain::record::{Content, Reading, Response, decode};
use crate::domain::schema::{Schema, TtlOf};
use crate::domain::step::Request;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Situation {
    Running,
    Finished,
    StuckForEver,
    /// A lock whose TTL in seconds was given as milliseconds, or the other way round.
    SecondsForMillis,
    ResultTtlOnLock,
    LeftoverLock,
    CutOff,
    /// A hash where a string belongs.
    Hash,
    KeptForEver,
    LockTtlOnResult,
    Huge,
}

/// What ails records, the worst first.
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
    /// True when a record of this schema can be in this situation, and idemctl finds out.
    pub fn fits(self, schema: &Schema) -> bool {
        match self {
            Self::LeftoverLock => schema.keys.len() == 2,
            Self::ResultTtlOnLock => millis(schema.result_ttl) > millis(schema.lock_ttl).saturating_add(60_000),
            Self::StuckForEver | Self::SecondsForMillis => schema.ttl(TtlOf::Lock).is_some(),
            Self::KeptForEver => schema.ttl(TtlOf::Result).is_some(),
            Self::LockTtlOnResult => schema.lock_ttl < schema.result_ttl,
            Self::CutOff => {
                let content = Content::text(cut_off(schema));
                matches!(decode::read(schema, schema.result_role(), &content), Reading::Unreadable(_))
            }
            Self::Huge => sample(schema, huge_body()).len() as u64 > Thresholds::default().oversized_bytes,
            _ => true,
        }
    }
}

/// A result as it is after half of it was lost.
pub(super) fn cut_off(schema: &Schema) -> Vec<u8> {
    let mut value = sample(schema, br#"{"status":"accepted"}"#.to_vec());
    value.truncate(value.len() / 2);
    value
}

/// A JSON body beyond what is called oversized.
pub(super) fn huge_body() -> Vec<u8> {
    let item = r#"{"sku":"A-1047","quantity":2,"price":1295}"#;
    format!("{{\"items\":[{}]}}", vec![item; 2_000].join(",")).into_bytes()
}

fn sample(schema: &Schema, body: Vec<u8>) -> Vec<u8> {
    let response = Response { status: Some(201), headers: Vec::new(), body, whole: true };
    Request::new(schema, b"k", "o", &response).result_value()
}
