//! All checks, in the order in which they are made and shown.

use super::checks::{concurrency, failures, faults, header, mismatch, replay, stored_record};
use super::probe_check::ProbeCheck;
use super::profile::ProbeProfile;

/// Every check.
pub(crate) static CHECKS: [ProbeCheck; 26] = [
    replay::AT_ONCE,
    replay::STATUS,
    replay::BODY,
    replay::HEADERS,
    replay::ONE_EFFECT,
    replay::LATER,
    concurrency::ONE_EFFECT,
    concurrency::ANSWERS,
    concurrency::PAYLOADS,
    concurrency::KEYS,
    mismatch::PAYLOAD,
    mismatch::MEMBERS,
    mismatch::PATH,
    mismatch::CALLER,
    header::MISSING,
    failures::DISCONNECT,
    failures::TIMEOUT_BEFORE,
    failures::TIMEOUT_AFTER,
    failures::SERVER_ERROR,
    stored_record::LOCK,
    stored_record::OWNER,
    stored_record::STORED,
    stored_record::TTL,
    faults::LOCK_EXPIRES,
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
