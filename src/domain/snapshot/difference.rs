//! What may have happened to a record between two moments.

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;

/// What happened to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum DifferenceKind {
    Came,
    Went,
    /// It is in another state.
    State,
    /// The state is the same, and the value is another one: the key was taken, or its result stored, anew.
    Retaken,
    /// The value is the same as far as both moments tell, and expires at another moment: renewed, or taken anew.
    Renewed,
}

as_str!(DifferenceKind);

/// How a record went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum HowRecordEnded {
    /// By the second moment its time was over.
    Expired,
    /// Somebody removed it before its time was over.
    Removed,
}

as_str!(HowRecordEnded);

/// What became of a record that the second moment does not have: `ends_at` is when it was gone by itself, `at` the time of
/// the second moment.
pub(crate) fn how_it_went(ends_at: Option<u64>, at: Option<u64>) -> Option<HowRecordEnded> {
    match (ends_at, at) {
        (Some(ends_at), Some(at)) if ends_at <= at => Some(HowRecordEnded::Expired),
        // Without an expiry nothing but somebody ends it.
        (None, _) | (Some(_), Some(_)) => Some(HowRecordEnded::Removed),
        (Some(_), None) => None,
    }
}

/// How many records each of it happened to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DifferenceCounts {
    pub(crate) came: u64,
    pub(crate) went: u64,
    /// Of those that went.
    pub(crate) expired: u64,
    pub(crate) removed: u64,
    pub(crate) state: u64,
    pub(crate) retaken: u64,
    pub(crate) renewed: u64,
    /// Records that are as they were.
    pub(crate) same: u64,
}

impl DifferenceCounts {
    pub(crate) fn add(&mut self, what: Option<DifferenceKind>) {
        let count = match what {
            Some(DifferenceKind::Came) => &mut self.came,
            Some(DifferenceKind::Went) => &mut self.went,
            Some(DifferenceKind::State) => &mut self.state,
            Some(DifferenceKind::Retaken) => &mut self.retaken,
            Some(DifferenceKind::Renewed) => &mut self.renewed,
            None => &mut self.same,
        };
        *count += 1;
    }

    /// Counts how a record went that was counted.
    pub(crate) fn add_how(&mut self, how: Option<HowRecordEnded>) {
        match how {
            Some(HowRecordEnded::Expired) => self.expired += 1,
            Some(HowRecordEnded::Removed) => self.removed += 1,
            None => {}
        }
    }

    /// How many records are not as they were.
    pub(crate) fn differences(&self) -> u64 {
        self.came + self.went + self.state + self.retaken + self.renewed
    }
}
