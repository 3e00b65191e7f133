//! Times in stored values that no service can have written. The usual cause is a wrong unit in the
//! schema.

use super::{Decoded, Record};
use crate::domain::schema::Timestamp;

/// 2015-01-01 in milliseconds since 1970. No service that is still running keeps older idempotency
/// records.
const EARLIEST_MS: u64 = 1_420_070_400_000;

/// The most by which the clocks of a service and of Redis may differ: a day, in milliseconds.
const CLOCK_SKEW_MS: u64 = 86_400_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Era {
    Before2015,
    Future,
}

/// An implausible time of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ImplausibleTime {
    /// The index of the `[[value]]` in `schema.toml`.
    pub(crate) value: usize,
    pub(crate) field: &'static str,
    pub(crate) era: Era,
    /// The unit in which the same number is a plausible time.
    pub(crate) unit: Option<Timestamp>,
}

/// The implausible times of a record, at the time `now_ms` in milliseconds since 1970.
pub(crate) fn implausible_times(record: &Record, now_ms: u64) -> Vec<ImplausibleTime> {
    let mut found = Vec::new();
    for reading in &record.readings {
        let Some(decoded) = reading.decoded() else { continue };
        let unit = record.schema.values[decoded.format].timestamp;
        for (field, time) in times(decoded) {
            let Some(time_ms) = time else { continue };
            let Some(era) = era(time_ms, now_ms) else { continue };
            let unit = other_unit(time_ms, unit, now_ms);
            found.push(ImplausibleTime { value: decoded.format, field, era, unit });
        }
    }
    found
}

fn times(decoded: &Decoded) -> [(&'static str, Option<u64>); 2] {
    [("created_at", decoded.created_ms), ("completed_at", decoded.completed_ms)]
}

fn era(time_ms: u64, now_ms: u64) -> Option<Era> {
    if time_ms < EARLIEST_MS {
        return Some(Era::Before2015);
    }
    if time_ms > now_ms.saturating_add(CLOCK_SKEW_MS) { Some(Era::Future) } else { None }
}

/// The other unit of a number, if the number is plausible in that unit.
fn other_unit(time_ms: u64, unit: Timestamp, now_ms: u64) -> Option<Timestamp> {
    let (other, other_ms) = match unit {
        Timestamp::Milliseconds => (Timestamp::Seconds, time_ms.saturating_mul(1_000)),
        Timestamp::Seconds => (Timestamp::Milliseconds, time_ms / 1_000),
        Timestamp::Rfc3339 | Timestamp::Ticks => return None,
    };
    if era(other_ms, now_ms).is_none() { Some(other) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_795_223_514_263;

    #[test]
    fn a_time_is_implausible_before_2015_and_more_than_a_day_ahead() {
        assert_eq!(era(NOW_MS / 1_000, NOW_MS), Some(Era::Before2015));
        assert_eq!(era(EARLIEST_MS, NOW_MS), None);
        assert_eq!(era(NOW_MS + CLOCK_SKEW_MS, NOW_MS), None);
        assert_eq!(era(NOW_MS + CLOCK_SKEW_MS + 1, NOW_MS), Some(Era::Future));
        assert_eq!(era(NOW_MS * 1_000, NOW_MS), Some(Era::Future));
    }

    #[test]
    fn the_other_unit_is_named_only_if_it_fits() {
        let seconds = NOW_MS / 1_000;
        assert_eq!(other_unit(seconds, Timestamp::Milliseconds, NOW_MS), Some(Timestamp::Seconds));
        assert_eq!(
            other_unit(NOW_MS * 1_000, Timestamp::Seconds, NOW_MS),
            Some(Timestamp::Milliseconds)
        );
        assert_eq!(other_unit(5, Timestamp::Milliseconds, NOW_MS), None);
        assert_eq!(other_unit(NOW_MS * 2, Timestamp::Milliseconds, NOW_MS), None);
        assert_eq!(other_unit(5, Timestamp::Rfc3339, NOW_MS), None);
    }
}
