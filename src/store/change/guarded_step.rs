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

use super::asked::{DeadlineCommand, IdentityCommands, fields_of};
use super::set_words::{Words, set_words};
use super::writer::Writer;
use crate::domain::hash_slot;
use crate::domain::record::{Content, Expiry, Observation, SeenKey};
use crate::domain::step::StepReply;
use crate::store::backup::{About, Backup, BackupEntry, Saved};
use crate::store::cluster::deadlines::{TRIED, is_known as knows_pexpiretime};
use crate::store::cluster::routing::{Route, half_moved};
use crate::store::connection::{Connection, Target, pack, reply};
use crate::store::error::StoreError;
use crate::store::read::observed::observation;
use crate::store::read::reader::ReadLimit;
use crate::store::scripts;

/// A lock that is taken right before the call, in the same transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    pub role: usize,
    pub value: Content,
    /// Its TTL in milliseconds.
    pub ttl_ms: u64,
}

#[derive(Debug)]
pub enum StepOutcome {
    Made {
        /// Its reply; an error that speaks of the server or the user.
        reply: Result<StepReply, StoreError>,
        before: Observation,
        after: Observation,
    },
    /// The record was no longer as it was seen; nothing was done.
    Changed,
    /// It was sent, and no reply tells what became of it.
    Lost {
        /// What is there now, where that can be read.
        now: Option<Observation>,
        /// What came in place of such a reply.
        why: StoreError,
        /// The server that it was sent to: after a failover the writer works on another one.
        sent_to: String,
    },
}

/// How often a record is looked for that a cluster moves.
const MOST_TRIES: usize = 5;

/// Commands of one transaction.
pub(super) struct Calls {
    pub(super) commands: Vec<Words>,
    /// The Redis keys whose fields are told before and behind them, by their place.
    pub(super) hashes: Vec<usize>,
}

/// Says ASKING to a node that is only importing the record's slot. That holds for the next command.
async fn ask_first(connection: &mut Connection, route: &Route) -> Result<(), StoreError> {
    if route.asking {
        connection.tell(&pack(["ASKING"])).await?;
    }
    Ok(())
}

impl From<Vec<Words>> for Calls {
    fn from(commands: Vec<Words>) -> Self {
        Self { commands, hashes: Vec::new() }
    }
}

impl Writer {
    /// Makes a call if the record is still as it was seen, whole; with a lock, where one is to be taken for it. Of the Redis keys
    /// in `hashes`, by their place, fields are told.
    ///
    /// # Errors
    /// What came in between before anything was done.
    pub async fn call(
        &self,
        seen: &Observation,
        hold: Option<&Hold>,
        call: Words,
        hashes: &[usize],
    ) -> Result<StepOutcome, StoreError> {
        let lock = hold
            .map(|hold| set_words(&seen.keys[hold.role].redis_key, &hold.value, Some(hold.ttl_ms)));
        let commands = lock.into_iter().flatten().chain([call]).collect();
        self.guard_and_follow(seen, Calls { commands, hashes: hashes.to_vec() }).await
    }

    /// Makes calls in one transaction if the record is still as it was seen, and says so where another master has taken over.
    pub(super) async fn guard_and_follow(
        &self,
        seen: &Observation,
        calls: Calls,
    ) -> Result<StepOutcome, StoreError> {
        self.client().masters().await?;
        let before = self.client().slot_map();
        let sent_to = self.name();
        let guard = self.guarded(seen, &calls).await?;
        if !matches!(guard, StepOutcome::Made { .. }) {
            return Ok(guard);
        }
        match self.follow(before.as_deref()).await {
            Ok(None) => Ok(guard),
            // What was done on the master of before may be lost.
            Ok(Some(why)) | Err(why) => {
                Ok(StepOutcome::Lost { now: self.recheck(seen).await, why, sent_to })
            }
        }
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
        let mut roles = Vec::with_capacity(seen.keys.len());
        let mut redis_keys = Vec::with_capacity(seen.keys.len());
        for (role, key) in seen.keys.iter().enumerate() {
            if key.content != Content::Absent {
                roles.push(role);
                redis_keys.push(key.redis_key.as_slice());
            }
        }
        let mut saved = Vec::with_capacity(roles.len());
        for (role, dump) in roles.into_iter().zip(self.client().dumps(&redis_keys).await?) {
            saved.extend(dump.map(|dump| (role, Saved::of(&seen.keys[role], dump))));
        }
        if saved.is_empty() {
            return Ok(());
        }
        let from = self.provenance().await?;
        let entry = BackupEntry::new(about, seen, saved.iter().map(|(role, saved)| (*role, saved)));
        backup.append(&from, std::iter::once(entry)).await
    }

