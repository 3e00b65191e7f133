//! How many records are members of one Redis key.

use std::sync::Arc;

use super::members::redis_key;
use crate::domain::schema::{Catalog, MemberType, Schema};
use crate::store::cluster::client::Client;
use crate::store::connection::reply;
use crate::store::error::StoreError;

/// The schemas whose records are the members at one Redis key, such as two releases of one service.
pub(crate) struct MemberKey {
    pub(crate) schemas: Vec<Arc<Schema>>,
    members: MemberType,
    redis_key: Vec<u8>,
}

impl MemberKey {
    /// The Redis keys of all scanned schemas whose records are members, each once.
    pub(crate) fn of_catalog(catalog: &Catalog) -> Vec<Self> {
        let mut keys: Vec<Self> = Vec::new();
        for schema in catalog.scanned() {
            let Some(members) = schema.members else { continue };
            let redis_key = redis_key(&schema);
            let same = keys
                .iter_mut()
                .find(|known| known.members == members && known.redis_key == redis_key);
            match same {
                Some(known) => known.schemas.push(schema),
                None => keys.push(Self { schemas: vec![schema], members, redis_key }),
            }
        }
        keys
    }

    /// How many members there are; 0 if the Redis key has another type.
    ///
    /// # Errors
    /// The errors of any read.
    pub(crate) async fn count(&self, client: &Client) -> Result<u64, StoreError> {
        let command = match self.members {
            MemberType::Set => "SCARD",
            MemberType::Zset => "ZCARD",
            MemberType::Hash => "HLEN",
        };
        let mut count = redis::cmd(command);
        count.arg(&self.redis_key);
        match client.ask(&count).await {
            Ok(reply) => {
                let count = reply::integer(&reply).and_then(|count| u64::try_from(count).ok());
                count.ok_or_else(|| client.unexpected(command))
            }
            Err(error) if error.is_wrong_type() => Ok(0),
            Err(error) => Err(error),
        }
    }
}
