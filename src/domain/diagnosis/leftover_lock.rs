//! `leftover-lock`: a lock beside a result, from a crash between storing the one and deleting the other.

use super::finding::{Case, Finding, Severity};
use crate::domain::observation::Expiry;
use crate::domain::schema::State;

pub(super) const CODE: &str = "leftover-lock";

pub(super) fn check(case: &Case<'_>) -> Option<Finding> {
    let record = case.record;
    let lock = record.lock().filter(|_| record.state == State::Completed)?;
    let then = match (record.result()?.expiry, lock.expiry) {
        (Expiry::In(_), Expiry::Never) => "once the result expires they are turned away for ever",
        (Expiry::In(result), Expiry::In(lock)) if result < lock => "once the result expires they are turned away",
        _ => "the lock expires first",
    };
    Some(Finding {
        code: CODE,
        severity: Severity::Warning,
        message: format!(
            "a lock was left beside the result, by a crash between storing and unlocking: retries get the result, and {then}"
        ),
        advice: "`idemctl force-unlock` removes the lock and leaves the result".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::finding::Thresholds;
    use super::*;
    use crate::domain::observation::Content;
    use crate::domain::samples::{CHI_RESULT, chi, record, text};

    fn message(lock: (Content, Expiry), result: (Content, Expiry)) -> Option<String> {
        let record = record("event-consumer", &[lock, result]);
        check(&Case { record: &record, thresholds: &Thresholds::default(), foreign: None }).map(|found| found.message)
    }

    #[test]
    fn fires_on_a_lock_beside_a_result() {
        let result = (text("1"), Expiry::In(80_000_000));
        assert!(!message((text("1"), Expiry::In(9)), result.clone()).expect("a finding").contains("for ever"));
        assert!(message((text("1"), Expiry::Never), result).expect("a finding").contains("for ever"));
    }

    #[test]
    fn is_silent_on_either_alone_and_where_both_are_one_key() {
        let nothing = || (Content::Absent, Expiry::In(0));
        assert_eq!(message((text("1"), Expiry::In(9)), nothing()), None);
        assert_eq!(message(nothing(), (text("1"), Expiry::In(9))), None);
        let one_key = chi(CHI_RESULT, Expiry::In(9));
        assert!(check(&Case { record: &one_key, thresholds: &Thresholds::default(), foreign: None }).is_none());
    }
}
