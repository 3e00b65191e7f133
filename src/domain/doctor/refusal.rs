//! Why a fact is unknown.

/// A command whose answer is missing: the server refused it, or the reply lacks a field.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    pub(crate) instead: Option<String>,
}

/// A fact, or why it is unknown.
pub(crate) type FactResult<T> = Result<T, RefusedFact>;

/// The reply to this command lacks a field.
pub(super) fn missing(command: &str, field: &str) -> RefusedFact {
    RefusedFact {
        command: command.to_owned(),
        rule: None,
        why: format!("the reply has no value for {field}"),
        instead: None,
    }
}
