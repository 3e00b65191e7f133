//! `short-result-ttl`: a result that goes sooner than retries may come.

use super::case::DiagnosisInput;
use super::finding::{Finding, FindingCode, Severity};
use crate::domain::duration;
use crate::domain::record::{AgeSource, Expiry, age};
use crate::domain::schema::{State, TtlOf};

const ADVICE: &str = "compare with what the service sets: a result should outlive the last retry or redelivery, 24h to 72h";

pub(super) fn check(case: &DiagnosisInput<'_>) -> Option<Finding> {
    let record = case.record;
    let Expiry::In(left) = record.result().filter(|_| record.state == State::Completed)?.expiry
    else {
        return None;
    };
    let result_ttl = age::millis(record.schema.ttl(TtlOf::Result)?);
    let written = record.age.filter(|age| age.source == AgeSource::Record);
    if let Some(life) = written.map(|age| age.millis.saturating_add(left)) {
        let evidence = record.schema.ttl_evidence(TtlOf::Result);
        // Within a tenth of the schema's TTL the deployment has merely chosen its own.
        return (life < result_ttl - result_ttl / 10).then(|| Finding {
            code: FindingCode::ShortResultTtl,
            severity: Severity::Warning,
            evidence,
            message: format!(
                "the result lives {}, not {}: a retry after that executes again",
                duration::short(life),
                duration::short(result_ttl)
            ),
            advice: ADVICE.to_owned(),
        });
    }
    let evidence = record.schema.ttl_evidence(TtlOf::Lock);
    // Where both live equally long a lock's TTL on a result is none too short.
    let lock_ttl = age::millis(record.schema.ttl(TtlOf::Lock)?);
    if lock_ttl >= result_ttl {
        return None;
    }
    // Without a time in the record its end of life and a lock's TTL on a result look the same: say so.
    (left <= lock_ttl).then(|| Finding {
        code: FindingCode::ShortResultTtl,
        severity: Severity::Info,
        evidence,
        message: format!(
            "the result goes in {}, within one lock TTL: at the end of its life, or stored with the lock's TTL; a retry after that executes again",
            duration::short(left)
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

    #[test]
    fn fires_within_one_lock_ttl_of_the_end_and_is_silent_before_that_without_ttl_and_on_a_lock() {
        assert_eq!(severity(&chi(CHI_RESULT, Expiry::In(60_000))), Some(Severity::Info));
        assert_eq!(severity(&chi(CHI_RESULT, Expiry::In(60_001))), None);
        assert_eq!(severity(&chi(CHI_RESULT, Expiry::Never)), None);
        assert_eq!(severity(&chi(CHI_LOCK, Expiry::In(1))), None);
    }

    #[test]
    fn a_time_in_the_record_tells_its_whole_life() {
        let stored_at = |written: u64, left| {
            let value = format!(r#"{{"done":true,"until":{written}}}"#);
            severity(&record("timed", &[(text(value), Expiry::In(left))]))
        };
        // Read at 1,000,000 ms: a second old.
        assert_eq!(stored_at(999_000, 3_600_000), Some(Severity::Warning), "an hour, not a day");
        assert_eq!(stored_at(999_000, 86_399_000), None, "a day");
        assert_eq!(stored_at(0, 85_400_000), None, "at the end of its day nothing is wrong");
    }
}
