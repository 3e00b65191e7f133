//! The age of a record, and the evidence for it.

use std::time::Duration;

use strum::IntoStaticStr;

use super::decode::Reading;
use super::evidence::Evidence;
use super::observation::{Observation, TimeLeft};
use crate::domain::as_str::as_str;
use crate::domain::schema::{Schema, State, TtlOf};

/// TTLs are set in whole seconds, rounded up, and a server's clock may step. A TTL that is longer
/// by at most this many milliseconds still counts as the configured one.
pub(crate) const TTL_TOLERANCE_MS: u64 = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Age {
    pub millis: u64,
    pub(crate) source: AgeSource,
    pub(crate) evidence: Evidence,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum AgeSource {
    /// The time written in the record, against the server's clock.
    Record,
    /// The schema's lock TTL minus the time left.
    LockTtl,
    /// The schema's result TTL minus the time left.
    ResultTtl,
}

as_str!(AgeSource);

impl Age {
    /// True if the time is written in the record, so that it does not depend on any TTL.
    pub(crate) fn is_of_record(self) -> bool {
        self.source == AgeSource::Record
    }
}

/// The age of a record. `None` if it is unknown, because the key never expires, or has more time
/// left than its schema's TTL.
pub(crate) fn of(
    schema: &Schema,
    state: State,
    readings: &[Reading],
    seen: &Observation,
) -> Option<Age> {
    let (key_index, of, by_ttl) = match state {
        State::InProgress => (schema.lock_key_index(), TtlOf::Lock, AgeSource::LockTtl),
        State::Completed | State::Failed | State::Released => {
            (schema.result_key_index(), TtlOf::Result, AgeSource::ResultTtl)
        }
        State::Absent | State::Unreadable => return None,
    };
    // Another Redis key may say that the operation runs after its lock expired.
    if seen.keys[key_index].content.is_absent() {
        return None;
    }
    let mut written = None;
    if let Some(value) = readings[key_index].decoded() {
        written = match state {
            State::InProgress => value.created_ms,
            _ => value.completed_ms.or(value.created_ms),
        };
    }
    // A time in the record is certain, whereas a TTL may be only the schema's default.
    if let (Some(written), Some(now)) = (written, seen.server_ms) {
        return Some(Age {
            millis: now.saturating_sub(written),
            source: AgeSource::Record,
            evidence: Evidence::Known,
        });
    }
    let TimeLeft::Millis(left) = seen.keys[key_index].time_left else { return None };
    // The time left may come from the TTL that the lock had.
    if state == State::Released {
        return None;
    }
    // With more time left than the TTL allows, the record has another TTL and an unknown age.
    let millis = millis(schema.ttl(of)?).checked_sub(left)?;
    Some(Age { millis, source: by_ttl, evidence: schema.ttl_evidence(of) })
}

/// A duration in whole milliseconds, at most `u64::MAX`.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi, record, text};

    const DAY: u64 = 86_400_000;

    fn timed(value: &str) -> Option<Age> {
        record("timed", &[(text(value), TimeLeft::Millis(30_000))]).age
    }

    #[test]
    fn a_time_in_the_record_counts_by_the_servers_clock() {
        // Read at 1,000,000 ms.
        let by_record =
            |millis| Some(Age { millis, source: AgeSource::Record, evidence: Evidence::Known });
        assert_eq!(timed(r#"{"done":false,"at":999000}"#), by_record(1_000));
        assert_eq!(timed(r#"{"done":true,"at":1,"until":990000}"#), by_record(10_000));
        assert_eq!(timed(r#"{"done":true,"at":990000}"#), by_record(10_000));
        assert_eq!(
            timed(r#"{"done":false,"at":2000000}"#),
            by_record(0),
            "a clock ahead of the server's"
        );
    }

    #[test]
    fn without_a_time_the_ttl_tells() {
        let by_ttl =
            Age { millis: 30_000, source: AgeSource::LockTtl, evidence: Evidence::Estimated };
        assert_eq!(timed(r#"{"done":false}"#), Some(by_ttl));
        assert_eq!(
            timed(r#"{"done":false,"at":"soon"}"#).map(|age| age.source),
            Some(AgeSource::LockTtl)
        );
    }

    #[test]
    fn unknown_without_expiry_with_more_left_than_the_ttl_and_when_unreadable() {
        assert_eq!(chi(CHI_LOCK, TimeLeft::NoExpiry).age, None);
        assert_eq!(chi(CHI_LOCK, TimeLeft::Millis(60_001)).age, None);
        assert_eq!(chi("not json", TimeLeft::Millis(1)).age, None);
    }

    proptest! {
        #[test]
        fn age_and_time_left_make_the_ttl(left in 0..=60_000_u64) {
            let lock = chi(CHI_LOCK, TimeLeft::Millis(left)).age.unwrap();
            prop_assert_eq!((lock.millis + left, lock.source), (60_000, AgeSource::LockTtl));
            let result = chi(CHI_RESULT, TimeLeft::Millis(left)).age.unwrap();
            prop_assert_eq!((result.millis + left, result.source), (DAY, AgeSource::ResultTtl));
        }
    }
}
