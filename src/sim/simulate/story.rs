//! The terms of scenarios: clients' requests, lock TTLs, and outcomes of a begin step.

use std::time::Duration;

use crate::store::StoreError;

/// The result of part of a scenario.
pub(crate) type ScenarioResult<T = ()> = Result<T, Aborted>;

/// Why a scenario ended early.
#[derive(Debug)]
pub(crate) enum Aborted {
    /// The scenario does not apply to this schema, for this reason.
    NotApplicable(String),
    /// The machine was too slow: a lock expired too early in the story. The scenario is repeated
    /// with longer TTLs.
    Late,
    Store(StoreError),
}

impl From<StoreError> for Aborted {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The operation that a client requests. Requests with the same payload ask for the same operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClientRequest {
    pub(super) operation: &'static str,
    /// The hash of the payload.
    pub(crate) fingerprint: &'static str,
}

/// The request in most stories.
pub(crate) const PAYMENT: ClientRequest =
    ClientRequest { operation: "payment of 10", fingerprint: "sha256-of-10" };

/// A request for another operation, from a client that uses the same key.
pub(crate) const OTHER_PAYMENT: ClientRequest =
    ClientRequest { operation: "payment of 99", fingerprint: "sha256-of-99" };

/// A request for an operation that no worker requests. `has_other_payload` is true if a worker
/// requests [`OTHER_PAYMENT`].
pub(crate) fn unused_payment(has_other_payload: bool) -> ClientRequest {
    if has_other_payload {
        return ClientRequest { operation: "payment of 7", fingerprint: "sha256-of-7" };
    }
    OTHER_PAYMENT
}

/// The owner ID of a worker of an exploration. IDs differ only in the middle, so that a comparison of
/// their beginnings or ends is found, and are always the same, so that equal states have equal bytes.
pub(crate) fn owner_of(worker: u8) -> String {
    format!("00000000-0000-4000-8{worker:03}-000000000000")
}

/// The TTL of a lock that does not expire within the story. It is not a usual length of a lease, so
/// that a lock of this length was given it by the story, and not by a constant of its script.
pub(super) const LONG: Duration = Duration::from_secs(97);

/// The TTL of the lock that a worker acquires.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LockLifetime {
    /// The lock expires in the story.
    Short,
    Long,
    /// The schema's own TTL.
    OfSchema,
    /// This text is sent as the TTL.
    Raw(&'static str),
}

/// The outcome of a begin step.
#[derive(Debug)]
pub(crate) enum BeginOutcome {
    Acquired,
    Conflict(String),
    /// The client got the stored response, or the answer that the operation is done.
    Replayed,
    /// The key is in use with another payload.
    Mismatch(String),
    Fails(String),
    Unreachable(String),
}
