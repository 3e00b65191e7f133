//! A random sample of the members at one Redis key, without their values. Redis sends a value as a
//! whole, so its length is asked first.

use std::sync::Arc;

use redis::Value;

use super::members::redis_key;
use crate::domain::schema::{Catalog, MemberType, Schema};
use crate::store::cluster::client::Client;
use crate::store::connection::reply;
use crate::store::error::StoreError;

/// How many lengths are asked for at a time, so few that other clients do not wait.
const PAGE: usize = 500;

/// The schemas whose records are the members at one Redis key, such as two releases of one service.
pub(crate) struct MemberKey {
    pub(crate) schemas: Vec<Arc<Schema>>,
    members: MemberType,
    redis_key: Vec<u8>,
}

/// A member, and the bytes of its value.
pub(crate) struct SampledMember {
    pub(crate) name: Vec<u8>,
    pub(crate) bytes: usize,
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

    /// Up to `wanted` random members, of `there`. All of their names together have about
    /// `max_bytes` at most.
    ///
    /// # Errors
    /// The errors of any read.
    pub(crate) async fn sample(
        &self,
        client: &Client,
        wanted: usize,
        there: u64,
        max_bytes: usize,
    ) -> Result<Vec<SampledMember>, StoreError> {
        let mut wanted = wanted;
        // Of a set, the names are all there is, and they may be long.
        if self.members != MemberType::Hash {
            let mut usage = redis::cmd("MEMORY");
            usage.arg("USAGE").arg(&self.redis_key);
            let bytes = reply::integer(&client.ask(&usage).await?);
            let bytes = bytes.and_then(|bytes| u64::try_from(bytes).ok()).unwrap_or(0);
            let average = usize::try_from(bytes / there.max(1)).unwrap_or(usize::MAX).max(1);
            wanted = wanted.min(max_bytes / average).max(1);
        }
        let command = match self.members {
            MemberType::Set => "SRANDMEMBER",
            MemberType::Zset => "ZRANDMEMBER",
            MemberType::Hash => "HRANDFIELD",
        };
        let mut random = redis::cmd(command);
        random.arg(&self.redis_key).arg(wanted);
        let names = reply::array(client.ask(&random).await?);
        let names = names.ok_or_else(|| client.unexpected(command))?;
        let mut sampled = Vec::with_capacity(names.len());
        for name in names {
            let name = reply::bytes(name).ok_or_else(|| client.unexpected(command))?;
            sampled.push(SampledMember { name, bytes: 0 });
        }
        if self.members == MemberType::Hash {
            self.read_lengths(client, &mut sampled).await?;
        }
        Ok(sampled)
    }

    async fn read_lengths(
        &self,
        client: &Client,
        sampled: &mut [SampledMember],
    ) -> Result<(), StoreError> {
        for page in sampled.chunks_mut(PAGE) {
            let mut pipeline = redis::pipe();
            for member in page.iter() {
                pipeline.cmd("HSTRLEN").arg(&self.redis_key).arg(&member.name);
            }
            let lengths = client.ask_each(&pipeline).await;
            for (member, length) in page.iter_mut().zip(lengths) {
                let length: Value = length?;
                let length = reply::integer(&length).and_then(|bytes| usize::try_from(bytes).ok());
                member.bytes = length.ok_or_else(|| client.unexpected("HSTRLEN"))?;
            }
        }
        Ok(())
    }
}
