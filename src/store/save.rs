//! What a backup needs of Redis keys that are about to change.

use redis::Value;

use super::backup::Saved;
use super::error::StoreError;
use super::link::Link;
use super::reply;
use crate::domain::observation::Expiry;

impl Link {
    /// What `restore` needs of each Redis key, read in one round trip: its DUMP and the moment it expires. `None` for
    /// one that is gone.
    ///
    /// # Errors
    /// As every read; where the server's time may not be asked, for without it nobody knows when a key is to expire.
    pub(super) async fn save(&self, redis_keys: &[&[u8]]) -> Result<Vec<Option<Saved>>, StoreError> {
        if redis_keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = redis::Pipeline::with_capacity(redis_keys.len() * 2 + 1);
        for redis_key in redis_keys {
            pipeline.cmd("DUMP").arg(*redis_key);
            pipeline.cmd("PTTL").arg(*redis_key);
        }
        pipeline.cmd("TIME");
        let mut replies = self.ask_all(&pipeline).await?.into_iter();
        let mut read = Vec::with_capacity(redis_keys.len());
        for redis_key in redis_keys {
            let (Some(dump), Some(pttl)) = (replies.next(), replies.next()) else {
                return Err(self.unexpected("DUMP"));
            };
            let pttl = reply::integer(&pttl?).ok_or_else(|| self.unexpected("PTTL"))?;
            read.push((redis_key, reply::bytes(dump?), Expiry::from_pttl(pttl).millis()));
        }
        let time = replies.next().ok_or_else(|| self.unexpected("TIME"))??;
        let now = server_millis(time).ok_or_else(|| self.unexpected("TIME"))?;
        let saved = read.into_iter().map(|(redis_key, dump, ttl_ms)| {
            let expires_at_ms = ttl_ms.map(|left| now.saturating_add(left));
            Some(Saved { redis_key: redis_key.to_vec(), dump: dump?, ttl_ms, expires_at_ms })
        });
        Ok(saved.collect())
    }
}

/// The reply of TIME in milliseconds since the epoch.
pub(super) fn server_millis(time: Value) -> Option<u64> {
    let [seconds, micros] = <[Value; 2]>::try_from(reply::array(time)?).ok()?;
    let seconds: u64 = reply::word(seconds)?.parse().ok()?;
    let micros: u64 = reply::word(micros)?.parse().ok()?;
    Some(seconds * 1_000 + micros / 1_000)
}
