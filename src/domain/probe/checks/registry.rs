//! All checks, in the order in which they are made and shown.

use super::{concurrency, failures, faults, mismatch, replay, stored_record};
use crate::domain::probe::probe_check::{ProbeCheck, ProbeGroup, ProbeNeed};
use crate::domain::probe::profile::ProbeProfile;

/// Every check: a row of `checks.toml`, and the functions that make its steps and judge them.
pub(crate) static CHECKS: &[ProbeCheck] = include!(concat!(env!("OUT_DIR"), "/probe_checks.rs"));

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
