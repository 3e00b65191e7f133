//! What a service does that no script shows.

use std::ops::RangeInclusive;

/// What a service does around the steps of the state machine: its own code, which no script shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conduct {
    /// When its handler fails; `None` where it is not told.
    pub on_failure: Option<OnFailure>,
    /// When the client is gone before the response; `None` where it is not told.
    pub on_hang_up: Option<OnHangUp>,
    /// When Redis cannot be reached; `None` where it is not told.
    pub without_redis: Option<WithoutRedis>,
    /// The status codes of responses it stores; `None` is all.
    pub stores: Option<RangeInclusive<i64>>,
}

/// What a service does when its handler fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFailure {
    /// It stores the error as a result.
    Store,
    /// It releases the lock.
    Release,
    /// Nothing: the lock stays until its TTL ends.
    Keep,
}

/// What a service does when the client is gone before the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnHangUp {
    /// It releases the lock, while the handler still runs.
    Release,
    /// It goes on and stores the result.
    GoOn,
}

/// What a service does when Redis cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutRedis {
    /// It refuses the request (fail closed).
    Refuse,
    /// It executes the request all the same (fail open).
    Execute,
}