    /// On the node that serves the record; when it has moved, which means that nothing was done, on the one that does.
    pub(super) async fn guarded(
        &self,
        seen: &Observation,
        calls: &Calls,
    ) -> Result<StepOutcome, StoreError> {
        let keys: Vec<_> = seen.keys.iter().map(|key| key.redis_key.as_slice()).collect();
        let mut route = Route { node: self.node_of(&keys).await?, asking: false };
        for _ in 1..MOST_TRIES {
            match self.guarded_at(&route, seen, calls).await {
                Err(error) if error.is_redirect() => {
                    route = self.client().redirected(&error, keys[0]).await?
                }
                other => return other,
            }
        }
        let last = self.guarded_at(&route, seen, calls).await;
        last.map_err(|error| if error.is_redirect() { half_moved(&error, keys[0]) } else { error })
    }

    async fn guarded_at(
        &self,
        route: &Route,
        seen: &Observation,
        calls: &Calls,
    ) -> Result<StepOutcome, StoreError> {
        let keys: Vec<_> = seen.keys.iter().map(|key| key.redis_key.as_slice()).collect();
        let mut connection = Connection::dial(&route.node).await?;
        // Tried before MULTI: an unknown command there would end the transaction.
        let reads = self.reads_there(&mut connection).await?;
        ask_first(&mut connection, route).await?;
        connection.tell(&pack([&b"WATCH"[..]].into_iter().chain(keys.iter().copied()))).await?;
        let asked = IdentityCommands { seen, reads, hashes: &calls.hashes };
        let before = self.before(&mut connection, route, &asked).await?;
        self.client().can_compare([seen, &before])?;
        if !seen.is_still(&before) {
            return Ok(StepOutcome::Changed);
        }
        // Before MULTI it holds for the whole transaction; inside it would only be queued.
        ask_first(&mut connection, route).await?;
        connection.tell(&pack(["MULTI"])).await?;
        let (count, asks, sent_to) = (calls.commands.len(), asked.words(), route.node.to_string());
        // What is refused here ends it: nothing of a transaction is done before EXEC, and without EXEC nothing ever is.
        for command in &calls.commands {
            connection.tell(&pack(command)).await?;
        }
        for words in &asks {
            connection.tell(&pack(words)).await?;
        }
        match connection.tell(&pack(["EXEC"])).await {
            Ok(Value::Nil) => Ok(StepOutcome::Changed),
            Ok(value) => {
                let replies =
                    reply::array(value).filter(|replies| replies.len() == count + asks.len());
                let Some(mut replies) = replies else {
                    return Ok(StepOutcome::Lost {
                        now: self.recheck(seen).await,
                        why: self.client().unexpected("EXEC"),
                        sent_to,
                    });
                };
                self.wait_behind(&mut connection).await;
                let after = match self.observed(&asked, replies.split_off(count)) {
                    Ok(after) => after,
                    Err(why) => {
                        return Ok(StepOutcome::Lost {
                            now: self.recheck(seen).await,
                            why,
                            sent_to,
                        });
                    }
                };
                let call = replies.pop().ok_or_else(|| self.client().unexpected("EXEC"))?;
                // Without its lock the call came to nothing.
                let lock = replies
                    .into_iter()
                    .map(|reply| self.no_error(reply))
                    .collect::<Result<Vec<_>, _>>();
                let reply = lock.and_then(|_| connection.step_reply(call));
                Ok(StepOutcome::Made { reply, before, after })
            }
            Err(error) if error.is_without_effect() => Err(error),
            Err(why) => Ok(StepOutcome::Lost { now: self.recheck(seen).await, why, sent_to }),
        }
    }

    /// The node that serves all of a record's Redis keys.
    async fn node_of(&self, keys: &[&[u8]]) -> Result<Target, StoreError> {
        let node = self.client().master_of(keys[0]).await?;
        if self.client().is_cluster() && !hash_slot::is_one(keys.iter().copied()) {
            let why = hash_slot::words(keys.iter().copied());
            return Err(StoreError::Apart { target: self.client().name(), why });
        }
        Ok(node)
    }

