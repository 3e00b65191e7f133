//! Findings that an operator accepted, each with a reason and until a day.

use serde::Deserialize;
use toml::value::{Date, Datetime};

use super::judgement::CheckSeverity;
use super::registry::CHECKS;
use super::statement::{AppliedAcceptance, Statement};

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
    date: Datetime,
    expires: Datetime,
    severity: Option<AcceptedSeverity>,
}

/// The most serious finding that an acceptance silences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum AcceptedSeverity {
    Warning,
    Error,
}

/// A finding that an operator accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Acceptance {
    code: String,
    reason: String,
    /// The day on which it was accepted, e.g. `2026-11-26`.
    date: String,
    /// The first day on which it is reported again.
    expires: String,
    /// True if only warnings are accepted, so that an error is reported again.
    is_for_warnings: bool,
}

/// Parses the file of `--accept`.
///
/// # Errors
/// It is not such a file: a field is missing or unknown, or there is no check with a code.
pub(crate) fn parse_acceptances(text: &str) -> Result<Vec<Acceptance>, String> {
    let file: AcceptanceFile = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let mut acceptances = Vec::with_capacity(file.accept.len());
    for raw in file.accept {
        if !CHECKS.iter().any(|check| check.code == raw.code) {
            return Err(format!("there is no check `{}`", raw.code));
        }
        if raw.reason.trim().is_empty() {
            return Err(format!("the acceptance of {} has no reason", raw.code));
        }
        acceptances.push(Acceptance {
            is_for_warnings: raw.severity == Some(AcceptedSeverity::Warning),
            date: day(&raw.code, "date", raw.date)?,
            expires: day(&raw.code, "expires", raw.expires)?,
            code: raw.code,
            reason: raw.reason,
        });
    }
    Ok(acceptances)
}

/// Marks the findings that are accepted. `today` is a day in UTC, e.g. `2026-11-26`.
pub(crate) fn accept(statements: &mut [Statement], acceptances: &[Acceptance], today: &str) {
    for statement in statements {
        // Only an alarm can be accepted: a note is none, and what is unknown is not accepted.
        if !statement.is_alarm() {
            continue;
        }
        let mut applied: Option<AppliedAcceptance> = None;
        for acceptance in acceptances {
            if acceptance.code != statement.check.code {
                continue;
            }
            // If there are several, one that is still valid counts.
            if applied.as_ref().is_some_and(AppliedAcceptance::is_valid) {
                break;
            }
            let is_error = statement.judgement.severity == CheckSeverity::Error;
            applied = Some(AppliedAcceptance {
                reason: acceptance.reason.clone(),
                date: acceptance.date.clone(),
                expires: acceptance.expires.clone(),
                is_expired: today >= acceptance.expires.as_str(),
                is_exceeded: acceptance.is_for_warnings && is_error,
            });
        }
        statement.accepted = applied;
    }
}

fn day(code: &str, field: &str, datetime: Datetime) -> Result<String, String> {
    match (datetime.date, datetime.time) {
        (Some(Date { year, month, day }), None) => Ok(format!("{year:04}-{month:02}-{day:02}")),
        _ => Err(format!("{field} of {code}: write a day, such as 2026-12-31")),
    }
}
