//! What to change after a harm: the advice follows from the step that did it and from the steps that the schema has.

use super::program::Stage;
use crate::domain::schema::{OnFailure, Schema};

/// The advice if another request acted between two calls of begin: every later harm of that history follows from it.
pub(crate) const BEGIN_IN_ONE_SCRIPT: &str = "let begin look the record up and take the lock in one script: another request \
                                              can act between two calls";

/// The step that broke an invariant.
#[derive(Clone, Copy)]
pub(crate) struct Culprit<'a> {
    /// The schema of the service whose step it was.
    pub(crate) schema: &'a Schema,
    /// `None` if no call did it: an effect, the end of a TTL, or a later request shows the harm.
    pub(crate) stage: Option<Stage>,
}

impl Culprit<'_> {
    /// The name of the step.
    pub(super) fn step(&self) -> &'static str {
        match self.stage {
            Some(Stage::Begin) => "begin",
            Some(Stage::Renew) => "renew",
            Some(Stage::Release) => "release",
            Some(Stage::Complete | Stage::StoreFailure) | None => "complete",
        }
    }

    /// The steps of the schema that end a lock, as words.
    pub(super) fn ending_steps(&self) -> &'static str {
        if self.schema.release.is_some() { "complete and release" } else { "complete" }
    }

    /// True if the service's locks say who holds them.
    pub(super) fn stores_owners(&self) -> bool {
        self.schema.values.iter().any(|value| value.fields.owner.is_some())
    }

    pub(super) fn begins_in_one_call(&self) -> bool {
        self.schema.begin_calls().len() == 1
    }

    pub(super) fn stores_failures(&self) -> bool {
        self.schema.on_failure() == OnFailure::Store
    }
}
