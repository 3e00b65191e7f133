//! Why a server did not answer a command.

use crate::domain::doctor::Refusal;
use crate::store::error::StoreError;

/// The refusal of a command. `rule` is the ACL rule that allows the command.
pub(super) fn refused(command: &str, rule: &str, error: &StoreError) -> Refusal {
    let rule = if error.is_permission() { Some(rule.to_owned()) } else { None };
    let why = match error {
        // The rule is shown by itself.
        StoreError::Permission { why, .. } => {
            why.split("; the user needs").next().unwrap_or(why).to_owned()
        }
        StoreError::Refused { code, why, .. } => format!("{code} {why}"),
        other => other.to_string(),
    };
    Refusal { command: command.to_owned(), rule, why }
}

/// The refusal of the reads of a sample, which takes several commands.
pub(crate) fn refused_sample(error: &StoreError) -> Refusal {
    let text = error.to_string();
    // The error names the right that is missing, if the server did.
    let rule = match text.split_once("the user needs ") {
        Some((_, rule)) => rule.to_owned(),
        None => "+scan".to_owned(),
    };
    refused("SCAN and reading the sample", &rule, error)
}

/// The refusal for a reply that idemctl does not understand.
pub(super) fn not_understood(command: &str) -> Refusal {
    Refusal {
        command: command.to_owned(),
        rule: None,
        why: "the reply has another format than that of Redis".to_owned(),
    }
}

/// True if no further command of this run can succeed on the server.
pub(super) fn is_fatal(error: &StoreError) -> bool {
    let is_login = matches!(error, StoreError::Authentication { .. });
    error.lost_the_reply() || error.is_for_now() || is_login
}
