//! The input of a rule: the record, and the context that the rule needs.

use crate::domain::change::unlock;
use crate::domain::record::Record;
use crate::domain::schema::State;

/// Limits that findings compare with.
#[derive(Debug, Clone)]
pub struct Thresholds {
    /// A lock older than this many milliseconds is overdue; `None` disables the rule.
    pub overdue_ms: Option<u64>,
    /// A value larger than this many bytes is oversized.
    pub oversized_bytes: u64,
}

/// Values above this many bytes are oversized by default.
pub const OVERSIZED_BYTES: u64 = 64 * 1024;

impl Default for Thresholds {
    fn default() -> Self {
        Self { overdue_ms: None, oversized_bytes: OVERSIZED_BYTES }
    }
}

/// What to do about a value that deviates from the format of locks. No command removes it.
pub(super) const DEVIATION_ADVICE: &str = "find out which program wrote it; if a release of the \
    service did, describe its fields in schema.toml";

/// Another schema that can, or can no longer, read the record's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OtherSchema {
    /// This schema cannot read the value, but that one can.
    WrittenBy(String),
    /// This schema reads the value, but that one, its newer release on the same Redis keys, cannot.
    OlderReleaseOf(String),
}

/// A record, and the context that the rules need.
pub(super) struct DiagnosisInput<'a> {
    pub(crate) record: &'a Record,
    pub(crate) thresholds: &'a Thresholds,
    pub(crate) other_schema: Option<&'a OtherSchema>,
}

impl DiagnosisInput<'_> {
    /// What to do about a lock whose worker is probably dead. Removing the lock executes the
    /// operation again, which is wrong if it took effect.
    pub(super) fn unlock_advice(&self) -> String {
        if self.record.lock_deviation().is_some() {
            return DEVIATION_ADVICE.to_owned();
        }
        if let Err(why) = unlock::removable(self.record) {
            return format!("`force-unlock` does not remove this lock: {why}");
        }
        let unlock =
            "make sure that no worker is still running, then run `idemctl force-unlock KEY`";
        let can_complete =
            self.record.state == State::InProgress && self.record.schema.complete.is_some();
        match can_complete {
            true => format!(
                "{unlock}. If the operation took effect, store its response with `complete` instead"
            ),
            false => unlock.to_owned(),
        }
    }
}

#[cfg(test)]
impl<'a> DiagnosisInput<'a> {
    /// A record without another schema, and the default limits.
    pub(super) fn of(record: &'a Record) -> Self {
        static LIMITS: std::sync::LazyLock<Thresholds> =
            std::sync::LazyLock::new(Thresholds::default);
        Self { record, thresholds: &LIMITS, other_schema: None }
    }
}
