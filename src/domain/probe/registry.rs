//! All checks, in the order in which they are made and shown.

use super::checks::{concurrency, failures, faults, header, mismatch, replay, stored_record};
use super::probe_check::ProbeCheck;
use super::profile::ProbeProfile;

/// Every check.
pub(crate) static CHECKS: [ProbeCheck; 40] = [
    replay::AT_ONCE,
    replay::STATUS,
    replay::BODY,
    replay::HEADERS,
    replay::ONE_EFFECT,
    replay::MARK,
    replay::COOKIE,
    concurrency::ONE_EFFECT,
    concurrency::ANSWERS,
    concurrency::RETRY_AFTER,
    concurrency::PAYLOADS,
    concurrency::KEYS,
    mismatch::PAYLOAD,
    mismatch::ECHO,
    mismatch::ORDER,
    mismatch::URL,
    mismatch::PATH,
    mismatch::METHOD,
    mismatch::CALLER,
    header::MISSING,
    header::EMPTY,
    header::QUOTED,
    header::PARAMETERS,
    header::LONG,
    header::TAB,
    header::TWO_LINES,
    failures::DISCONNECT,
    failures::TIMEOUT_BEFORE,
    failures::TIMEOUT_AFTER,
    failures::CORRECTED,
    failures::SERVER_ERROR,
    stored_record::LOCK,
    stored_record::OWNER,
    stored_record::STORED,
    stored_record::TTL,
    stored_record::BODY,
    faults::LOCK_EXPIRES,
    faults::LOCK_DELETED,
    faults::FOREIGN_VALUE,
    faults::RESULT_EXPIRES,
];

/// Parses a profile.
///
/// # Errors
/// The text is not TOML, a field is missing or unknown, or there is no check with an id.
pub(crate) fn parse_profile(text: &str) -> Result<ProbeProfile, String> {
    let profile = ProbeProfile::parse(text)?;
    for id in profile.checks.keys() {
        if !CHECKS.iter().any(|check| check.id == id) {
            return Err(format!("there is no check `{id}`"));
        }
    }
    Ok(profile)
}
