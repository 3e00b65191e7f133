//! What scenarios are about: clients' requests, locks, and what a begin step comes to.

use std::time::Duration;

use crate::store::StoreError;

pub(crate) type ScenarioResult<T = ()> = Result<T, Aborted>;

/// Why a scenario ended early.
#[derive(Debug)]
pub(crate) enum Aborted {
    /// The scenario says nothing about this schema, and why.
    NotApplicable(String),
    /// The machine was too slow: a lock ended before its time in the story. The scenario is run again with more time.
    Late,
    Store(StoreError),
}

impl From<StoreError> for Aborted {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// What a client asks for. Requests with the same payload ask for the same operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClientRequest {
    pub(super) operation: &'static str,
    /// The hash of the payload.
    pub(crate) fingerprint: &'static str,
}

/// The request of most stories.
pub(crate) const PAYMENT: ClientRequest =
    ClientRequest { operation: "payment of 10", fingerprint: "sha256-of-10" };

/// A request for another operation, by a client that uses the same key for it.
pub(crate) const OTHER_PAYMENT: ClientRequest =
    ClientRequest { operation: "payment of 99", fingerprint: "sha256-of-99" };

/// How long a lock lives that does not end within the story.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// How long the lock lives that a worker takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LockLifetime {
    /// The lock expires in the story.
    Short,
    Long,
    /// As long as the schema says.
    OfSchema,
    /// This text is sent as TTL.
    Raw(&'static str),
}

/// What a begin step came to.
#[derive(Debug)]
pub(crate) enum BeginOutcome {
    Acquired,
    Conflict(String),
    /// The client got the stored response, or that it is done.
    Replayed,
    /// The key is in use for another payload.
    Mismatch(String),
    Fails(String),
    Unreachable(String),
}
