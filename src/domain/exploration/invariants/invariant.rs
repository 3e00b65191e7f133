//! What an invariant is.

use std::fmt;

use crate::domain::exploration::{Act, Culprit, Moment};
use crate::domain::schema::Schema;

/// What must hold at every moment of every schedule.
#[derive(Clone, Copy)]
pub struct Invariant {
    pub name: &'static str,
    pub(crate) sentence: &'static str,
    /// What to change if this step broke it.
    pub(crate) remedy: fn(&Culprit<'_>) -> String,
    /// Whether a schema can be asked for it.
    pub(crate) asked_of: fn(&Schema) -> bool,
    /// The request after the moment that shows the harm, where the moment itself does not.
    pub(crate) shown_by: fn(&Moment) -> Option<Act>,
    pub(crate) broken: fn(&Moment) -> bool,
}

impl fmt::Debug for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
