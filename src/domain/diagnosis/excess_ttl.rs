//! `excess-ttl`: a lock that stays longer than the schema's lock TTL allows.

use super::finding::{Finding, FindingCode, Severity};
use super::input::DiagnosisInput;
use crate::domain::duration;
use crate::domain::record::{Evidence, TimeLeft, age};
use crate::domain::schema::{State, TtlOf};

const STATE_THE_TTL: &str = "if your service uses a longer lock TTL, pass --lock-ttl; otherwise \
    run `idemctl force-unlock KEY`";

/// No service gives a lock whose TTL is shorter than this so much time: a year, in milliseconds.
pub(crate) const YEAR_MS: u64 = 365 * 86_400_000;

pub(super) fn check(input: &DiagnosisInput<'_>) -> Option<Finding> {
    let schema = &input.record.schema;
    // An operator wants an extended lock to stay so long.
    if input.record.state != State::InProgress || input.record.is_extended {
        return None;
    }
    input.record.lock()?;
    // A time in the value ends the lock, whatever TTL its Redis key has.
    let Some(TimeLeft::Millis(left)) = input.record.end_of(schema.lock_key_index()) else {
        return None;
    };
    let allowed = age::millis(input.record.schema.ttl(TtlOf::Lock)?);
    if left <= allowed.saturating_add(age::TTL_TOLERANCE_MS) {
        return None;
    }
    let cause = possible_cause(left, allowed, age::millis(schema.result_ttl));
    let stated = input.record.schema.ttl_evidence(TtlOf::Lock);
    let evidence = if left > YEAR_MS && allowed < YEAR_MS { Evidence::Known } else { stated };
    // Each worker chose the time in its value, so that a default proves nothing.
    if input.record.lock_contains_expiry() && evidence == Evidence::Estimated {
        return None;
    }
    let whose = match stated {
        Evidence::Estimated => "the schema's default lock TTL is",
        Evidence::Stated | Evidence::Known => "this deployment's lock TTL is",
    };
    let (severity, advice) = match evidence {
        // A default may be wrong for this deployment, so the lock may be as intended.
        Evidence::Estimated => (Severity::Warning, STATE_THE_TTL.to_owned()),
        Evidence::Stated | Evidence::Known => (Severity::Error, input.unlock_advice()),
    };
    let then = match input.record.schema.begin {
        Some(_) => ". If its worker died, retries are rejected until then",
        None => "",
    };
    Some(Finding {
        code: FindingCode::ExcessTtl,
        severity,
        evidence,
        message: format!(
            "the lock expires in {}, but {whose} {}{then} ({cause})",
            duration::short(left),
            duration::short(allowed),
        ),
        advice,
    })
}

/// A guess why a lock has this much time left, all in milliseconds.
fn possible_cause(left: u64, allowed: u64, result_ttl: u64) -> &'static str {
    // A TTL in milliseconds that is passed to EX is a thousand times too long. The lock may already
    // have lived half of it. Rounding may add a hundredth.
    let thousandfold = allowed.saturating_mul(500)..=allowed.saturating_mul(1_010);
    let exceeds_results = left > result_ttl.saturating_add(age::TTL_TOLERANCE_MS);
    if thousandfold.contains(&left) || exceeds_results || left > YEAR_MS {
        "possible cause: a TTL in milliseconds was passed as seconds"
    } else if left > result_ttl / 2 {
        "possible cause: the lock was given the result TTL"
    } else {
        "possible cause: your service uses a longer lock TTL, or renewed the lock"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi};

    fn message(value: &str, time_left: TimeLeft) -> Option<String> {
        check(&DiagnosisInput::of(&chi(value, time_left))).map(|found| found.message)
    }

    #[test]
    fn fires_above_the_schemas_lock_ttl_and_guesses_why() {
        for (left, cause) in [
            (61_001, "renewed"),
            (80_000_000, "the lock was given the result TTL"),
            (59_000_000, "a TTL in milliseconds was passed as seconds"),
            (60_600_000, "a TTL in milliseconds was passed as seconds"),
            (60_600_001, "the lock was given the result TTL"),
            (600_000_000, "a TTL in milliseconds was passed as seconds"),
        ] {
            let message = message(CHI_LOCK, TimeLeft::Millis(left)).expect("a finding");
            assert!(message.contains(cause), "{left}: {message}");
        }
    }

    /// Rule: what a lock TTL below a year never allows needs no stated TTL.
    #[test]
    fn more_than_a_year_is_known_under_any_setting() {
        for (left, evidence, severity) in [
            (YEAR_MS, Evidence::Estimated, Severity::Warning),
            (YEAR_MS + 1, Evidence::Known, Severity::Error),
        ] {
            let lock = chi(CHI_LOCK, TimeLeft::Millis(left));
            let found = check(&DiagnosisInput::of(&lock)).expect("a finding");
            assert_eq!((found.evidence, found.severity), (evidence, severity), "{left}");
            assert!(found.message.contains("the schema's default lock TTL is 1m"));
        }
    }

    /// Rule: a lock of more than a year was not renewed that often, also if a schema has no results.
    #[test]
    fn more_than_a_year_has_its_own_cause() {
        let cause = possible_cause(YEAR_MS + 1, 300_000, u64::MAX);
        assert!(cause.contains("a TTL in milliseconds was passed as seconds"), "{cause}");
    }

    #[test]
    fn is_silent_within_the_lock_ttl_without_ttl_and_on_a_result() {
        assert_eq!(message(CHI_LOCK, TimeLeft::Millis(61_000)), None);
        assert_eq!(message(CHI_LOCK, TimeLeft::NoExpiry), None);
        assert_eq!(message(CHI_RESULT, TimeLeft::Millis(86_400_000)), None);
    }
}
