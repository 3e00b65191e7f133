//! What stories are about: operations, locks, and what a begin step comes to.

use std::time::Duration;

/// How long a lock lives that stays to the end of the story.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// What a client asks for. Requests with the same payload ask for the same operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(super) what: &'static str,
    pub(crate) fingerprint: &'static str,
}

/// The operation of most stories.
pub(crate) const PAYMENT: Operation = Operation { what: "payment of 10", fingerprint: "sha256-of-10" };

/// Another operation, by a client that takes the same key for it.
pub(crate) const OTHER_PAYMENT: Operation = Operation { what: "payment of 99", fingerprint: "sha256-of-99" };

/// How long the lock lives that a worker takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lock {
    /// The lock runs out in the story.
    Short,
    Long,
    /// The lock lives as long as the schema says.
    Own,
    /// This text is sent as TTL.
    Raw(&'static str),
}

#[derive(Debug)]
pub(crate) enum Begun {
    Acquired,
    Conflict(String),
    /// The client got the stored response, or that it is done.
    Replayed,
    /// The key is in use for another payload.
    Mismatch(String),
    Fails(String),
    Unreachable(String),
}
