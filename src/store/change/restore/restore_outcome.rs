//! A Redis key that is to come back, and what becomes of it.

use crate::store::backup::Saved;
use crate::store::error::StoreError;

#[derive(Debug, Clone, Copy)]
pub struct Return<'a> {
    pub saved: &'a Saved,
    /// Another Redis key of the record where nothing may stand now; `None` where none matters.
    pub barred_by: Option<&'a [u8]>,
}

impl Return<'_> {
    /// The Redis key that the script looks at besides: where none matters the one that comes back, for nothing stands
    /// there by then.
    pub(super) fn bar(&self) -> &[u8] {
        self.barred_by.unwrap_or(&self.saved.redis_key)
    }
}

/// What became of a Redis key, or why it did not come back.
pub type RestoreResult = Result<RestoreOutcome, StoreError>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// It is back, or would be, with these milliseconds left; `None` without expiry.
    Restored(Option<u64>),
    /// It is back: the reply was lost, and reading back tells.
    FoundBack(Option<u64>),
    /// Something is there, which stays.
    Present,
    /// What stands at the record's other Redis key keeps it away.
    Barred,
    Expired,
}
