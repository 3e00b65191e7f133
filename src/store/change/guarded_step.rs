//! A service's own call, made only if the record is still as it was seen.
//!
//! idemctl's own changes compare and change in one Lua script. A service's step is the service's
//! own script or plain command, and is sent exactly as the service sends it. It cannot be wrapped
//! into another script, because a script cannot call a script, and a wrapped command would return
//! other errors.
//!
//! So the comparison uses Redis's optimistic locking ([`super::transaction`]), on a connection of
//! its own. After the call, the transaction reads the record once more, so that a second call of
//! the same step can be guarded by the state after the first.

use std::time::Instant;

use redis::Value;

use super::identity_commands::IdentityCommands;
use super::set_words::{Words, set_words};
use super::transaction::Transaction;
use super::writer::{ChangeAttempt, Writer};
use crate::domain::record::{Content, Observation};
use crate::domain::step::StepReply;
use crate::store::cluster::routing::Route;
use crate::store::cluster::slot_map::SlotMap;
use crate::store::connection::Connection;
use crate::store::error::{RefusedAt, StoreError};
use crate::store::read::key_query::ReadLimit;

/// A lock that is acquired right before the call, in the same transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepLock {
    /// The Redis key of the lock, by its index in the record.
    pub key_index: usize,
    /// The value that the service gives its locks.
    pub value: Content,
    /// Its TTL in milliseconds.
    pub ttl_ms: u64,
}

/// The outcome of a guarded call.
#[derive(Debug)]
pub enum GuardedOutcome {
    /// It was executed.
    Made {
        /// Its reply, or an error about the server or the user.
        reply: Result<StepReply, StoreError>,
        before: Observation,
        after: Observation,
        /// Why the replicas that the operator requires did not have it in time.
        not_replicated: Option<StoreError>,
    },
    /// The record was no longer as it was seen; nothing was done.
    ChangedMeanwhile,
    /// It was sent, but its reply was lost, or another master took over, so that the change may be
    /// lost.
    Lost {
        /// The record now, if it can be read.
        now: Option<Observation>,
        /// Why the outcome is unknown.
        why: StoreError,
        /// The server to which it was sent. After a failover, the writer uses another one.
        sent_to: String,
    },
}

impl GuardedOutcome {
    /// The outcome of commands that idemctl chose itself: an error reply is an error. A service, in
    /// contrast, decides by any reply to its call.
    pub(super) fn of_own_commands(mut self, server: &str) -> Self {
        if let Self::Made { reply, .. } = &mut self
            && let Ok(StepReply::Error { code, message }) = reply
        {
            *reply = Err(StoreError::ErrorReply {
                target: server.to_owned(),
                code: code.clone(),
                why: message.clone(),
                refused_at: RefusedAt::Command,
            });
        }
        self
    }
}

impl Writer {
    /// Makes a call of a service if the whole record is still as it was seen; with a lock, if one
    /// is to be taken for the call. The fields of the Redis keys in `hash_key_indexes` are read.
    ///
    /// # Errors
    /// Why the call was not made.
    pub async fn call(
        &self,
        seen: &Observation,
        step_lock: Option<&StepLock>,
        call: Words,
        hash_key_indexes: &[usize],
    ) -> Result<GuardedOutcome, StoreError> {
        let mut commands = Vec::new();
        if let Some(step_lock) = step_lock {
            let redis_key = &seen.keys[step_lock.key_index].redis_key;
            commands.extend(set_words(redis_key, &step_lock.value, Some(step_lock.ttl_ms)));
        }
        commands.push(call);
        self.execute_guarded(seen, commands, hash_key_indexes).await
    }

    /// Executes commands in one transaction if the record is still as it was seen. The outcome
    /// contains the reply to the last command.
    ///
    /// # Errors
    /// Why the commands were not executed.
    pub(super) async fn execute_guarded(
        &self,
        seen: &Observation,
        commands: Vec<Words>,
        hash_key_indexes: &[usize],
    ) -> Result<GuardedOutcome, StoreError> {
        let mut attempt = GuardedAttempt {
            seen,
            commands,
            hash_key_indexes,
            server: self.name(),
            outcome: GuardedOutcome::ChangedMeanwhile,
            connection: None,
        };
        self.run_attempt(&mut attempt).await?;
        Ok(attempt.outcome)
    }

    /// The time by the clock of the node that serves a record, in milliseconds since 1970; `None`
    /// if the node does not report it.
    ///
    /// # Errors
    /// The record's Redis keys cannot be read.
    pub async fn time_at(&self, seen: &Observation) -> Result<Option<u64>, StoreError> {
        let keys = seen.keys.iter().map(|key| key.redis_key.clone()).collect();
        let mut read = self.client().reader().read_or_fail(&[keys], ReadLimit::Bytes(1)).await?;
        match read.pop() {
            Some(seen) => Ok(seen?.server_ms),
            None => Ok(None),
        }
    }
}

