//! A record to restore, and its outcome.

use crate::store::backup::HeldKey;
use crate::store::error::StoreError;

/// Redis keys of one record that are restored together, or not at all.
#[derive(Debug, Clone)]
pub struct Return<'a> {
    pub keys: Vec<&'a HeldKey>,
    /// Other Redis keys of the record that must be absent.
    pub bars: Vec<&'a [u8]>,
}

impl<'a> Return<'a> {
    /// All Redis keys that the script reads: the ones to restore, followed by the bars.
    pub(super) fn all(&self) -> impl Iterator<Item = &'a [u8]> {
        let keys = self.keys.iter().map(|key| key.saved.redis_key.as_slice());
        keys.chain(self.bars.iter().copied())
    }
}

/// The outcome of a Redis key, or why it was not restored.
pub type KeyResult = Result<RestoreOutcome, StoreError>;

/// The outcomes of a record's Redis keys, in their order. One call restores its keys together, or
/// not at all. If a cluster stores a record in several slots, some keys may be restored without
/// the others.
pub type RestoreResult = Vec<KeyResult>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// It was or would be restored, with this many milliseconds left; `None` never expires.
    Restored(Option<u64>),
    /// It was restored: the reply was lost, but a later read showed it.
    FoundBack(Option<u64>),
    /// The Redis key exists, and is left unchanged.
    Present,
    /// Another Redis key of the record exists and prevents the restore.
    Barred,
    Expired,
}

impl RestoreOutcome {
    pub fn is_back(self) -> bool {
        matches!(self, Self::Restored(_) | Self::FoundBack(_))
    }
}
