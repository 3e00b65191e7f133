//! One thing one worker did in a round, and what came of it.

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;

/// One step of one worker, from the moment before it was sent to the moment its reply was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RaceEvent {
    /// Which worker, from 1.
    pub(crate) worker: usize,
    pub(crate) act: RaceAct,
    pub(crate) answer: RaceAnswer,
    /// Nanoseconds from the round's start to the first call.
    pub(crate) start: u64,
    /// Nanoseconds from the round's start to the last reply.
    pub(crate) end: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum RaceAct {
    Begin,
    /// The begin step once more, as a client's retry.
    Retry,
    Complete(Vec<u8>),
    /// The release step, after the handler failed.
    Release,
}

as_str!(RaceAct);

#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum RaceAnswer {
    Acquired,
    Conflict,
    /// The result is stored; its bytes, where the reply carries them.
    Replay(Option<Vec<u8>>),
    Stored,
    Refused,
    Released,
    /// The request fails, or the schema does not know the reply; why.
    Wrong(String),
    /// No reply came: it may or may not have been executed; why.
    Lost(String),
}

as_str!(RaceAnswer);

impl RaceAnswer {
    pub(crate) fn detail(&self) -> Option<&str> {
        match self {
            Self::Wrong(why) | Self::Lost(why) => Some(why),
            _ => None,
        }
    }
}
