//! `leftover-lock`: a lock beside a result, from a crash between storing the one and deleting the other.

use super::finding::{Case, Finding, Severity};
use crate::domain::observation::Expiry;
use crate::domain::schema::State;

pub(super) const CODE: &str = "leftover-lock";

pub(super) fn check(case: &Case<'_>) -> Option<Finding> {
    let record = case.record;
    let lock = record.lock().filter(|_| record.state == State::Completed)?;
    let stays = if lock.expiry == Expiry::Never { " for ever" } else { "" };
    Some(Finding {
        code: CODE,
        severity: Severity::Warning,
        message: format!(
            "a lock stands beside the result{stays}: retries get the result, but once that expires before the lock they are turned away"
        ),
        advice: "`idemctl force-unlock` removes the lock and leaves the result".to_owned(),
    })
}
