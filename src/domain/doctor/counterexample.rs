//! Histories in which a client is harmed, by a fault of the deployment or by the schema itself.

use serde::Serialize;

use crate::domain::exploration::Invariant;

/// The shortest history that violates an invariant of one schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Counterexample {
    pub(crate) schema: String,
    pub(crate) invariant: &'static Invariant,
    /// The faults in words, e.g. `1 eviction`.
    pub(crate) faults: String,
    pub(crate) steps: usize,
    /// The token for `explore --replay`.
    pub(crate) token: String,
}

/// What an exploration found for a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FaultOutcome {
    /// A history violates an invariant. If one fault was explored alone, the history has it.
    Violates(Counterexample),
    /// No history does.
    Holds,
    /// The schema cannot be explored, and why.
    Unexplorable(String),
    /// The schema was not explored, or not completely, and why.
    Unknown(String),
}

impl Counterexample {
    /// The order of reports: the most harmful invariant first, then the shortest history.
    pub(super) fn rank(&self) -> (usize, usize) {
        (self.invariant.rank, self.steps)
    }

    /// The one of these that harms clients most.
    pub(crate) fn most_harmful(found: Vec<Self>) -> Option<Self> {
        found.into_iter().min_by_key(Self::rank)
    }
}
