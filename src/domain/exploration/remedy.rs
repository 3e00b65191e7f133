//! The suggested change after a violation, derived from the responsible step and from the steps
//! that the schema has.

use super::program::StepKind;
use crate::domain::schema::{OnFailure, Schema};

/// The advice if another request acted between two calls of begin. All later violations in that
/// schedule follow from this.
pub(crate) const BEGIN_IN_ONE_SCRIPT: &str = "let begin look the record up and take the lock in \
    one script, because another request can act between two calls";

/// The step that violated an invariant.
#[derive(Clone, Copy)]
pub(crate) struct Culprit<'a> {
    /// The schema of the service that executed the step.
    pub(crate) schema: &'a Schema,
    /// `None` if no call is responsible: an effect, an elapsed TTL, or a later request shows the
    /// violation.
    pub(crate) kind: Option<StepKind>,
}

impl Culprit<'_> {
    /// The name of the step.
    pub(super) fn step(&self) -> &'static str {
        match self.kind {
            Some(StepKind::Begin) => "begin",
            Some(StepKind::Renew) => "renew",
            Some(StepKind::Release) => "release",
            Some(StepKind::Complete | StepKind::StoreFailure) | None => "complete",
        }
    }

    /// The names of the steps with which the schema ends a lock.
    pub(super) fn ending_steps(&self) -> &'static str {
        if self.schema.release.is_some() { "complete and release" } else { "complete" }
    }

    /// True if the service's locks store their owners.
    pub(super) fn stores_owners(&self) -> bool {
        self.schema.values.iter().any(|value| value.fields.owner.is_some())
    }

    /// True if begin is a single call, so that no other request can act within it.
    pub(super) fn begins_in_one_call(&self) -> bool {
        self.schema.begin_calls().len() == 1
    }

    /// True if the service stores the errors of failed handlers as results.
    pub(super) fn stores_failures(&self) -> bool {
        self.schema.on_failure() == OnFailure::Store
    }
}
