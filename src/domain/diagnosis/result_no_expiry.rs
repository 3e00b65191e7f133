//! `result-no-expiry`: a result whose Redis key never expires, so that its memory is never freed. That
//! is so whether or not the result ends by a time in its value.

use super::finding::{Finding, FindingCode, Severity};
use super::input::DiagnosisInput;
use crate::domain::record::{Evidence, TimeLeft};
use crate::domain::schema::TtlOf;

pub(super) fn check(input: &DiagnosisInput<'_>) -> Option<Finding> {
    // A service that never gives its results a TTL does so by design.
    input.record.schema.ttl(TtlOf::Result)?;
    if !input.record.state.is_result() {
        return None;
    }
    if input.record.result()?.time_left != TimeLeft::NoExpiry {
        return None;
    }
    Some(Finding {
        code: FindingCode::ResultNoExpiry,
        severity: Severity::Warning,
        evidence: Evidence::Known,
        message: "the Redis key of the result never expires, so its memory is never freed"
            .to_owned(),
        advice:
            "set the TTL of such results on it, and find the code that stores results without a TTL"
                .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi};

    #[test]
    fn fires_on_a_result_without_ttl_alone() {
        for (value, expiry, fires) in [
            (CHI_RESULT, TimeLeft::NoExpiry, true),
            (CHI_RESULT, TimeLeft::Millis(1), false),
            (CHI_LOCK, TimeLeft::NoExpiry, false),
        ] {
            assert_eq!(
                check(&DiagnosisInput::of(&chi(value, expiry))).is_some(),
                fires,
                "{value} {expiry:?}"
            );
        }
    }
}
