//! The one thing that the search does not know of itself: what a call does on a server.

use crate::domain::exploration::Keys;
use crate::domain::step::StepReply;

/// What is asked: this caller sends this call of the program while this stands at the Redis keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Question {
    /// The number of the state of the Redis keys.
    pub store: u32,
    /// A worker; behind the workers, one more request, and one more with another payload.
    pub caller: u8,
    pub ask: u8,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Performed {
    pub reply: StepReply,
    /// The hash of the caller's payload, which a client compares with the stored one.
    pub fingerprint: &'static str,
    /// The caller's time, in milliseconds since the epoch.
    pub now_ms: u64,
    pub keys: Keys,
}

/// Performs calls on a server.
#[expect(async_fn_in_trait, reason = "whoever performs calls and whoever asks live on one thread")]
pub trait Perform {
    type Error;

    /// Puts the Redis keys into a state, sends a call, and reads what stands there afterwards.
    async fn perform(&mut self, before: &Keys, caller: u8, ask: u8) -> Result<Performed, Self::Error>;

    /// Asked now and then: true when the exploration shall end where it is.
    async fn is_over(&mut self) -> bool;
}
