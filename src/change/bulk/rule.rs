//! The rule of a command: which records it is about, and what becomes of each.

use crate::domain::diagnosis::Thresholds;
use crate::domain::record::{Age, Record};
use crate::domain::schema::Catalog;
use crate::domain::select::Missing;
use crate::store::Action;

pub struct Scope {
    pub catalog: Catalog,
    pub thresholds: Thresholds,
    /// Bytes of each value that a walk reads at least.
    pub least: usize,
    /// True when the rule judges by the lengths of values.
    pub lengths: bool,
}

pub trait Rule {
    /// What the chosen records are counted by.
    type Group: Ord + Clone;

    fn scope(&self) -> &Scope;

    /// False when the idempotency key alone tells that the command is not about the record.
    fn may_choose(&self, _key: &[u8]) -> bool {
        true
    }

    /// Whether the command is about a record, and what is to become of that record.
    fn choose(&self, record: &Record) -> Verdict<Self::Group>;
}

/// What a rule says of a record.
pub enum Verdict<G> {
    Chosen(Chosen<G>),
    Passed,
    /// The command may be about the record: nothing proves what was asked for.
    Unproven(Missing),
}

impl<G> Verdict<G> {
    /// The record's change; `None` unless the command is about the record.
    pub fn chosen(self) -> Option<Chosen<G>> {
        match self {
            Self::Chosen(chosen) => Some(chosen),
            Self::Passed | Self::Unproven(_) => None,
        }
    }
}

pub struct Chosen<G> {
    pub group: G,
    /// How old the record, or its lock, is.
    pub age: Option<Age>,
    /// The roles of the Redis keys that change, in this order.
    pub roles: Vec<usize>,
    /// The change of these Redis keys; `None` for a lock that ends sooner by itself than with the change.
    pub action: Option<Action>,
    /// True for a lock that ends by itself: it is changed only after word of its owner's death.
    pub ends_by_itself: bool,
}
