//! The one thing that the search does not know of itself: what a call does on a server.

use crate::domain::exploration::Keys;
use crate::domain::step::StepReply;

/// What is asked: this caller sends this call of the program while this stands at the Redis keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    /// The number of the state of the Redis keys.
    pub(crate) store: u32,
    /// A worker; behind the workers, one more request, and one more with another payload.
    pub(crate) caller: u8,
    pub(crate) ask: u8,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Performed {
    pub(crate) reply: StepReply,
    pub(crate) keys: Keys,
}

/// Performs calls on a server.
pub(crate) trait Perform {
    type Error;

    /// Puts the Redis keys into a state, sends a call, and reads what stands there afterwards.
    async fn perform(&mut self, before: &Keys, caller: u8, ask: u8) -> Result<Performed, Self::Error>;

    /// Asked now and then: true when the exploration shall end where it is.
    async fn is_over(&mut self) -> bool;
}
