//! One thing one worker did in a round, and what came of it.

use strum::IntoStaticStr;

use crate::domain::as_str::as_str;

/// One step of one worker, from the moment before it was sent to the moment its reply was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Which worker, from 1.
    pub worker: usize,
    /// What it did.
    pub act: Act,
    /// What came of it.
    pub answer: Answer,
    /// Nanoseconds from the round's start to the first call.
    pub start: u64,
    /// Nanoseconds from the round's start to the last reply.
    pub end: u64,
}

/// What a worker did.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Act {
    /// The begin step.
    Begin,
    /// The begin step once more, as a client's retry.
    Retry,
    /// The complete step, storing these bytes.
    Complete(Vec<u8>),
    /// The release step, after the handler failed.
    Release,
}

as_str!(Act);

impl Act {
    /// True for the step that asks for the lock.
    pub fn asks(&self) -> bool {
        matches!(self, Self::Begin | Self::Retry)
    }
}

/// What a step came to.
#[derive(Debug, Clone, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Answer {
    /// The lock is the worker's.
    Acquired,
    /// Another worker holds the lock.
    Conflict,
    /// The result is stored; its bytes, where the reply carries them.
    Replay(Option<Vec<u8>>),
    /// The result was stored.
    Stored,
    /// Nothing was changed.
    Refused,
    /// The lock is gone.
    Released,
    /// The request fails, or the schema does not know the reply; why.
    Wrong(String),
    /// No reply came: it may or may not have been executed; why.
    Lost(String),
}

as_str!(Answer);

impl Answer {
    /// What there is to say beyond the word.
    pub fn detail(&self) -> Option<&str> {
        match self {
            Self::Wrong(why) | Self::Lost(why) => Some(why),
            _ => None,
        }
    }
}
