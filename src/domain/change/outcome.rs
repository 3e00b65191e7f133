//! What became of many changes.

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;

/// How a run that changes many records ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Ended {
    /// Nothing was changed, because nothing was to be.
    #[default]
    Shown,
    /// Everything that was selected was tried.
    #[strum(serialize = "done")]
    Whole,
    /// Ctrl-C, or a signal that ends the process, came in between.
    Interrupted,
    /// An error ended it.
    Failed,
}

as_str!(Ended);

/// What became of the records that a purge or a sweep is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// How the run ended.
    pub(crate) outcome: Ended,
    /// Records that were changed.
    pub(crate) done: u64,
    /// Redis keys that were changed: their replies were lost, and reading back showed it.
    pub(crate) read_back: u64,
    /// Redis keys whose outcome is unknown: their replies were lost, and reading back did not show
    /// it.
    pub(crate) unknown: u64,
    /// Left alone: no longer as they were seen.
    pub(crate) changed: u64,
    /// Left alone: the same bytes, which expire at another moment.
    pub(crate) renewed: u64,
    /// Gone by themselves, or removed by somebody else, since they were seen.
    pub(crate) gone: u64,
    /// Left alone: the whole value showed that the schema does not recognise it.
    pub(crate) unrecognised: u64,
    /// Left alone: a value is larger than is ever read, and its beginning does not tell whether the
    /// record is the schema's.
    pub(crate) too_large: u64,
    /// Left alone: their owner is alive.
    pub(crate) skipped_alive: u64,
    /// Left alone: nobody could say whether their owner is alive.
    pub(crate) owner_unknown: u64,
    /// For one of these, why nobody could say, and of which owner.
    pub(crate) owner_unknown_because: Option<String>,
    /// Left alone: they end by themselves, or have no more time left than they were to get.
    pub(crate) left_to_expire: u64,
    /// Records in two slots of a cluster of which one Redis key was changed and the other was not,
    /// by name.
    pub(crate) partly: Vec<String>,
    /// The file that holds what was removed.
    pub(crate) backup: Option<String>,
}
