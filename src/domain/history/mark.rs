//! The lines of the audit log that say that an operation begins and ends.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::domain::change::provenance::Provenance;

/// A line that tells of no change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mark", rename_all = "lowercase")]
pub enum Mark<'a> {
    /// Written before the first change: an operation without an end may have changed more than the log tells.
    Begin(Box<Begin<'a>>),
    End(OperationEnd<'a>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begin<'a> {
    pub op: Cow<'a, str>,
    /// RFC 3339 in UTC.
    pub at: Cow<'a, str>,
    pub who: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sudo_user: Option<Cow<'a, str>>,
    /// The user's number on the host, by the kernel; `who` may come from a variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    pub host: Cow<'a, str>,
    pub server: Cow<'a, str>,
    pub command: Cow<'a, str>,
    /// The options by which the operation chose records, quoted for a shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Cow<'a, str>>,
    pub reason: Option<Cow<'a, str>>,
    /// The backup that it writes; of a restore the one that it reads.
    pub backup: Option<Cow<'a, str>>,
    /// The operation that this one takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<Cow<'a, str>>,
    /// True if it takes back only the records that `--only` names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub part: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Provenance>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationEnd<'a> {
    pub op: Cow<'a, str>,
    pub at: Cow<'a, str>,
    pub state: EndState,
    /// The error that ended the operation early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Cow<'a, str>>,
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndState {
    Ended,
    /// An error or a signal ended it before it had come to everything.
    Interrupted,
}
