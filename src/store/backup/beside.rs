//! The other Redis key of a record that has two: what stood there when one of them was backed up.

use crate::domain::record::{Content, SeenKey};
use crate::domain::schema::Role;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// What that Redis key is for: the lock or the result.
    pub role: Role,
    pub redis_key: Vec<u8>,
    pub there: bool,
}

impl Beside {
    /// A Redis key of a record as it was seen, beside those that were backed up.
    pub(super) fn of(role: Role, seen: &SeenKey) -> Self {
        Self { role, redis_key: seen.redis_key.clone(), there: seen.content != Content::Absent }
    }

    /// The Redis key where nothing may stand now, for what was backed up to come back beside it.
    ///
    /// A lock keeps a result away, whoever holds the lock: a worker is at it, and overwrites the result when it is done.
    /// A result keeps a lock away: the operation has been completed since, and the lock would let its old worker complete
    /// once more, over that result. Where the result stood beside the lock before, the two come back as they were.
    pub fn bars(&self) -> Option<&[u8]> {
        let is_barred = self.role == Role::Lock || !self.there;
        is_barred.then_some(self.redis_key.as_slice())
    }
}
