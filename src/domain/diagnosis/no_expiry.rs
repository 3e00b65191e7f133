//! `no-expiry`: a lock without TTL holds its key for ever.

use super::finding::{Case, Finding, Severity};
use crate::domain::observation::Expiry;
use crate::domain::schema::State;

pub(super) const CODE: &str = "no-expiry";

pub(super) fn check(case: &Case<'_>) -> Option<Finding> {
    let lock = case.record.lock().filter(|_| case.record.state == State::InProgress)?;
    (lock.expiry == Expiry::Never).then(|| Finding {
        code: CODE,
        severity: Severity::Error,
        message: "the lock has no expiry: every retry is turned away for ever".to_owned(),
        advice: "make sure that no worker is still at it, then `idemctl force-unlock` the key".to_owned(),
    })
}
