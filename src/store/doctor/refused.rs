//! Why a server did not answer a command.

use crate::domain::doctor::RefusedFact;
use crate::store::error::StoreError;

/// The refusal of a command. `rule` is the ACL rule that allows the command.
pub(super) fn refused(command: &str, rule: &str, error: &StoreError) -> RefusedFact {
    let rule = if error.is_permission() { Some(rule.to_owned()) } else { None };
    let why = match error {
        // The rule is shown by itself.
        StoreError::Permission { why, .. } => {
            why.split("; the user needs").next().unwrap_or(why).to_owned()
        }
        StoreError::ErrorReply { code, why, .. } => format!("{code} {why}"),
        other => other.to_string(),
    };
    let is_unreachable = error.lost_the_reply() || error.is_for_now();
    let instead = is_unreachable.then(|| "Start this server, or name the right one.".to_owned());
    RefusedFact { command: command.to_owned(), rule, why, instead }
}

/// The refusal of the reads of a sample, which takes several commands.
pub(crate) fn refused_sample(error: &StoreError) -> RefusedFact {
    let text = error.to_string();
    // The error names the right that is missing, if the server did.
    let rule = match text.split_once("the user needs ") {
        Some((_, rule)) if rule.contains("~PATTERN") => {
            "~PATTERN, with a pattern that matches the Redis keys".to_owned()
        }
        // The reads take several commands. All are in this category, or in one script.
        Some((_, rule)) if rule.starts_with('+') => "+@read +eval".to_owned(),
        Some((_, rule)) => rule.to_owned(),
        None => "+@read +eval".to_owned(),
    };
    refused("Reading a sample of the keys (SCAN and others)", &rule, error)
}

/// The refusal for a reply that idemctl does not understand.
pub(super) fn not_understood(command: &str) -> RefusedFact {
    RefusedFact::unusable(command, "the reply has another format than that of Redis")
}

/// True if no further command of this run can succeed on the server.
pub(crate) fn is_fatal(error: &StoreError) -> bool {
    let is_login = matches!(error, StoreError::Authentication { .. });
    error.lost_the_reply() || error.is_for_now() || is_login
}
