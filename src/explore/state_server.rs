//! The one thing that the search does not know by itself: what a call does on a server.

use crate::domain::exploration::KeysState;
use crate::domain::schema::Meaning;

/// A question to the server: what happens if this caller sends this call in this state of the Redis keys?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnknownReply {
    /// The number of the state of the Redis keys.
    pub keys: u32,
    /// A worker; after the workers, one more request, and one more with another payload.
    pub caller: u8,
    /// The number of the program's call.
    pub call: u8,
}

/// What a call did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEffect {
    /// What the reply means; `None` if the schema does not list it.
    pub meaning: Option<Meaning>,
    /// The stored response that the reply carries.
    pub response: Option<Vec<u8>>,
    /// The state of the Redis keys afterwards.
    pub keys: KeysState,
}

/// A server that executes calls in any state of the Redis keys.
#[expect(async_fn_in_trait, reason = "the search and its server run on one thread")]
pub trait StateServer {
    type Error;

    /// Puts the Redis keys into a state, executes a call of the program, and reads the keys.
    async fn execute_in(
        &mut self,
        before: &KeysState,
        caller: u8,
        call: u8,
    ) -> Result<CallEffect, Self::Error>;

    /// Asked now and then: true if the exploration shall end early.
    async fn is_interrupted(&mut self) -> bool;
}
