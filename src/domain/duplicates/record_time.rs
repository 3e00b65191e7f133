//! The time of a record, as duplicates are compared by it: what happened then, and the evidence.

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;
use crate::domain::record::{Decoded, Evidence, Reading, Record};
use crate::domain::schema::State;

/// What happened at the time of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum TimeIs {
    /// The request arrived.
    Created,
    /// The result was stored. When the request arrived is then unknown.
    Completed,
}

as_str!(TimeIs);

/// The time of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordTime {
    /// In milliseconds since the epoch.
    pub(crate) at_ms: u64,
    pub(crate) is: TimeIs,
    /// `Known` from the value, by the service's clock; else from the expiry and a TTL.
    pub(crate) evidence: Evidence,
}

impl RecordTime {
    /// True if gaps to this time can separate records. A schema's default TTL cannot prove a gap:
    /// the service may have stored records with different TTLs.
    pub(crate) fn separates(&self) -> bool {
        self.evidence != Evidence::Estimated
    }

    /// The time of a record; `None` if it is unknown.
    pub(crate) fn of(record: &Record) -> Option<Self> {
        let known = |at_ms, is| Some(Self { at_ms, is, evidence: Evidence::Known });
        // A record has several values if a lock exists beside a result. It began with the first.
        if let Some(at_ms) = written(record, |value| value.created_ms) {
            return known(at_ms, TimeIs::Created);
        }
        if let Some(at_ms) = written(record, |value| value.completed_ms) {
            return known(at_ms, TimeIs::Completed);
        }
        let age = record.age?;
        let at_ms = record.seen.server_ms?.checked_sub(age.millis)?;
        let is = match record.state {
            // A lock that was extended or renewed expires later than its TTL after its creation.
            State::InProgress if record.is_extended || record.schema.renew.is_some() => {
                return None;
            }
            State::InProgress => TimeIs::Created,
            State::Completed | State::Failed => TimeIs::Completed,
            State::Released | State::Absent | State::Unreadable => return None,
        };
        Some(Self { at_ms, is, evidence: age.evidence })
    }
}

/// The earliest of these times in the record's values.
fn written(record: &Record, time: impl Fn(&Decoded) -> Option<u64>) -> Option<u64> {
    let mut earliest: Option<u64> = None;
    for value in record.readings.iter().filter_map(Reading::decoded) {
        if let Some(at_ms) = time(value) {
            earliest = Some(earliest.map_or(at_ms, |known| known.min(at_ms)));
        }
    }
    earliest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::TimeLeft;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi, record, text};

    #[test]
    fn a_time_in_the_value_is_known_and_one_from_a_ttl_says_what_it_is() {
        // Read at 1,000,000 ms.
        let timed =
            record("timed", &[(text(r#"{"done":false,"at":940000}"#), TimeLeft::Millis(30_000))]);
        let known = RecordTime { at_ms: 940_000, is: TimeIs::Created, evidence: Evidence::Known };
        assert_eq!(RecordTime::of(&timed), Some(known));
        let lock = RecordTime::of(&chi(CHI_LOCK, TimeLeft::Millis(20_000)));
        let estimated =
            RecordTime { at_ms: 960_000, is: TimeIs::Created, evidence: Evidence::Estimated };
        assert_eq!(lock, Some(estimated));
        let result = RecordTime::of(&chi(CHI_RESULT, TimeLeft::Millis(86_400_000 - 5_000)));
        assert_eq!(result.map(|time| (time.at_ms, time.is)), Some((995_000, TimeIs::Completed)));
        assert_eq!(RecordTime::of(&chi(CHI_RESULT, TimeLeft::NoExpiry)), None);
    }

    #[test]
    fn an_extended_lock_has_an_unknown_time() {
        let mut lock = chi(CHI_LOCK, TimeLeft::Millis(20_000));
        lock.is_extended = true;
        assert_eq!(RecordTime::of(&lock), None);
    }
}
