//! Performs single calls on a server: puts the Redis keys into a state, sends the call, reads what stands there then.

use std::time::{Duration, Instant};

use super::cast::Cast;
use crate::domain::exploration::{Held, Keys};
use crate::domain::record::Content;
use crate::domain::step::StepReply;
use crate::explore::{Perform, Performed};
use crate::interrupt::Interrupt;
use crate::sim::content;
use crate::store::{Connection, StoreError, pack};

/// A call that took longer is performed again, for the time that it took would show in the TTLs.
const QUICK: Duration = Duration::from_millis(50);

/// How often a call is performed until it was quick.
const TRIES: usize = 200;

pub(crate) struct Stage<'a> {
    pub(crate) cast: Cast,
    connection: Connection,
    redis_keys: Vec<Vec<u8>>,
    interrupt: &'a Interrupt,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(cast: Cast, connection: Connection, interrupt: &'a Interrupt) -> Self {
        let redis_keys = cast.program.services[0].redis_keys(&cast.key);
        Self { cast, connection, redis_keys, interrupt }
    }

    async fn set(&mut self, keys: &Keys) -> Result<(), StoreError> {
        for (redis_key, held) in self.redis_keys.iter().zip(&keys.held) {
            self.connection.ask(&pack([b"DEL", &redis_key[..]])).await?;
            if let Some(held) = held {
                let ttl = held.ttl_ms.unwrap_or(0).to_string();
                self.connection.ask(&pack([b"RESTORE", &redis_key[..], ttl.as_bytes(), &held.dump])).await?;
            }
        }
        Ok(())
    }

    async fn read(&mut self, clock_ms: u64) -> Result<Keys, StoreError> {
        let mut pttls = Vec::new();
        for redis_key in &self.redis_keys {
            pttls.push(match self.connection.ask(&pack([b"PTTL", &redis_key[..]])).await? {
                StepReply::Integer(pttl) => pttl,
                _ => -2,
            });
        }
        let mut held = Vec::new();
        for (redis_key, pttl) in self.redis_keys.clone().iter().zip(pttls) {
            let dump = self.connection.ask(&pack([b"DUMP", &redis_key[..]])).await?;
            held.push(match dump {
                StepReply::Text(dump) => Some(Held::read(dump, self.content(redis_key).await?, pttl)),
                _ => None,
            });
        }
        Ok(Keys { held, clock_ms })
    }

    async fn content(&mut self, redis_key: &[u8]) -> Result<Content, StoreError> {
        match content::of_text(self.connection.ask(&pack([b"GET", redis_key])).await?) {
            Some(content) => Ok(content),
            None => Ok(content::of_hash(self.connection.ask(&pack([b"HGETALL", redis_key])).await?)),
        }
    }

    /// Removes the Redis keys.
    pub(crate) async fn clear(&mut self) -> Result<(), StoreError> {
        let nothing = Keys::absent(self.redis_keys.len());
        self.set(&nothing).await
    }
}

impl Perform for Stage<'_> {
    type Error = StoreError;

    async fn perform(&mut self, before: &Keys, caller: u8, ask: u8) -> Result<Performed, StoreError> {
        let call = pack(self.cast.words(caller, ask, before.clock_ms));
        let mut tries = 0;
        loop {
            let since = Instant::now();
            self.set(before).await?;
            let reply = self.connection.ask(&call).await?;
            let keys = self.read(before.clock_ms).await?;
            tries += 1;
            if since.elapsed() < QUICK || tries == TRIES {
                let (fingerprint, now_ms) = (self.cast.fingerprint(caller), Cast::now_ms(before.clock_ms));
                return Ok(Performed { reply, fingerprint, now_ms, keys });
            }
        }
    }

    async fn is_over(&mut self) -> bool {
        // Ctrl-C is heard by a task that has to get its turn.
        tokio::task::yield_now().await;
        self.interrupt.is_raised()
    }
}
