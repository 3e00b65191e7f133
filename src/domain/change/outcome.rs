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
    /// Everything was done.
    #[strum(serialize = "done")]
    Whole,
    /// Ctrl-C came in between.
    Interrupted,
    /// An error came in between.
    Failed,
}

as_str!(Ended);

/// What became of the records that a purge or a sweep is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// How the run ended.
    pub outcome: Ended,
    /// Records that were changed.
    pub done: u64,
    /// Redis keys that were changed, of which no reply told, and reading back did.
    pub read_back: u64,
    /// Redis keys of which nobody knows: no reply told, and reading back could not tell.
    pub unknown: u64,
    /// Left alone: no longer as they were seen.
    pub changed: u64,
    /// Left alone: the same bytes, which expire at another moment.
    pub renewed: u64,
    /// Gone by themselves, or removed by somebody else, since they were seen.
    pub gone: u64,
    /// Left alone: all of the value told that it has no form that the schema writes, or it was too long to tell.
    pub foreign: u64,
    /// Left alone: their owner is alive.
    pub skipped_alive: u64,
    /// Left alone: they end by themselves.
    pub left_to_expire: u64,
    /// The backup of what was removed.
    pub backup: Option<String>,
}
