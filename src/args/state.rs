//! `--state`: which records are meant.

use clap::ValueEnum;

use crate::domain::schema::State;

/// `--state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateArg {
    /// A lock is held.
    InProgress,
    /// A result is stored.
    Completed,
    /// The schema cannot read it.
    Unreadable,
}

impl From<StateArg> for State {
    fn from(arg: StateArg) -> Self {
        match arg {
            StateArg::InProgress => Self::InProgress,
            StateArg::Completed => Self::Completed,
            StateArg::Unreadable => Self::Unreadable,
        }
    }
}
