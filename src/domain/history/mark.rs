//! The lines of the audit log: the beginning and the end of each operation.

use serde::{Deserialize, Serialize};

use super::totals::Totals;
use crate::domain::change::provenance::Provenance;

/// A line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mark", rename_all = "lowercase")]
pub enum Mark {
    /// Written before the first change. An operation without an end may have made changes that its
    /// details do not contain.
    Begin(Box<Begin>),
    /// Written after the last change.
    End(OperationEnd),
}

/// The beginning of an operation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin {
    pub op: String,
    /// RFC 3339 in UTC.
    pub at: String,
    pub who: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sudo_user: Option<String>,
    /// The numeric user ID from the kernel; `who` may come from an environment variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    pub host: String,
    pub server: String,
    pub command: String,
    /// The options that selected records, quoted for a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<String>,
    pub reason: Option<String>,
    /// Who planned the changes, as `USER@HOST`, if a plan was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planner: Option<String>,
    /// The backup that the operation writes.
    pub backup: Option<String>,
    /// The operation that this one undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<String>,
    /// True if it undoes only the records that `--only` names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub part: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Provenance>,
}

/// The end of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationEnd {
    pub op: String,
    pub at: String,
    pub state: OperationState,
    /// The error that ended the operation early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub totals: Totals,
    /// The SHA-256 of the file with the details.
    pub sha256: String,
}

/// Whether an operation finished.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OperationState {
    /// The operation finished.
    Ended,
    /// An error or a signal ended the operation early.
    Interrupted,
    /// The log contains no end: the operation was killed, or is still running.
    #[default]
    Unended,
}
