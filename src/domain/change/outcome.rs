//! What became of many changes.

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;

/// How a run that changes many records ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Ended {
    /// Nothing was to be changed.
    #[default]
    Shown,
    #[strum(serialize = "done")]
    Whole,
    /// Ctrl-C came in between.
    Interrupted,
    Failed,
}

as_str!(Ended);

/// What became of the records that a purge or a sweep is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    pub(crate) outcome: Ended,
    pub(crate) done: u64,
    /// Redis keys that were changed, of which no reply told, and reading back did.
    pub(crate) read_back: u64,
    /// Redis keys of which nobody knows: no reply told, and reading back could not tell.
    pub(crate) unknown: u64,
    /// Left alone: no longer as they were seen.
    pub(crate) changed: u64,
    /// Left alone: the same bytes, which expire at another moment.
    pub(crate) renewed: u64,
    /// Gone by themselves, or removed by somebody else, since they were seen.
    pub(crate) gone: u64,
    /// Left alone: all of the value told that it has no form that the schema writes.
    pub(crate) foreign: u64,
    /// Left alone: a value is larger than is ever read, and what was read does not tell whether the record is the schema's.
    pub(crate) too_large: u64,
    /// Left alone: their owner is alive.
    pub(crate) skipped_alive: u64,
    /// Left alone: nobody could say whether their owner is alive.
    pub(crate) owner_unknown: u64,
    /// For one of these, why nobody could say, and of which owner.
    pub(crate) owner_unknown_because: Option<String>,
    /// Left alone: they end by themselves, or have no more time left than they were to be given.
    pub(crate) left_to_expire: u64,
    /// Records in two slots of a cluster of which one Redis key was changed and the other was not, by name.
    pub(crate) partly: Vec<String>,
    pub(crate) backup: Option<String>,
}
