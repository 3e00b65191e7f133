//! Findings that an operator accepted, each with a reason and until a day.

use serde::Deserialize;
use toml::value::{Date, Datetime};

use super::checks::registry::CHECKS;
use super::statement::{Acceptance, Statement};

/// The file of `--accept`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AcceptanceFile {
    #[serde(default)]
    accept: Vec<RawAcceptance>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAcceptance {
    code: String,
    reason: String,
    expires: Datetime,
}

/// Parses the file of `--accept`. `today` is a day in UTC, e.g. `2026-11-26`.
///
/// # Errors
/// It is not such a file: a field is missing or unknown, or there is no check with a code.
pub(crate) fn parse_acceptances(text: &str, today: &str) -> Result<Vec<Acceptance>, String> {
    let file: AcceptanceFile = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let mut acceptances = Vec::with_capacity(file.accept.len());
    for RawAcceptance { code, reason, expires } in file.accept {
        if !CHECKS.iter().any(|check| check.code == code) {
            return Err(format!("there is no check `{code}`"));
        }
        if reason.trim().is_empty() {
            return Err(format!("the acceptance of {code} has no reason"));
        }
        let (Some(Date { year, month, day }), None) = (expires.date, expires.time) else {
            return Err(format!("expires of {code}: write a day, such as 2026-12-31"));
        };
        let expires = format!("{year:04}-{month:02}-{day:02}");
        let is_expired = today >= expires.as_str();
        acceptances.push(Acceptance { code, reason, expires, is_expired });
    }
    Ok(acceptances)
}

/// Marks the findings that are accepted.
pub(crate) fn accept(statements: &mut [Statement], acceptances: &[Acceptance]) {
    for statement in statements {
        // Only an alarm can be accepted: a note is none, and what is unknown is not accepted.
        if !statement.is_alarm() {
            continue;
        }
        // If there are several, one that is still valid counts.
        for acceptance in acceptances {
            if acceptance.code == statement.check.code && statement.is_alarm() {
                statement.accepted = Some(acceptance.clone());
            }
        }
    }
}