/// A transaction that does nothing unless the record is still as it was seen.
struct GuardedAttempt<'a> {
    seen: &'a Observation,
    commands: Vec<Words>,
    hash_key_indexes: &'a [usize],
    /// The server before the attempt, for people.
    server: String,
    outcome: GuardedOutcome,
    /// The connection that executed the transaction, because WAIT counts only the changes of its
    /// own connection.
    connection: Option<Connection>,
}

impl ChangeAttempt for GuardedAttempt<'_> {
    async fn send(&mut self, writer: &Writer) -> Result<(), StoreError> {
        let keys = self.redis_keys();
        let sent = writer.client().at_node_of(&keys, |route| self.send_to(writer, route)).await?;
        (self.outcome, self.connection) = sent;
        Ok(())
    }

    fn may_have_changed(&self) -> bool {
        !matches!(self.outcome, GuardedOutcome::ChangedMeanwhile)
    }

    fn changed_keys(&self) -> Vec<&[u8]> {
        self.redis_keys()
    }

    async fn after_failover(
        &mut self,
        writer: &Writer,
        _before: Option<&SlotMap>,
        _sent: Result<(), StoreError>,
        failed_over: StoreError,
    ) -> Result<(), StoreError> {
        // A service's step is never repeated. The current record shows whether it was made.
        self.outcome = self.lost(writer, failed_over, self.server.clone()).await;
        Ok(())
    }

    async fn after_unknown_master(
        &mut self,
        writer: &Writer,
        why: StoreError,
    ) -> Result<(), StoreError> {
        self.outcome = self.lost(writer, why, self.server.clone()).await;
        Ok(())
    }

    async fn wait_for_replicas(&mut self, writer: &Writer, _: Instant) -> Result<(), StoreError> {
        let missing = writer.wait_for_step(self.connection.as_mut()).await;
        if let GuardedOutcome::Made { not_replicated, .. } = &mut self.outcome {
            *not_replicated = missing;
        }
        Ok(())
    }
}

impl<'a> GuardedAttempt<'a> {
    fn redis_keys(&self) -> Vec<&'a [u8]> {
        self.seen.keys.iter().map(|key| key.redis_key.as_slice()).collect()
    }

    /// Executes the transaction on a node. Returns the connection if it was executed.
    ///
    /// # Errors
    /// Nothing was done.
    async fn send_to(
        &self,
        writer: &Writer,
        route: Route,
    ) -> Result<(GuardedOutcome, Option<Connection>), StoreError> {
        let client = writer.client();
        let mut connection = Connection::dial(&route.node).await?;
        // This is asked before MULTI, because an unknown command would abort the transaction.
        let identity =
            IdentityCommands::for_node(&client, &mut connection, self.seen, self.hash_key_indexes)
                .await?;

        let mut transaction =
            Transaction::watch(&mut connection, &route, &self.redis_keys()).await?;
        let before = transaction.read(&identity).await?;
        client.can_compare([self.seen, &before])?;
        if !self.seen.is_still(&before) {
            return Ok((GuardedOutcome::ChangedMeanwhile, None));
        }

        let mut commands = self.commands.clone();
        commands.extend(identity.commands());
        // From here on, an error does not show that nothing was done, so the record is read back.
        let observed = match transaction.execute(&commands).await? {
            Ok(None) => return Ok((GuardedOutcome::ChangedMeanwhile, None)),
            Ok(Some(mut replies)) => {
                let of_reads = replies.split_off(self.commands.len());
                identity.observation(of_reads).map(|after| (replies, after))
            }
            Err(why) => Err(why),
        };
        let (mut replies, after) = match observed {
            Ok(observed) => observed,
            Err(why) => {
                return Ok((self.lost(writer, why, route.node.to_string()).await, None));
            }
        };

        let call = replies.pop().ok_or_else(|| client.unexpected("EXEC"))?;
        let mut reply = connection.step_reply(call);
        // Without its lock the call did nothing, so the lock's error is the real reason.
        for of_lock in replies.into_iter().rev() {
            if let Value::ServerError(error) = of_lock {
                reply = Err(client.error(&error.into()));
            }
        }
        let made = GuardedOutcome::Made { reply, before, after, not_replicated: None };
        Ok((made, Some(connection)))
    }

    /// Reads the record back on a new connection, because the reply to the call was lost.
    async fn lost(&self, writer: &Writer, why: StoreError, sent_to: String) -> GuardedOutcome {
        let now = read_back(writer, self.seen).await;
        GuardedOutcome::Lost { now, why, sent_to }
    }
}

/// The whole current record; `None` if it cannot be read.
async fn read_back(writer: &Writer, seen: &Observation) -> Option<Observation> {
    let client = writer.reconnect().await.ok()?;
    let redis_keys = seen.keys.iter().map(|key| key.redis_key.clone()).collect();
    let mut read = client.reader().read_or_fail(&[redis_keys], ReadLimit::Whole).await.ok()?;
    read.pop()?.ok()
}
