//! `leftover-lock`: a lock beside a result, from a crash between storing the one and deleting the other.

use super::case::Case;
use super::finding::{Finding, FindingCode, Severity};
use crate::domain::record::{Evidence, Expiry};
use crate::domain::schema::State;

pub(super) fn check(case: &Case<'_>) -> Option<Finding> {
    let record = case.record;
    let lock = record.lock().filter(|_| record.state == State::Completed)?;
    let then = match (record.result()?.expiry, lock.expiry) {
        (Expiry::In(_), Expiry::Never) => "once the result expires they are turned away for ever",
        (Expiry::In(result), Expiry::In(lock)) if result < lock => "once the result expires they are turned away",
        (Expiry::Never, Expiry::Never) => "neither ever expires",
        _ => "the lock expires first",
    };
    Some(Finding {
        code: FindingCode::LeftoverLock,
        severity: Severity::Warning,
        evidence: Evidence::Known,
        message: format!(
            "a lock was left beside the result, by a crash between storing and unlocking: retries get the result, and {then}"
        ),
        advice: "`idemctl force-unlock` removes the lock and leaves the result".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::Content;
    use crate::domain::samples::{CHI_RESULT, chi, record, text};

    fn message(lock: (Content, Expiry), result: (Content, Expiry)) -> Option<String> {
        let record = record("event-consumer", &[lock, result]);
        check(&Case::of(&record)).map(|found| found.message)
    }

    #[test]
    fn fires_on_a_lock_beside_a_result_and_says_which_goes_first() {
        for (lock, result, then) in [
            (Expiry::In(9), Expiry::In(8), "once the result expires they are turned away"),
            (Expiry::In(9), Expiry::In(9), "the lock expires first"),
            (Expiry::In(9), Expiry::Never, "the lock expires first"),
            (Expiry::Never, Expiry::In(9), "once the result expires they are turned away for ever"),
            (Expiry::Never, Expiry::Never, "neither ever expires"),
        ] {
            let message = message((text("1"), lock), (text("1"), result)).expect("a finding");
            assert!(message.ends_with(then), "{lock:?} {result:?}: {message}");
        }
    }

    #[test]
    fn is_silent_on_either_alone_and_where_both_are_one_key() {
        let nothing = || (Content::Absent, Expiry::In(0));
        assert_eq!(message((text("1"), Expiry::In(9)), nothing()), None);
        assert_eq!(message(nothing(), (text("1"), Expiry::In(9))), None);
        assert_eq!(check(&Case::of(&chi(CHI_RESULT, Expiry::In(9)))), None);
    }
}
