//! `leftover-lock`: a lock beside a result. A crash between storing the result and deleting the
//! lock leaves one, and so does a worker that checked for the result before it was stored.

use super::finding::{Finding, FindingCode, Severity};
use super::input::DiagnosisInput;
use crate::domain::record::{Evidence, Reading, TimeLeft};
use crate::domain::step::{Answer, fencing};

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
    let result = record.end_of(record.schema.result_key_index());
    let lock = record.end_of(record.schema.lock_key_index());
    let retries = match record.next_request.answer {
        Answer::Replay => format!("Retries get the result, and {}", which_goes_first(result, lock)),
        // The service looks at its lock before the result.
        Answer::Conflict | Answer::Fail => match lock {
            Some(TimeLeft::NoExpiry) => "It never expires, and rejects every retry".to_owned(),
            _ => "It rejects every retry until it expires".to_owned(),
        },
        Answer::Execute => "Retries execute the operation".to_owned(),
        Answer::Unknown => match record.next_request.unknown_because {
            Some(_) => "It is unknown what retries get".to_owned(),
            None => "The schema does not say what retries get".to_owned(),
        },
    };
    // A late worker can take a lock beside a result only if the service's steps permit it.
    let whose = if fencing::keeps_locks_from_results(&record.schema) {
        "left by a crash between storing and unlocking"
    } else {
        "left by a crash between storing and unlocking, or taken by a late worker that may still \
        be running"
    };
    Some(Finding {
        code: FindingCode::LeftoverLock,
        severity: Severity::Warning,
        evidence: Evidence::Known,
        message: format!("a lock exists beside the result, {whose}. {retries}"),
        advice: "`idemctl force-unlock KEY` removes the lock and leaves the result".to_owned(),
    })
}

/// What happens to retries that get the result, once the lock or the result expires.
fn which_goes_first(result: Option<TimeLeft>, lock: Option<TimeLeft>) -> &'static str {
    let (Some(result), Some(lock)) = (result, lock) else {
        return "it is unknown which of the two expires first";
    };
    match (result, lock) {
        (TimeLeft::Millis(_), TimeLeft::NoExpiry) => {
            "once the result expires they are rejected indefinitely"
        }
        (TimeLeft::Millis(result), TimeLeft::Millis(lock)) if result < lock => {
            "once the result expires they are rejected"
        }
        (TimeLeft::NoExpiry, TimeLeft::NoExpiry) => "neither ever expires",
        _ => "the lock expires first",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::Content;
    use crate::domain::samples::{CHI_RESULT, chi, record, text};

    fn message(lock: (Content, TimeLeft), result: (Content, TimeLeft)) -> Option<String> {
        let record = record("event-consumer", &[lock, result]);
        check(&DiagnosisInput::of(&record)).map(|found| found.message)
    }

    #[test]
    fn fires_on_a_lock_beside_a_result_and_says_which_goes_first() {
        for (lock, result, then) in [
            (TimeLeft::Millis(9), TimeLeft::Millis(8), "once the result expires they are rejected"),
            (TimeLeft::Millis(9), TimeLeft::Millis(9), "the lock expires first"),
            (TimeLeft::Millis(9), TimeLeft::NoExpiry, "the lock expires first"),
            (
                TimeLeft::NoExpiry,
                TimeLeft::Millis(9),
                "once the result expires they are rejected indefinitely",
            ),
            (TimeLeft::NoExpiry, TimeLeft::NoExpiry, "neither ever expires"),
        ] {
            let message = message((text("1"), lock), (text("1"), result)).expect("a finding");
            assert!(message.ends_with(then), "{lock:?} {result:?}: {message}");
        }
    }

    /// Rule: where a live worker may be behind the lock, no crash is blamed for the lock.
    #[test]
    fn says_that_a_worker_may_be_at_work_only_where_one_may_be() {
        let of_consumer =
            message((text("1"), TimeLeft::Millis(9)), (text("1"), TimeLeft::Millis(9))).unwrap();
        assert!(of_consumer.contains("may still be running"), "{of_consumer}");
        let result = text(r#"{"statusCode":200,"body":"x"}"#);
        let driven = record(
            "event-driven",
            &[(text("w"), TimeLeft::Millis(9)), (result, TimeLeft::Millis(9))],
        );
        let of_driven = check(&DiagnosisInput::of(&driven)).map(|found| found.message).unwrap();
        assert!(!of_driven.contains("may still be running"), "{of_driven}");
    }

    #[test]
    fn is_silent_on_either_alone_and_where_both_are_one_key() {
        let nothing = || (Content::Absent, TimeLeft::Millis(0));
        assert_eq!(message((text("1"), TimeLeft::Millis(9)), nothing()), None);
        assert_eq!(message(nothing(), (text("1"), TimeLeft::Millis(9))), None);
        assert_eq!(check(&DiagnosisInput::of(&chi(CHI_RESULT, TimeLeft::Millis(9)))), None);
    }
}