    /// On a new connection, for the old one may be what was lost.
    async fn recheck(&self, seen: &Observation) -> Option<Observation> {
        let client = self.client().anew().await.ok()?;
        let keys = seen.keys.iter().map(|key| key.redis_key.clone()).collect();
        client.reader().observe(&[keys], ReadLimit::Whole).await.ok()?.pop()?.ok()
    }

    /// How the node tells of a Redis key.
    async fn reads_there(
        &self,
        connection: &mut Connection,
    ) -> Result<DeadlineCommand, StoreError> {
        let tried = match connection.exchange(&pack(["PEXPIRETIME", TRIED])).await? {
            Value::ServerError(error) => Err(self.client().error(&error.into())),
            value => Ok(value),
        };
        Ok(if knows_pexpiretime(tried.as_ref()) {
            DeadlineCommand::Deadline
        } else {
            DeadlineCommand::Time
        })
    }

    /// The record before the call. Where TIME and PTTL tell its deadline a script asks both at one moment, for their
    /// round trips lie too far apart.
    async fn before(
        &self,
        connection: &mut Connection,
        route: &Route,
        asked: &IdentityCommands<'_>,
    ) -> Result<Observation, StoreError> {
        let keys: Vec<_> = asked.seen.keys.iter().map(|key| key.redis_key.clone()).collect();
        if asked.reads == DeadlineCommand::Time {
            let count = keys.len().to_string().into_bytes();
            let call = [b"EVAL".to_vec(), scripts::OBSERVE.into(), count]
                .into_iter()
                .chain(keys.iter().cloned());
            ask_first(connection, route).await?;
            let reply = connection.tell(&pack(call.chain([b"-1".to_vec(), b"0".to_vec()]))).await?;
            // Nobody asked for CLIENT NO-TOUCH on this connection.
            return observation(reply, &keys, false)
                .ok_or_else(|| self.client().unexpected("EVAL"));
        }
        let mut replies = Vec::new();
        for words in asked.words() {
            ask_first(connection, route).await?;
            replies.push(connection.exchange(&pack(words)).await?);
        }
        self.observed(asked, replies)
    }

    /// Takes the replies to [`IdentityCommands::words`] for what they say.
    fn observed(
        &self,
        asked: &IdentityCommands<'_>,
        replies: Vec<Value>,
    ) -> Result<Observation, StoreError> {
        let mut replies = replies.into_iter();
        let mut next = || replies.next().ok_or_else(|| self.client().unexpected("GET"));
        let observed = |(place, seen): (usize, &SeenKey)| {
            let is_hash = asked.is_hash(place);
            let (value, kind) = (next()?, self.no_error(next()?)?);
            let (pttl, moment) = (self.no_error(next()?)?, self.no_error(next()?)?);
            let fields = if is_hash { Some(next()?) } else { None };
            let pttl = reply::integer(&pttl).ok_or_else(|| self.client().unexpected("PTTL"))?;
            let mut checksum = None;
            let content = match value {
                _ if pttl == -2 => Content::Absent,
                Value::BulkString(dump) if is_hash || seen.content.other_type().is_some() => {
                    checksum = dump.last_chunk().copied();
                    let fields = fields.and_then(fields_of);
                    fields.unwrap_or_else(|| Content::Other(reply::word(kind).unwrap_or_default()))
                }
                Value::ServerError(error) if error.code() == "WRONGTYPE" => {
                    Content::Other(reply::word(kind).unwrap_or_default())
                }
                value => reply::bytes(self.no_error(value)?).map_or(Content::Absent, Content::text),
            };
            let deadline = asked
                .reads
                .deadline(moment, pttl)
                .ok_or_else(|| self.client().unexpected(asked.reads.command()))?;
            let told = SeenKey::new(&seen.redis_key, content, Expiry::from_pttl(pttl), deadline);
            Ok(SeenKey { checksum, ..told })
        };
        let keys =
            asked.seen.keys.iter().enumerate().map(observed).collect::<Result<_, StoreError>>()?;
        Ok(Observation { server_ms: asked.seen.server_ms, keys, atomic: true })
    }

    fn no_error(&self, reply: Value) -> Result<Value, StoreError> {
        match reply {
            Value::ServerError(error) => Err(self.client().error(&error.into())),
            reply => Ok(reply),
        }
    }
}
