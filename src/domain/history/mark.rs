//! The lines of the audit log: the beginning and the end of each operation.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::totals::Totals;
use crate::domain::change::provenance::Provenance;

/// A line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mark", rename_all = "lowercase")]
pub enum Mark<'a> {
    /// Written before the first change. An operation without an end may have made changes that its
    /// details do not contain.
    Begin(Box<Begin<'a>>),
    /// Written after the last change.
    End(OperationEnd<'a>),
}

/// The beginning of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin<'a> {
    pub op: Cow<'a, str>,
    /// RFC 3339 in UTC.
    pub at: Cow<'a, str>,
    pub who: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sudo_user: Option<Cow<'a, str>>,
    /// The numeric user ID from the kernel; `who` may come from an environment variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    pub host: Cow<'a, str>,
    pub server: Cow<'a, str>,
    pub command: Cow<'a, str>,
    /// The options that selected records, quoted for a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Cow<'a, str>>,
    pub reason: Option<Cow<'a, str>>,
    /// The backup that the operation writes; for a restore, the backup that it reads.
    pub backup: Option<Cow<'a, str>>,
    /// The operation that this one undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<Cow<'a, str>>,
    /// True if it undoes only the records that `--only` names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub part: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Provenance>,
}

/// The end of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationEnd<'a> {
    pub op: Cow<'a, str>,
    pub at: Cow<'a, str>,
    pub state: EndState,
    /// The error that ended the operation early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Cow<'a, str>>,
    pub totals: Totals,
    /// The SHA-256 of the file with the details.
    pub sha256: Cow<'a, str>,
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndState {
    /// The operation finished.
    Ended,
    /// An error or a signal ended the operation early.
    Interrupted,
}
