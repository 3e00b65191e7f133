//! The temporary local Redis on which completions are tried.

use crate::sim::RehearsalServer;

/// The local Redis of a run.
pub(super) enum Rehearsals {
    /// None was needed yet.
    NotStarted,
    Running(Box<RehearsalServer>),
    /// It cannot be started, for this reason.
    Missing(String),
}
