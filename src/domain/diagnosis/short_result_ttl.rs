//! `short-result-ttl`: a result whose whole life is shorter than its schema's result TTL, so that a
//! late retry executes again.

use super::finding::{Finding, FindingCode, Severity};
use super::input::DiagnosisInput;
use crate::domain::duration;
use crate::domain::record::{AgeSource, TimeLeft, age};
use crate::domain::schema::TtlOf;

const ADVICE: &str = "check the TTL that the service sets; a result should outlive the last retry \
    or redelivery (24h to 72h)";

pub(super) fn check(input: &DiagnosisInput<'_>) -> Option<Finding> {
    let record = input.record;
    if !record.state.is_result() {
        return None;
    }
    let TimeLeft::Millis(left) = record.result()?.time_left else { return None };
    let result_ttl = age::millis(record.schema.ttl(TtlOf::Result)?);
    // The whole life of a result is known only from a time in its value. Without one, a result with
    // little time left may simply be about to expire, as every result does in the end.
    let age = record.age?;
    if age.source != AgeSource::Record {
        return None;
    }
    let life = age.millis.saturating_add(left);
    // Within a tenth of the schema's TTL, the deployment probably chose its own TTL.
    if life >= result_ttl - result_ttl / 10 {
        return None;
    }
    Some(Finding {
        code: FindingCode::ShortResultTtl,
        severity: Severity::Warning,
        evidence: record.schema.ttl_evidence(TtlOf::Result),
        message: format!(
            "the result expires {} after it was stored, not {}",
            duration::short(life),
            duration::short(result_ttl)
        ),
        advice: ADVICE.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::Record;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi, record, text};

    fn severity(record: &Record) -> Option<Severity> {
        check(&DiagnosisInput::of(record)).map(|found| found.severity)
    }

    /// Rule: a result that is about to expire gets no finding.
    #[test]
    fn silent_without_a_time_in_the_record_however_little_time_is_left() {
        for left in [1, 60_000, 86_400_000] {
            assert_eq!(severity(&chi(CHI_RESULT, TimeLeft::Millis(left))), None, "{left}");
        }
        assert_eq!(severity(&chi(CHI_RESULT, TimeLeft::NoExpiry)), None);
        assert_eq!(severity(&chi(CHI_LOCK, TimeLeft::Millis(1))), None);
    }

    #[test]
    fn a_time_in_the_record_tells_its_whole_life() {
        let stored_at = |written: u64, left| {
            let value = format!(r#"{{"done":true,"until":{written}}}"#);
            severity(&record("timed", &[(text(value), TimeLeft::Millis(left))]))
        };
        // Read at 1,000,000 ms: a second old.
        assert_eq!(stored_at(999_000, 3_600_000), Some(Severity::Warning), "an hour, not a day");
        assert_eq!(stored_at(999_000, 86_399_000), None, "a day");
        assert_eq!(stored_at(0, 85_400_000), None, "at the end of its day nothing is wrong");
    }
}
