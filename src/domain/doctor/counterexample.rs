//! Histories in which a client is harmed, by a fault of the deployment or by the schema itself.

use serde::Serialize;

/// The shortest history that violates an invariant of one schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Counterexample {
    pub(crate) schema: String,
    /// The name of the invariant.
    pub(crate) invariant: String,
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

/// What a schema does in a history that violates this invariant, as a predicate.
pub(crate) fn phrase_of(invariant: &str) -> &'static str {
    match invariant {
        "one-effect" => "executes twice",
        "true-replay" => "replays a response that no execution gave",
        "no-false-done" => "reports an operation as done that was not done",
        "result-kept" => "removes a stored result",
        "result-not-replaced" => "replaces a stored result by another one",
        "lock-ends" => "rejects every later retry",
        "owner-only" => "changes the lock of another request",
        "replays-after-success" => "executes again after a success",
        "payloads-apart" => "replays the response of another payload",
        _ => "violates an invariant",
    }
}

impl Counterexample {
    /// The order of reports: the most harmful invariant first, then the shortest history.
    pub(super) fn rank(&self) -> (usize, usize) {
        const ORDER: [&str; 4] =
            ["one-effect", "replays-after-success", "lock-ends", "true-replay"];
        let position = ORDER.iter().position(|name| *name == self.invariant);
        (position.unwrap_or(ORDER.len()), self.steps)
    }

    /// True if an operation is executed twice in the history.
    pub(crate) fn executes_twice(&self) -> bool {
        ["one-effect", "replays-after-success"].contains(&self.invariant.as_str())
    }

    /// The one of these that harms clients most.
    pub(crate) fn most_harmful(found: Vec<Self>) -> Option<Self> {
        found.into_iter().min_by_key(Self::rank)
    }
}
