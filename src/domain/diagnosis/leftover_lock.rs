//! `leftover-lock`: a lock beside a result, from a crash between storing the one and deleting the other.

use super::finding::{Case, Finding, Severity};
use crate::domain::observation::Expiry;
use crate::domain::schema::State;

pub(super) const CODE: &str = "leftover-lock";

pub(super) fn check(case: &Case<'_>) -> Option<Finding> {
    let record = case.record;
    let lock = record.lock().filter(|_| record.state == State::Completed)?;
    let result_goes_first = match (record.result()?.expiry, lock.expiry) {
        (Expiry::In(result), Expiry::In(lock)) => result < lock,
        (Expiry::In(_), Expiry::Never) => true,
        (Expiry::Never, _) => false,
    };
    let then =
        if result_goes_first { "once the result expires they are turned away" } else { "the lock expires first" };
    Some(Finding {
        code: CODE,
        severity: Severity::Warning,
        message: format!(
            "a lock was left beside the result, by a crash between storing and unlocking: retries get the result, and {then}"
        ),
        advice: "`idemctl force-unlock` removes the lock and leaves the result".to_owned(),
    })
}
