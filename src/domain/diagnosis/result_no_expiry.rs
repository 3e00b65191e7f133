//! `result-no-expiry`: a result that is never forgotten.

use super::case::Case;
use super::finding::{Finding, FindingCode, Severity};
use crate::domain::record::evidence::Evidence;
use crate::domain::record::observation::Expiry;
use crate::domain::schema::State;

pub(super) fn check(case: &Case<'_>) -> Option<Finding> {
    let result = case.record.result().filter(|_| case.record.state == State::Completed)?;
    (result.expiry == Expiry::Never).then(|| Finding {
        code: FindingCode::ResultNoExpiry,
        severity: Severity::Warning,
        evidence: Evidence::Known,
        message: "the result has no expiry: it is replayed for ever and its memory is never freed".to_owned(),
        advice: "give it the schema's result TTL, and find the code that stores results without one".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::case::Thresholds;
    use super::*;
    use crate::domain::record::Record;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi};

    fn fires(record: &Record) -> bool {
        check(&Case { record, thresholds: &Thresholds::default(), foreign: None }).is_some()
    }

    #[test]
    fn fires_on_a_result_without_ttl() {
        assert!(fires(&chi(CHI_RESULT, Expiry::Never)));
    }

    #[test]
    fn is_silent_on_a_result_with_ttl_and_on_a_lock_without() {
        assert!(!fires(&chi(CHI_RESULT, Expiry::In(1))));
        assert!(!fires(&chi(CHI_LOCK, Expiry::Never)));
    }
}
