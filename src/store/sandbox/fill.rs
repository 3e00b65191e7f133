//! Fills the temporary local Redis. idemctl cannot fill any other server.

use super::server::Sandbox;
use crate::store::cluster::client::connect;
use crate::store::connection::Target;
use crate::store::error::StoreError;

/// One Redis key to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxKey {
    pub redis_key: Vec<u8>,
    pub value: EntryValue,
    /// The time to live in milliseconds; `None` if the key never expires.
    pub ttl_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryValue {
    Text(Vec<u8>),
    /// A hash with one field, which no service would write.
    Hash(Vec<u8>),
}

/// Redis keys per round trip. It may be large, because the server has no other clients.
const BATCH: usize = 2_000;

/// Bytes per round trip, which bounds the memory for large values.
const BATCH_BYTES: usize = 4 << 20;

impl Sandbox {
    /// Writes these Redis keys and returns their number.
    ///
    /// # Errors
    /// The errors of any command; the server may be out of memory.
    pub async fn fill(
        &self,
        like: &Target,
        entries: impl Iterator<Item = SandboxKey>,
    ) -> Result<u64, StoreError> {
        let client = connect(&self.target(like)).await?;
        let mut written = 0;
        let mut entries = entries.peekable();
        while entries.peek().is_some() {
            let mut pipeline = redis::pipe();
            let mut keys = 0;
            let mut bytes = 0;
            while let Some(entry) = entries.next_if(|_| keys < BATCH && bytes < BATCH_BYTES) {
                keys += 1;
                bytes += add(&mut pipeline, entry);
            }
            for reply in client.ask_all(&pipeline).await? {
                reply?;
            }
            written += keys as u64;
        }
        Ok(written)
    }
}

/// Adds the commands for one entry and returns the size of its value in bytes.
fn add(pipeline: &mut redis::Pipeline, entry: SandboxKey) -> usize {
    let SandboxKey { redis_key, value, ttl_ms } = entry;
    match value {
        EntryValue::Text(text) => {
            let set = pipeline.cmd("SET").arg(&redis_key).arg(&text);
            if let Some(ttl_ms) = ttl_ms {
                set.arg("PX").arg(ttl_ms);
            }
            text.len()
        }
        EntryValue::Hash(field) => {
            pipeline.cmd("HSET").arg(&redis_key).arg(&field).arg(&field);
            if let Some(ttl_ms) = ttl_ms {
                pipeline.cmd("PEXPIRE").arg(&redis_key).arg(ttl_ms);
            }
            field.len()
        }
    }
}
