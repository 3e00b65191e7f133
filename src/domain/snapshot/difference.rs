//! The possible differences of a record between two snapshots.

use serde::Serialize;
use strum::IntoStaticStr;

use crate::domain::as_str::as_str;

/// The difference of a record between two snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum DifferenceKind {
    /// Only the second snapshot has the record.
    Came,
    /// Only the first snapshot has the record.
    Went,
    /// The state differs.
    State,
    /// The state is the same and the value differs: the key was acquired again, or its result was
    /// stored again.
    Retaken,
    /// The value is the same as far as both snapshots show, and the expiry differs: the record was
    /// renewed or acquired again.
    Renewed,
}

as_str!(DifferenceKind);

/// How a record ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum HowRecordEnded {
    /// Its TTL had elapsed by the time of the second snapshot.
    Expired,
    /// A client removed it before its TTL elapsed.
    Removed,
}

as_str!(HowRecordEnded);

/// How a record ended that the second snapshot does not have. `ends_at` is its expiry and `at` the
/// time of the second snapshot, both in milliseconds since the epoch. `None` if the time of the
/// second snapshot is unknown.
pub(crate) fn how_it_went(ends_at: Option<u64>, at: Option<u64>) -> Option<HowRecordEnded> {
    match (ends_at, at) {
        (Some(ends_at), Some(at)) if ends_at <= at => Some(HowRecordEnded::Expired),
        // A record without expiry, or one that had not expired yet, can only have been deleted.
        (None, _) | (Some(_), Some(_)) => Some(HowRecordEnded::Removed),
        (Some(_), None) => None,
    }
}

/// The number of records by difference.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct DifferenceCounts {
    pub(crate) came: u64,
    pub(crate) went: u64,
    /// Records among `went` that expired.
    pub(crate) expired: u64,
    /// Records among `went` that were deleted.
    pub(crate) removed: u64,
    pub(crate) state: u64,
    pub(crate) retaken: u64,
    pub(crate) renewed: u64,
    /// Unchanged records, of which both values were compared to the end.
    pub(crate) same: u64,
    /// Records without a difference in the part of their values that both snapshots read.
    pub(crate) partial: u64,
}

impl DifferenceCounts {
    /// Counts a record; `None` is an unchanged one, `is_partial` says that its value was not
    /// compared to the end.
    pub(crate) fn add(&mut self, what: Option<DifferenceKind>, is_partial: bool) {
        let count = match what {
            Some(DifferenceKind::Came) => &mut self.came,
            Some(DifferenceKind::Went) => &mut self.went,
            Some(DifferenceKind::State) => &mut self.state,
            Some(DifferenceKind::Retaken) => &mut self.retaken,
            Some(DifferenceKind::Renewed) => &mut self.renewed,
            None if is_partial => &mut self.partial,
            None => &mut self.same,
        };
        *count += 1;
    }

    /// Counts how an already counted record ended.
    pub(crate) fn add_how(&mut self, how: Option<HowRecordEnded>) {
        match how {
            Some(HowRecordEnded::Expired) => self.expired += 1,
            Some(HowRecordEnded::Removed) => self.removed += 1,
            None => {}
        }
    }

    /// The number of records that differ.
    pub(crate) fn differences(&self) -> u64 {
        self.came + self.went + self.state + self.retaken + self.renewed
    }
}
