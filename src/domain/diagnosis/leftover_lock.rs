//! `leftover-lock`: a lock beside a result. A crash between storing the result and deleting the
//! lock leaves one, and so does a worker that checked for the result before it was stored.

use super::finding::{Finding, FindingCode, Severity};
use super::input::DiagnosisInput;
use crate::domain::record::{Evidence, Reading};

pub(super) fn check(input: &DiagnosisInput<'_>) -> Option<Finding> {
    let record = input.record;
    if !record.state.is_result() {
        return None;
    }
    record.result()?;
    record.lock()?;
    // Another program uses the lock's Redis key.
    if matches!(record.readings[record.schema.lock_key_index()], Reading::WrongType(_)) {
        return None;
    }
    Some(Finding {
        code: FindingCode::LeftoverLock,
        severity: Severity::Warning,
        evidence: Evidence::Known,
        message: "a lock exists beside the result, left by a crash between the two steps or taken \
            by a late worker"
            .to_owned(),
        advice: "`idemctl force-unlock KEY` removes the lock and leaves the result".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::{Content, TimeLeft};
    use crate::domain::samples::{CHI_RESULT, chi, record, text};

    fn message(lock: (Content, TimeLeft), result: (Content, TimeLeft)) -> Option<String> {
        let record = record("event-consumer", &[lock, result]);
        check(&DiagnosisInput::of(&record)).map(|found| found.message)
    }

    #[test]
    fn fires_on_a_lock_beside_a_result() {
        let beside = |lock, result| message((text("1"), lock), (text("1"), result));
        assert!(beside(TimeLeft::Millis(9), TimeLeft::Millis(8)).is_some());
        assert!(beside(TimeLeft::NoExpiry, TimeLeft::NoExpiry).is_some());
    }

    #[test]
    fn is_silent_on_either_alone_and_where_both_are_one_key() {
        let nothing = || (Content::Absent, TimeLeft::Millis(0));
        assert_eq!(message((text("1"), TimeLeft::Millis(9)), nothing()), None);
        assert_eq!(message(nothing(), (text("1"), TimeLeft::Millis(9))), None);
        assert_eq!(check(&DiagnosisInput::of(&chi(CHI_RESULT, TimeLeft::Millis(9)))), None);
    }
}
