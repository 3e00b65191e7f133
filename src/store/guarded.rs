//! A service's own call, made only if the record is still as it was seen.
//!
//! idemctl's own changes compare and change in one Lua script. A step of a service is the service's script, or its
//! plain command, and goes over the wire exactly as the service sends it: wrapped into another script it would be
//! another one, with other errors, and a script that calls a script there is not. So the comparison is put around it,
//! with Redis's optimistic locking on a connection of its own: WATCH the record's Redis keys, read them again and
//! compare, then MULTI, the call, EXEC. Whatever happens to one of them between WATCH and EXEC, an expiry included,
//! makes EXEC do nothing at all. Behind the call the transaction reads the record once more, so that what the call left
//! is known, whatever comes next, and a second call of the same step can be guarded by it.

use redis::Value;

use super::backup::{About, Backup};
use super::error::StoreError;
use super::read::Head;
use super::reply;
use super::target::Target;
use super::wire::{Wire, pack};
use super::write::Writer;
use crate::domain::observation::{Content, Expiry, Observation, SeenSlot};
use crate::domain::slot;
use crate::domain::step::StepReply;

/// A lock that is taken right before the call, in the same transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// The slot of the lock.
    pub slot: usize,
    /// Its value.
    pub value: Vec<u8>,
    /// Its TTL in milliseconds.
    pub ttl_ms: u64,
}

/// What became of a guarded call.
#[derive(Debug)]
pub enum Guard {
    /// It was made.
    Made {
        /// Its reply; an error that speaks of the server or the user.
        reply: Result<StepReply, StoreError>,
        /// The record right before.
        before: Observation,
        /// The record right after.
        after: Observation,
    },
    /// The record was no longer as it was seen; nothing was done.
    Changed,
    /// It was sent, and its reply was lost.
    Lost {
        /// What is there now, where that can be read.
        now: Option<Observation>,
        /// Why the reply was lost.
        why: StoreError,
    },
}

/// How often a record is looked for that a cluster moves.
const MOST_TRIES: usize = 5;

/// The words of a command.
type Words = Vec<Vec<u8>>;

impl Writer {
    /// Makes a call if the record is still as it was seen, whole; with a lock, where one is to be taken for it.
    ///
    /// # Errors
    /// What came in between before anything was done.
    pub async fn call(&self, seen: &Observation, hold: Option<&Hold>, call: Words) -> Result<Guard, StoreError> {
        let lock = hold.map(|hold| {
            let redis_key = seen.slots[hold.slot].redis_key.clone();
            let ttl = hold.ttl_ms.to_string().into_bytes();
            vec![b"SET".to_vec(), redis_key, hold.value.clone(), b"PX".to_vec(), ttl]
        });
        self.link().masters().await?;
        let before = self.link().slot_map();
        let guard = self.guarded(seen, lock.into_iter().chain([call]).collect()).await?;
        if !matches!(guard, Guard::Made { .. }) {
            return Ok(guard);
        }
        match self.follow(before.as_deref()).await {
            Ok(None) => Ok(guard),
            // What was done on the master of before may be lost.
            Ok(Some(why)) | Err(why) => Ok(Guard::Lost { now: self.look_again(seen).await, why }),
        }
    }

    /// Puts back what stood there before a call, if it is still as the call left it; true when that was done.
    ///
    /// # Errors
    /// What came in between before anything was done.
    pub async fn put_back(&self, before: &Observation, after: &Observation) -> Result<bool, StoreError> {
        let commands = before.slots.iter().map(|slot| match &slot.content {
            Content::Text { head, .. } => {
                let mut words = vec![b"SET".to_vec(), slot.redis_key.clone(), head.clone()];
                if let Expiry::In(left) = slot.expiry {
                    words.extend([b"PX".to_vec(), left.max(1).to_string().into_bytes()]);
                }
                words
            }
            _ => vec![b"DEL".to_vec(), slot.redis_key.clone()],
        });
        Ok(matches!(self.guarded(after, commands.collect()).await?, Guard::Made { reply: Ok(_), .. }))
    }

    /// Backs up every Redis key of a record that is there.
    ///
    /// # Errors
    /// When they cannot be read, or the backup cannot be written.
    pub async fn back_up_record(
        &self,
        seen: &Observation,
        about: &About,
        backup: &mut Backup,
    ) -> Result<(), StoreError> {
        // The result before the lock, for restore brings them back in this order: no result comes back beside a lock.
        let there = seen.slots.iter().rev().filter(|slot| slot.content != Content::Absent);
        let redis_keys: Vec<_> = there.map(|slot| slot.redis_key.as_slice()).collect();
        let saved = self.link().save(&redis_keys).await?;
        let from = self.provenance().await?;
        backup.append(&from, saved.iter().flatten().map(|saved| (saved, about, seen))).await
    }

