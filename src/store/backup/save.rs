//! What a backup needs of Redis keys that are about to change.

use super::writer::Saved;
use crate::domain::record::observation::SeenSlot;
use crate::store::cluster::client::Link;
use crate::store::connection::reply;
use crate::store::error::StoreError;

impl Link {
    /// The DUMP of each Redis key, read in one round trip; `None` for one that is gone.
    ///
    /// # Errors
    /// As every read.
    pub(in crate::store) async fn dumps(&self, redis_keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        if redis_keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = redis::Pipeline::with_capacity(redis_keys.len());
        for redis_key in redis_keys {
            pipeline.cmd("DUMP").arg(*redis_key);
        }
        let replies = self.ask_all(&pipeline).await?;
        replies.into_iter().map(|dump| Ok(reply::bytes(dump?))).collect()
    }
}

impl Saved {
    /// What a Redis key held, with the deadline that the look saw: the change compares with it.
    pub(in crate::store) fn of(seen: &SeenSlot, dump: Vec<u8>) -> Self {
        Self {
            redis_key: seen.redis_key.clone(),
            dump,
            ttl_ms: seen.expiry.millis(),
            expires_at_ms: seen.deadline.millis(),
        }
    }
}
