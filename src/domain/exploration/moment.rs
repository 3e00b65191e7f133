//! What the invariants look at: one step, what stood before it, and what it came to.

use super::answer::{Author, Heard};

/// What a state of the Redis keys means, as requests find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    /// A lock stands there.
    pub(crate) lock: bool,
    /// A request gets a replay, and whose response.
    pub(crate) result: Option<Author>,
    /// A request of this service fails.
    pub(crate) fails: Option<u8>,
    /// A request of this service is turned away, and each later one will be.
    pub(crate) stuck: Option<u8>,
    /// A request of this service with another payload is served as if the payload were the same.
    pub(crate) mistaken: Option<u8>,
}

/// One step of the exploration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// Who sent a call; `None` where nobody did.
    pub(crate) caller: Option<u8>,
    /// What the call was told by Redis, whether or not the worker got to know.
    pub(crate) heard: Option<Heard>,
    pub(crate) before: Facts,
    pub(crate) after: Facts,
    /// The bytes of a standing result are others than before.
    pub(crate) rewritten: bool,
    /// The lock stands before, and its bytes are others now or gone.
    pub(crate) lock_gone: bool,
    /// Who took the lock that stands before; `None` where none stands.
    pub(crate) holder: Option<u8>,
    /// The workers that had their effect before, and now: a bit each.
    pub(crate) effects_before: u8,
    pub(crate) effects: u8,
    /// No worker is at work.
    pub(crate) quiet: bool,
    /// A worker has stored the result of its effect.
    pub(crate) succeeded: bool,
}
