//! How old a record is, and how that is known.

use std::time::Duration;

use crate::domain::observation::{Expiry, Observation};
use crate::domain::schema::{Schema, State};
use crate::domain::value::Reading;

/// How long a lock is held, or a result is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Age {
    /// Milliseconds.
    pub millis: u64,
    /// Where it comes from.
    pub source: AgeSource,
}

/// Where an age comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgeSource {
    /// The time written in the record, against the server's clock.
    Record,
    /// The schema's lock TTL minus what is left of it.
    LockTtl,
    /// The schema's result TTL minus what is left of it.
    ResultTtl,
}

impl AgeSource {
    /// The stable word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::LockTtl => "lock-ttl",
            Self::ResultTtl => "result-ttl",
        }
    }
}

/// The age of a record, or `None` where nothing tells: a key without expiry, or one with more time left than its
/// schema gives.
pub fn of(schema: &Schema, state: State, readings: &[Reading], seen: &Observation) -> Option<Age> {
    let (slot, ttl, source) = match state {
        State::InProgress => (schema.lock_slot(), schema.lock_ttl, AgeSource::LockTtl),
        State::Completed => (schema.result_slot(), schema.result_ttl, AgeSource::ResultTtl),
        State::Absent | State::Unreadable => return None,
    };
    let written = readings[slot].decoded().and_then(|value| match state {
        State::Completed => value.completed_ms.or(value.created_ms),
        _ => value.created_ms,
    });
    if let (Some(written), Some(now)) = (written, seen.server_ms) {
        return Some(Age { millis: now.saturating_sub(written), source: AgeSource::Record });
    }
    let Expiry::In(left) = seen.slots[slot].expiry else { return None };
    let millis = millis(ttl).checked_sub(left)?;
    Some(Age { millis, source })
}

/// A duration in whole milliseconds; one too long to count is the longest that can be.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
