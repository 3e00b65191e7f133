//! What a run that changes many records did, and how it ended.

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;
use crate::domain::record::{Record, RecordName};

/// How a run that changes many records ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Ended {
    /// No change was tried: a dry run, nothing selected, not confirmed, or an error before the
    /// backup and the audit log were open.
    #[default]
    #[strum(serialize = "shown")]
    NothingTried,
    /// Every selected record was tried, or the limit was reached.
    #[strum(serialize = "done")]
    Finished,
    /// Ctrl-C, or a signal that ends the process, stopped the run.
    Interrupted,
    /// An error ended it.
    Failed,
}

as_str!(Ended);

/// The outcomes of the records of a purge or a sweep, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutcomeCounts {
    /// How the run ended.
    pub(crate) ended: Ended,
    /// Records that were changed.
    pub(crate) done: u64,
    /// Records whose replies were lost, and which a later read showed to be changed.
    pub(crate) read_back: u64,
    /// Records whose replies were lost, and whose outcome a later read did not show.
    pub(crate) unknown: u64,
    /// Left alone, because they changed since they were read, or because they are no longer
    /// selected: time passed, or the rest of a value was read.
    pub(crate) changed_meanwhile: u64,
    /// Left alone, because they hold the same bytes but expire at a different time.
    pub(crate) renewed: u64,
    /// Expired, or removed by another program, since they were read.
    pub(crate) gone: u64,
    /// Left alone, because the whole value showed that the schema does not recognise it.
    pub(crate) unrecognised: u64,
    /// The first of these records, as an example.
    pub(crate) first_unrecognised: Option<RecordName>,
    /// Left alone, because a value is too large to be read whole, and its beginning does not decide
    /// whether it belongs to the schema.
    pub(crate) too_large: u64,
    /// Left alone, because their owner is alive.
    pub(crate) skipped_alive: u64,
    /// Left alone, because it is unknown whether their owner is alive.
    pub(crate) owner_unknown: u64,
    /// For one of these, the owner and why its state is unknown.
    pub(crate) owner_unknown_because: Option<String>,
    /// Left alone, because they expire soon anyway, or already have at least the requested time
    /// left.
    pub(crate) left_to_expire: u64,
    /// Records with Redis keys in several slots of a cluster, by name, of which some keys were
    /// changed and the others were not.
    pub(crate) partly: Vec<String>,
    /// The backup file of the removed records.
    pub(crate) backup: Option<String>,
}

impl OutcomeCounts {
    /// Counts a record that is left alone, because its whole value matches no format.
    pub(crate) fn add_unrecognised(&mut self, record: &Record) {
        self.unrecognised += 1;
        if self.first_unrecognised.is_none() {
            self.first_unrecognised = Some(RecordName::of(record));
        }
    }
}
