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
    let mut cause = "";
    if may_be_milliseconds(left, allowed) {
        cause = "; was a TTL in milliseconds passed as seconds?";
    } else if left > age::millis(schema.result_ttl) / 2 {
        cause = "; was the lock given the result TTL?";
    }
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
    Some(Finding {
        code: FindingCode::ExcessTtl,
        severity,
        evidence,
        message: format!(
            "the lock expires in {}, but {whose} {}{cause}",
            duration::short(left),
            duration::short(allowed),
        ),
        advice,
    })
}

/// True if a TTL in milliseconds may have been passed to EX, which makes a lock's TTL a thousand
/// times too long. The lock may already have lived half of it. Rounding may add a hundredth.
fn may_be_milliseconds(left: u64, allowed: u64) -> bool {
    let thousandfold = allowed.saturating_mul(500)..=allowed.saturating_mul(1_010);
    thousandfold.contains(&left) || left > YEAR_MS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi};

    fn message(value: &str, time_left: TimeLeft) -> Option<String> {
        check(&DiagnosisInput::of(&chi(value, time_left))).map(|found| found.message)
    }

    #[test]
    fn fires_above_the_schemas_lock_ttl_and_names_the_units() {
        for (left, names_units) in [
            (61_001, false),
            (80_000_000, false),
            (59_000_000, true),
            (60_600_000, true),
            (60_600_001, false),
            (YEAR_MS + 1, true),
        ] {
            let message = message(CHI_LOCK, TimeLeft::Millis(left)).expect("a finding");
            assert_eq!(message.contains("milliseconds"), names_units, "{left}: {message}");
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

    #[test]
    fn is_silent_within_the_lock_ttl_without_ttl_and_on_a_result() {
        assert_eq!(message(CHI_LOCK, TimeLeft::Millis(61_000)), None);
        assert_eq!(message(CHI_LOCK, TimeLeft::NoExpiry), None);
        assert_eq!(message(CHI_RESULT, TimeLeft::Millis(86_400_000)), None);
    }
}
