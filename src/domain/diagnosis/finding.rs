//! What a rule says, and what it may look at besides the record.

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;
use crate::domain::record::Record;
use crate::domain::record::evidence::Evidence;

/// A diagnosis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The stable code.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// How it is known.
    pub evidence: Evidence,
    /// What it means for the next request.
    pub message: String,
    /// What to do.
    pub advice: String,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// It will hurt, or costs something.
    Warning,
    /// Clients are hurt now, or a double execution is near.
    Error,
}

as_str!(Severity);

/// Limits that findings compare with.
#[derive(Debug, Clone)]
pub struct Thresholds {
    /// A lock older than this many milliseconds is overdue; `None` leaves the rule out.
    pub overdue_ms: Option<u64>,
    /// A value larger than this many bytes is oversized.
    pub oversized_bytes: u64,
}

impl Default for Thresholds {
    /// 64 KiB: what `inspect` reads of a value at most, unless told to read it all.
    fn default() -> Self {
        Self { overdue_ms: None, oversized_bytes: 64 * 1024 }
    }
}

/// Another schema that has to do with the record's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Foreign {
    /// This schema cannot read the value, but that one can.
    WrittenBy(String),
    /// This schema reads the value, but that one, its newer release on the same Redis keys, cannot.
    OlderReleaseOf(String),
}

/// What a rule looks at.
pub(super) struct Case<'a> {
    pub record: &'a Record,
    pub thresholds: &'a Thresholds,
    pub foreign: Option<&'a Foreign>,
}
