//! `result-no-expiry`: a result that never expires.

use super::finding::{Finding, FindingCode, Severity};
use super::input::DiagnosisInput;
use crate::domain::record::{Evidence, Expiry};
use crate::domain::schema::TtlOf;
use crate::domain::step::Answer;

pub(super) fn check(input: &DiagnosisInput<'_>) -> Option<Finding> {
    // A service that never gives its results a TTL does so by design.
    input.record.ttl(TtlOf::Result)?;
    if !input.record.state.is_result() {
        return None;
    }
    input.record.result()?;
    // A time in its value ends a result, too, although its Redis key never expires.
    if input.record.end_of(input.record.schema.result_key_index()) != Some(Expiry::Never) {
        return None;
    }
    let then = match input.record.next_request.answer {
        Answer::Replay => "it is replayed indefinitely and its memory is never freed",
        _ => "its memory is never freed",
    };
    Some(Finding {
        code: FindingCode::ResultNoExpiry,
        severity: Severity::Warning,
        evidence: Evidence::Known,
        message: format!("the result never expires, so {then}"),
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
            (CHI_RESULT, Expiry::Never, true),
            (CHI_RESULT, Expiry::In(1), false),
            (CHI_LOCK, Expiry::Never, false),
        ] {
            assert_eq!(
                check(&DiagnosisInput::of(&chi(value, expiry))).is_some(),
                fires,
                "{value} {expiry:?}"
            );
        }
    }
}
