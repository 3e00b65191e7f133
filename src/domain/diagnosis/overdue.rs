//! `overdue`: a lock that is held longer than the operator expects an operation to take.

use super::finding::{Finding, FindingCode, Severity};
use super::input::DiagnosisInput;
use crate::domain::duration;
use crate::domain::schema::State;

pub(super) fn check(input: &DiagnosisInput<'_>) -> Option<Finding> {
    let threshold = input.thresholds.overdue_ms?;
    // The age of a completed record is that of its result.
    if input.record.state != State::InProgress {
        return None;
    }
    let age = input.record.age?;
    if age.millis <= threshold {
        return None;
    }
    Some(Finding {
        code: FindingCode::Overdue,
        severity: Severity::Warning,
        evidence: age.evidence,
        message: format!(
            "the lock has been held for {}, longer than {}, so its worker is slow or dead",
            duration::short(age.millis),
            duration::short(threshold)
        ),
        advice: format!("look for the worker; {}", input.unlock_advice()),
    })
}

#[cfg(test)]
mod tests {
    use super::super::input::Thresholds;
    use super::*;
    use crate::domain::record::TimeLeft;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi};

    #[test]
    fn fires_on_a_lock_older_than_the_threshold_and_is_silent_without_an_age_and_on_a_result() {
        for (value, expiry, overdue_ms, fires) in [
            (CHI_LOCK, TimeLeft::Millis(49_999), Some(10_000), true),
            (CHI_LOCK, TimeLeft::Millis(50_000), Some(10_000), false),
            (CHI_LOCK, TimeLeft::Millis(1), None, false),
            (CHI_LOCK, TimeLeft::NoExpiry, Some(1), false),
            (CHI_RESULT, TimeLeft::Millis(1), Some(1), false),
        ] {
            let thresholds = Thresholds { overdue_ms, ..Thresholds::default() };
            let found = check(&DiagnosisInput {
                thresholds: &thresholds,
                ..DiagnosisInput::of(&chi(value, expiry))
            });
            assert_eq!(found.is_some(), fires, "{value} {expiry:?} {overdue_ms:?}");
        }
    }
}
