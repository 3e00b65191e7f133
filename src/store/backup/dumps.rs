//! Reads the DUMPs of Redis keys before they change.

use crate::store::cluster::client::Client;
use crate::store::connection::reply;
use crate::store::error::StoreError;

impl Client {
    /// The DUMP of each Redis key, read in one round trip; `None` for an absent key.
    pub(in crate::store) async fn dumps(
        &self,
        redis_keys: &[&[u8]],
    ) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        self.dump_each(redis_keys).await?.into_iter().collect()
    }

    /// The same, with a separate error for each Redis key.
    ///
    /// # Errors
    /// A server could not be reached at all.
    pub(in crate::store) async fn dump_each(
        &self,
        redis_keys: &[&[u8]],
    ) -> Result<Vec<Result<Option<Vec<u8>>, StoreError>>, StoreError> {
        if redis_keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = redis::Pipeline::with_capacity(redis_keys.len());
        for redis_key in redis_keys {
            pipeline.cmd("DUMP").arg(*redis_key);
        }
        let replies = self.ask_all(&pipeline).await?;
        Ok(replies.into_iter().map(|dump| Ok(reply::bytes(dump?))).collect())
    }
}
