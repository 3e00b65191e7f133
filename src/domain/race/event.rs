//! One step of one worker in a round of a race, and its outcome.

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;

/// One step of one worker, from just before it was sent until its reply was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RaceEvent {
    /// The worker's number, from 1.
    pub(crate) worker: usize,
    pub(crate) act: RaceAct,
    pub(crate) answer: RaceAnswer,
    /// Nanoseconds from the round's start to the first call.
    pub(crate) start: u64,
    /// Nanoseconds from the round's start to the last reply.
    pub(crate) end: u64,
}

/// The step that a worker executes.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum RaceAct {
    Begin,
    /// The begin step again, as a client's retry.
    Retry,
    /// The complete step, with the response that a replay would return.
    Complete(Vec<u8>),
    /// The release step, after the handler failed.
    Release,
}

as_str!(RaceAct);

/// The outcome of a worker's step.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum RaceAnswer {
    Acquired,
    Conflict,
    /// A result is stored. Contains the response if the reply carries it.
    Replay(Option<Vec<u8>>),
    Stored,
    Refused,
    Released,
    /// The request fails, or the schema does not list the reply; with the reason.
    Wrong(String),
    /// The reply was lost, so that it is unknown whether the step was executed; with the reason.
    Lost(String),
}

as_str!(RaceAnswer);

impl RaceAnswer {
    /// The reason of a wrong or lost reply.
    pub(crate) fn detail(&self) -> Option<&str> {
        match self {
            Self::Wrong(why) | Self::Lost(why) => Some(why),
            _ => None,
        }
    }
}
