//! `overdue`: a lock held longer than the operator thinks an operation can take.

use super::finding::{Case, Finding, Severity};
use crate::domain::duration;
use crate::domain::schema::State;

pub(super) const CODE: &str = "overdue";

pub(super) fn check(case: &Case<'_>) -> Option<Finding> {
    let threshold = case.thresholds.overdue_ms?;
    let age = case.record.age.filter(|_| case.record.state == State::InProgress)?;
    (age.millis > threshold).then(|| Finding {
        code: CODE,
        severity: Severity::Warning,
        message: format!(
            "the lock is held for {}, longer than {}: its worker is slow or dead",
            duration::short(age.millis),
            duration::short(threshold)
        ),
        advice: "look for the worker; if it is gone, `idemctl force-unlock` the key or wait for the TTL".to_owned(),
    })
}
