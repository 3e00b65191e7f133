//! The rule of a command: which records it is about, and what becomes of each.

use crate::domain::diagnosis::Thresholds;
use crate::domain::record::{Age, Record};
use crate::domain::schema::Catalog;
use crate::domain::select::Selected;
use crate::store::KeyAction;

pub struct Scope {
    pub catalog: Catalog,
    pub thresholds: Thresholds,
    /// Bytes of each value that a scan reads at least.
    pub least: usize,
    /// True when the rule judges by the lengths of values.
    pub lengths: bool,
}

pub trait BulkRule {
    /// What the chosen records are counted by.
    type Group: Ord + Clone;

    fn scope(&self) -> &Scope;

    /// False when the idempotency key alone tells that the command is not about the record.
    fn may_choose(&self, _key: &[u8]) -> bool {
        true
    }

    /// False if the command leaves the record alone whatever the TTLs of the deployment are.
    fn is_about(&self, _record: &Record) -> bool {
        true
    }

    /// Whether the command works on a record, and what it plans for that record.
    fn select(&self, record: &Record) -> Selected<Planned<Self::Group>>;
}

/// What a command plans for a record that it selected.
pub struct Planned<G> {
    pub group: G,
    /// How old the record, or its lock, is.
    pub age: Option<Age>,
    /// The roles of the Redis keys that change, in this order.
    pub roles: Vec<usize>,
    pub action: PlannedAction,
    /// True for a lock that ends by itself: it is changed only after word of its owner's death.
    pub ends_by_itself: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlannedAction {
    Change(KeyAction),
    /// The lock expires by itself before the change would make it expire.
    LeaveToExpire,
}