    /// On the node that serves the record; when it has moved, which means that nothing was done, on the one that does.
    async fn guarded(&self, seen: &Observation, commands: Vec<Words>) -> Result<Guard, StoreError> {
        for _ in 1..MOST_TRIES {
            match self.guarded_here(seen, &commands).await {
                Err(error) if error.is_redirect() => self.link().learn().await?,
                other => return other,
            }
        }
        self.guarded_here(seen, &commands).await
    }

    async fn guarded_here(&self, seen: &Observation, commands: &[Words]) -> Result<Guard, StoreError> {
        let keys: Vec<_> = seen.slots.iter().map(|slot| slot.redis_key.as_slice()).collect();
        let mut wire = Wire::dial(&self.node_of(&keys).await?).await?;
        wire.tell(&pack([&b"WATCH"[..]].into_iter().chain(keys.iter().copied()))).await?;
        let mut values = Vec::with_capacity(keys.len() * 2);
        for words in keys.iter().flat_map(|key| reads(key)) {
            values.push(wire.exchange(&pack(words)).await?);
        }
        let before = self.observed(seen, values)?;
        if !seen.is_still(&before) {
            return Ok(Guard::Changed);
        }
        wire.tell(&pack(["MULTI"])).await?;
        let count = commands.len();
        // What is refused here ends it: nothing of a transaction is done before EXEC, and without EXEC nothing ever is.
        for command in commands {
            wire.tell(&pack(command)).await?;
        }
        for words in keys.iter().flat_map(|key| reads(key)) {
            wire.tell(&pack(words)).await?;
        }
        match wire.tell(&pack(["EXEC"])).await {
            Ok(Value::Nil) => Ok(Guard::Changed),
            Ok(value) => {
                let mut replies = reply::array(value).ok_or_else(|| self.link().unexpected("EXEC"))?;
                if replies.len() != count + keys.len() * 2 {
                    return Err(self.link().unexpected("EXEC"));
                }
                self.wait_behind(&mut wire).await;
                let after = self.observed(seen, replies.split_off(count))?;
                let call = replies.pop().ok_or_else(|| self.link().unexpected("EXEC"))?;
                // Without its lock the call came to nothing.
                let lock = replies.into_iter().map(|reply| self.no_error(reply)).collect::<Result<Vec<_>, _>>();
                let reply = lock.and_then(|_| wire.step_reply(call));
                Ok(Guard::Made { reply, before, after })
            }
            // The handshake is long over: TLS trouble now means that the reply cannot be read.
            Err(why) if why.lost_the_reply() || why.is_of_tls() => {
                Ok(Guard::Lost { now: self.look_again(seen).await, why })
            }
            Err(error) => Err(error),
        }
    }

    /// The node that serves all of a record's Redis keys.
    async fn node_of(&self, keys: &[&[u8]]) -> Result<Target, StoreError> {
        let node = self.link().master_of(keys[0]).await?;
        if self.link().is_cluster() && !slot::is_one(keys.iter().copied()) {
            let why = slot::words(keys.iter().copied());
            return Err(StoreError::Apart { target: self.link().name(), why });
        }
        Ok(node)
    }

    /// On a new connection, for the old one may be what was lost.
    async fn look_again(&self, seen: &Observation) -> Option<Observation> {
        let link = self.link().anew().await.ok()?;
        let keys = seen.slots.iter().map(|slot| slot.redis_key.clone()).collect();
        link.reader().observe(&[keys], Head::Whole).await.ok()?.pop()?.ok()
    }

    /// Takes the replies to [`reads`] for what they say.
    fn observed(&self, seen: &Observation, replies: Vec<Value>) -> Result<Observation, StoreError> {
        let mut replies = replies.into_iter();
        let mut next = || replies.next().ok_or_else(|| self.link().unexpected("GET"));
        let slot = |seen: &SeenSlot| {
            let (value, pttl) = (next()?, self.no_error(next()?)?);
            let pttl = reply::integer(&pttl).ok_or_else(|| self.link().unexpected("PTTL"))?;
            let content = match value {
                _ if pttl == -2 => Content::Absent,
                Value::ServerError(error) if error.code() == "WRONGTYPE" => Content::Other(String::new()),
                value => reply::bytes(self.no_error(value)?).map_or(Content::Absent, Content::text),
            };
            let redis_key = seen.redis_key.clone();
            Ok(SeenSlot { redis_key, content, expiry: Expiry::from_pttl(pttl), idle: None, memory: None })
        };
        let slots = seen.slots.iter().map(slot).collect::<Result<_, StoreError>>()?;
        Ok(Observation { server_ms: seen.server_ms, slots, atomic: true })
    }

    fn no_error(&self, reply: Value) -> Result<Value, StoreError> {
        match reply {
            Value::ServerError(error) => Err(self.link().error(&error.into())),
            reply => Ok(reply),
        }
    }
}

/// Value and expiry of a Redis key.
fn reads(key: &[u8]) -> [[&[u8]; 2]; 2] {
    [[b"GET", key], [b"PTTL", key]]
}
