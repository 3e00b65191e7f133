//! What the changes of an operation add up to.

use serde::{Deserialize, Serialize};

use super::entry::{AuditEntry, LEFT_ALONE, OUTCOME_UNKNOWN, RECONCILE};
use crate::domain::change::provenance::Provenance;

/// The sums over the details of an operation. The end of the operation states them, so that its
/// details are read only for their records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// The number of changes of Redis keys; `reconcile` may change a key several times.
    pub(crate) redis_keys: u64,
    /// The number of changes with an unknown outcome.
    pub(crate) unknown: u64,
    /// The number of changes that an undo takes back.
    pub(crate) to_undo: u64,
    /// True if at least one line contains the identity of the value after its change.
    pub(crate) says_what_was_left: bool,
    /// True if a line records a change.
    pub(crate) is_told: bool,
    /// The backup that the changes name; before the first of them, the one of the beginning.
    pub(crate) backup: Option<String>,
    /// The places of the changes, each once.
    pub(crate) places: Vec<Provenance>,
}

impl Totals {
    /// Adds the next line of the details.
    pub(crate) fn add(&mut self, entry: &AuditEntry<'_>) {
        // The changes of an undo may name another backup than its beginning: the one that they
        // restore.
        if !self.is_told || self.backup.is_none() {
            self.is_told = true;
            self.backup = entry.backup.as_deref().map(str::to_owned);
        }
        if let Some(from) = &entry.from
            && !self.places.contains(from)
        {
            self.places.push(from.clone());
        }
        let is_change = entry.what != LEFT_ALONE;
        self.redis_keys += u64::from(is_change);
        self.unknown += u64::from(entry.what == OUTCOME_UNKNOWN);
        self.says_what_was_left |= entry.after.is_some();
        // An undo leaves the time that `reconcile` gave to locks.
        let is_kept = entry.command == RECONCILE && entry.changes_only_expiry();
        self.to_undo += u64::from(is_change && !is_kept);
    }
}
