//! Why a fact is unknown.

use serde::Serialize;

/// A command whose answer is missing: the server refused it, or the reply lacks a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct RefusedFact {
    /// The command with its arguments, e.g. `CONFIG GET appendfsync`.
    pub(crate) command: String,
    /// The ACL rule that would allow it, e.g. `+config|get`; `None` if no rule helps, because the
    /// server does not have the command or the field.
    pub(crate) rule: Option<String>,
    /// The reason, as the server gave it.
    pub(crate) why: String,
    /// What to do instead of allowing the command, as a sentence; `None` if only the operator of the
    /// server can do something.
    #[serde(skip)]
    pub(crate) instead: Option<String>,
}

/// A fact, or why it is unknown.
pub(crate) type FactResult<T> = Result<T, RefusedFact>;

impl RefusedFact {
    /// `command` has no usable answer, for this reason, and no ACL rule helps.
    pub(crate) fn unusable(command: &str, why: impl Into<String>) -> Self {
        Self { command: command.to_owned(), rule: None, why: why.into(), instead: None }
    }

    /// `source` does not show the fact, for this reason; `instead` is what to do.
    pub(crate) fn unknown(
        source: &str,
        why: impl Into<String>,
        instead: impl Into<String>,
    ) -> Self {
        Self { instead: Some(instead.into()), ..Self::unusable(source, why) }
    }
}

/// The reply to this command lacks a field.
pub(super) fn missing(command: &str, field: &str) -> RefusedFact {
    RefusedFact::unusable(command, format!("the reply has no usable value for {field}"))
}
