//! `excess-ttl`: a lock that stays longer than the schema's lock TTL allows.

use super::finding::{Finding, FindingCode, Severity};
use super::input::DiagnosisInput;
use crate::domain::duration;
use crate::domain::record::{Evidence, Expiry, age};
use crate::domain::schema::{State, TtlOf};

const STATE_THE_TTL: &str = "if your service uses a longer lock TTL, pass --lock-ttl; otherwise run \
    `idemctl force-unlock KEY`";

pub(super) fn check(input: &DiagnosisInput<'_>) -> Option<Finding> {
    let lock = input.record.lock().filter(|_| input.record.state == State::InProgress)?;
    if input.record.has_lapsing_lock() {
        return None;
    }
    let Expiry::In(left) = lock.expiry else { return None };
    let allowed = age::millis(input.record.schema.ttl(TtlOf::Lock)?);
    let result_ttl = age::millis(input.record.schema.result_ttl);
    // A TTL in milliseconds that is passed to EX is a thousand times too long. The lock may already
    // have lived half of it.
    let thousandfold = allowed.saturating_mul(500)..=allowed.saturating_mul(1_000);
    let cause = if thousandfold.contains(&left)
        || left > result_ttl.saturating_add(age::TTL_TOLERANCE_MS)
    {
        "possible cause: a TTL in milliseconds was passed as seconds"
    } else if left > result_ttl / 2 {
        "possible cause: the lock was given the result TTL"
    } else {
        "possible cause: your service uses a longer lock TTL, or renewed the lock"
    };
    let evidence = input.record.schema.ttl_evidence(TtlOf::Lock);
    let (severity, whose, advice) = match evidence {
        Evidence::Estimated => {
            (Severity::Warning, "the schema's default lock TTL is", STATE_THE_TTL.to_owned())
        }
        Evidence::Stated | Evidence::Known => {
            (Severity::Error, "this deployment's lock TTL is", input.unlock_advice())
        }
    };
    (left > allowed.saturating_add(age::TTL_TOLERANCE_MS)).then(|| Finding {
        code: FindingCode::ExcessTtl,
        severity,
        evidence,
        message: format!(
            "the lock expires in {}, but {whose} {}. If its worker died, retries are rejected until \
            then ({cause})",
            duration::short(left),
            duration::short(allowed),
        ),
        advice,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi};

    fn message(value: &str, expiry: Expiry) -> Option<String> {
        check(&DiagnosisInput::of(&chi(value, expiry))).map(|found| found.message)
    }

    #[test]
    fn fires_above_the_schemas_lock_ttl_and_guesses_why() {
        for (left, cause) in [
            (61_001, "renewed"),
            (80_000_000, "the lock was given the result TTL"),
            (59_000_000, "a TTL in milliseconds was passed as seconds"),
            (600_000_000, "a TTL in milliseconds was passed as seconds"),
        ] {
            let message = message(CHI_LOCK, Expiry::In(left)).expect("a finding");
            assert!(message.contains(cause), "{left}: {message}");
        }
    }

    #[test]
    fn is_silent_within_the_lock_ttl_without_ttl_and_on_a_result() {
        assert_eq!(message(CHI_LOCK, Expiry::In(61_000)), None);
        assert_eq!(message(CHI_LOCK, Expiry::Never), None);
        assert_eq!(message(CHI_RESULT, Expiry::In(86_400_000)), None);
    }
}
