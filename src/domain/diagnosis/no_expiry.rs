//! `no-expiry`: a lock without a TTL blocks its key permanently, unless the service never gives its
//! locks a TTL.

use super::finding::{Finding, FindingCode, Severity};
use super::input::DiagnosisInput;
use crate::domain::record::{Evidence, Reading, TimeLeft};
use crate::domain::schema::{State, TtlOf};
use crate::domain::step::Answer;

pub(super) fn check(input: &DiagnosisInput<'_>) -> Option<Finding> {
    let next = &input.record.next_request;
    // A service that never gives its locks a TTL does so by design.
    input.record.schema.ttl(TtlOf::Lock)?;
    let then = match (input.record.state, next.answer) {
        (State::Absent | State::Released, _) => return None,
        (State::InProgress, _) if next.gives_ttl => " until a retry gives it a TTL",
        // The next request takes the lock over, so that it rejects no request.
        (State::InProgress, Answer::Execute) => return None,
        (_, Answer::Conflict) => ", so every retry is rejected indefinitely",
        _ => "",
    };
    input.record.lock()?;
    // An unreadable value at the lock's own Redis key, or one of another program, is no lock.
    let lock = input.record.schema.lock_key_index();
    if input.record.state == State::Unreadable && !input.record.has_readable_lock()
        || matches!(input.record.readings[lock], Reading::WrongType(_))
    {
        return None;
    }
    // A time in its value ends a lock, too, although its Redis key never expires.
    if input.record.end_of(lock) != Some(TimeLeft::NoExpiry) {
        return None;
    }
    Some(Finding {
        code: FindingCode::NoExpiry,
        severity: if next.gives_ttl { Severity::Warning } else { Severity::Error },
        evidence: Evidence::Known,
        message: format!("the lock never expires{then}"),
        advice: input.unlock_advice(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi, record, text};

    #[test]
    fn fires_on_a_lock_without_ttl_also_beside_a_result() {
        let beside =
            |lock, result| record("event-consumer", &[(text("1"), lock), (text("1"), result)]);
        for (record, fires) in [
            (chi(CHI_LOCK, TimeLeft::NoExpiry), true),
            (beside(TimeLeft::NoExpiry, TimeLeft::Millis(9)), true),
            (beside(TimeLeft::NoExpiry, TimeLeft::NoExpiry), true),
            (beside(TimeLeft::Millis(9), TimeLeft::NoExpiry), false),
            (chi(CHI_LOCK, TimeLeft::Millis(1)), false),
            (chi(CHI_RESULT, TimeLeft::NoExpiry), false),
        ] {
            assert_eq!(check(&DiagnosisInput::of(&record)).is_some(), fires, "{record:?}");
        }
    }
}
