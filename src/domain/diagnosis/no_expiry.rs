//! `no-expiry`: a lock without TTL holds its key for ever.

use super::case::Case;
use super::finding::{Finding, FindingCode, Severity};
use crate::domain::record::evidence::Evidence;
use crate::domain::record::observation::Expiry;
use crate::domain::schema::State;

pub(super) fn check(case: &Case<'_>) -> Option<Finding> {
    let then = match case.record.state {
        State::InProgress => "every retry is turned away for ever",
        State::Completed => "once the result beside it is gone every retry is turned away for ever",
        State::Absent | State::Unreadable => return None,
    };
    (case.record.lock()?.expiry == Expiry::Never).then(|| Finding {
        code: FindingCode::NoExpiry,
        severity: Severity::Error,
        evidence: Evidence::Known,
        message: format!("the lock has no expiry: {then}"),
        advice: "make sure that no worker is still at it, then `idemctl force-unlock` the key".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::case::Thresholds;
    use super::*;
    use crate::domain::record::Record;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi, record, text};

    fn fires(record: &Record) -> bool {
        check(&Case { record, thresholds: &Thresholds::default(), foreign: None }).is_some()
    }

    #[test]
    fn fires_on_a_lock_without_ttl() {
        assert!(fires(&chi(CHI_LOCK, Expiry::Never)));
    }

    #[test]
    fn fires_on_a_lock_without_ttl_beside_a_result() {
        let beside = |lock, result| fires(&record("event-consumer", &[(text("1"), lock), (text("1"), result)]));
        assert!(beside(Expiry::Never, Expiry::In(9)) && beside(Expiry::Never, Expiry::Never));
        assert!(!beside(Expiry::In(9), Expiry::Never));
    }

    #[test]
    fn is_silent_on_a_lock_with_ttl_and_on_a_result_without() {
        assert!(!fires(&chi(CHI_LOCK, Expiry::In(1))));
        assert!(!fires(&chi(CHI_RESULT, Expiry::Never)));
    }
}
