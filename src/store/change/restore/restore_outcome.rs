//! A record that is to come back, and what becomes of it.

use crate::store::backup::HeldKey;
use crate::store::error::StoreError;

/// Redis keys of one record that come back together, or not at all.
#[derive(Debug, Clone)]
pub struct Return<'a> {
    pub keys: Vec<&'a HeldKey>,
    /// Other Redis keys of the record that must not be there now.
    pub bars: Vec<&'a [u8]>,
}

impl<'a> Return<'a> {
    /// All Redis keys that the script reads: those that come back, and behind them the bars.
    pub(super) fn all(&self) -> impl Iterator<Item = &'a [u8]> {
        let keys = self.keys.iter().map(|key| key.saved.redis_key.as_slice());
        keys.chain(self.bars.iter().copied())
    }
}

/// What became of a Redis key, or why it did not come back.
pub type KeyResult = Result<RestoreOutcome, StoreError>;

/// What became of the Redis keys of a record, in their order. Those that one call brings back come back together, or not at
/// all; of a record in two slots of a cluster one may come back and the other not.
pub type RestoreResult = Vec<KeyResult>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// It is back, or would be, with these milliseconds left; `None` without expiry.
    Restored(Option<u64>),
    /// It is back: the reply was lost, and reading back tells.
    FoundBack(Option<u64>),
    /// Something is there, which stays.
    Present,
    /// Another Redis key of the record is there and keeps it away.
    Barred,
    Expired,
}

impl RestoreOutcome {
    pub fn is_back(self) -> bool {
        matches!(self, Self::Restored(_) | Self::FoundBack(_))
    }
}
