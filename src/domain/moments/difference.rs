//! What may have happened to a record between two moments.

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;

/// What happened to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum What {
    Came,
    Went,
    /// It is in another state.
    State,
    /// The state is the same, and the value is another one: the key was taken, or its result stored, anew.
    Retaken,
    /// The value is the same as far as both moments tell, and expires at another moment: renewed, or taken anew.
    Renewed,
}

as_str!(What);

/// How many records each of it happened to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) came: u64,
    pub(crate) went: u64,
    pub(crate) state: u64,
    pub(crate) retaken: u64,
    pub(crate) renewed: u64,
    /// Records that are as they were.
    pub(crate) same: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, what: Option<What>) {
        let count = match what {
            Some(What::Came) => &mut self.came,
            Some(What::Went) => &mut self.went,
            Some(What::State) => &mut self.state,
            Some(What::Retaken) => &mut self.retaken,
            Some(What::Renewed) => &mut self.renewed,
            None => &mut self.same,
        };
        *count += 1;
    }

    /// How many records are not as they were.
    pub(crate) fn differences(&self) -> u64 {
        self.came + self.went + self.state + self.retaken + self.renewed
    }
}
