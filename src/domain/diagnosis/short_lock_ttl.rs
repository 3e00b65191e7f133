//! `short-lock-ttl`: a lock whose whole life is less than half of the lock TTL that the deployment
//! states, so that another request may execute before its worker is done.

use super::finding::{Finding, FindingCode, Severity};
use super::input::DiagnosisInput;
use crate::domain::duration;
use crate::domain::record::{Evidence, age};
use crate::domain::schema::{State, TtlOf};

pub(super) fn check(input: &DiagnosisInput<'_>) -> Option<Finding> {
    let record = input.record;
    let is_set_by_service = !record.is_extended && !record.lock_contains_expiry();
    if record.state != State::InProgress || !is_set_by_service {
        return None;
    }
    if !record.schema.states_ttl(TtlOf::Lock) {
        return None;
    }
    let stated = age::millis(record.schema.ttl(TtlOf::Lock)?);
    let left = record.lock()?.time_left.millis()?;
    // Without a time in the value, a lock with little time left may simply be old. A time ahead of
    // the server's clock counts as an age of zero, and shows nothing either.
    let age = record.age?;
    if !age.is_of_record() || age.millis == 0 {
        return None;
    }
    // A renewal makes this longer, never shorter.
    let life = age.millis.saturating_add(left);
    if life >= stated / 2 {
        return None;
    }
    Some(Finding {
        code: FindingCode::ShortLockTtl,
        severity: Severity::Warning,
        evidence: Evidence::Stated,
        message: format!(
            "the lock expires {} after the time in its value, but this deployment's lock TTL is {}",
            duration::short(life),
            duration::short(stated)
        ),
        advice: "check which TTL the service passes: a library's own default may replace it, or \
            seconds may be passed as milliseconds"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::record::{Record, TimeLeft};
    use crate::domain::samples::{record, text};

    /// Read at 1,000,000 ms, with a stated lock TTL of a minute.
    fn fires(at: &str, left: TimeLeft, is_stated: bool) -> bool {
        let value = format!(r#"{{"done":false{at}}}"#);
        let mut record = record("timed", &[(text(value), left)]);
        if is_stated {
            Arc::make_mut(&mut record.schema).stated = vec![TtlOf::Lock];
        }
        let record = Record::new(record.schema, record.key, record.seen, record.readings);
        check(&DiagnosisInput::of(&record)).is_some()
    }

    #[test]
    fn fires_only_if_the_time_in_the_value_and_a_stated_ttl_show_it() {
        let left = TimeLeft::Millis;
        for (at, left, is_stated, expected) in [
            (r#","at":990000"#, left(19_999), true, true),
            (r#","at":990000"#, left(20_000), true, false),
            (r#","at":990000"#, left(1), false, false),
            (r#","at":990000"#, TimeLeft::NoExpiry, true, false),
            (r#","at":1000001"#, left(1), true, false),
            ("", left(1), true, false),
            // Renewed again and again.
            (r#","at":1"#, left(20_000), true, false),
        ] {
            assert_eq!(fires(at, left, is_stated), expected, "{at} {left:?} {is_stated}");
        }
    }
}
