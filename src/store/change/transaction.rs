//! Redis's optimistic locking: WATCH for the Redis keys of a record, a read, MULTI, the commands and
//! EXEC. If one of the keys changes or expires between WATCH and EXEC, EXEC does nothing.
//!
//! WATCH and MULTI apply to a whole connection, so nobody else may use it meanwhile.

use redis::Value;

use super::identity_commands::{IdentityCommands, call_each};
use super::set_words::Words;
use crate::domain::hash_slot;
use crate::domain::record::Observation;
use crate::store::cluster::client::Client;
use crate::store::cluster::routing::{Route, half_moved};
use crate::store::connection::{Connection, pack, reply};
use crate::store::error::StoreError;

/// How often a transaction is sent while a cluster moves its record to another node: the first try
/// and four redirects. If the slot is still being moved after these, idemctl reports that nothing
/// was done.
const MAX_TRIES: usize = 5;

/// How often a record is read to measure when it expires; see `MAX_MEASUREMENTS` in `deadline.lua`.
const MAX_MEASUREMENTS: usize = 50;

/// A transaction on a connection, after WATCH.
pub(super) struct Transaction<'a> {
    connection: &'a mut Connection,
    route: &'a Route,
}

/// The replies of a transaction, one for each command; `None` if a Redis key changed after WATCH. The
/// error means that EXEC was sent, and its reply was lost.
pub(super) type Executed = Result<Option<Vec<Value>>, StoreError>;

impl Client {
    /// Makes an attempt on the node that serves all of a record's Redis keys. A redirect means that
    /// nothing was done, so the attempt is then repeated on the new node.
    ///
    /// # Errors
    /// A cluster stores the keys in several slots, and a transaction stays in one slot. Or the
    /// cluster cannot be asked for the node. Otherwise the error of the attempt.
    pub(super) async fn at_node_of<T, F: Future<Output = Result<T, StoreError>>>(
        &self,
        keys: &[&[u8]],
        attempt: impl Fn(Route) -> F,
    ) -> Result<T, StoreError> {
        let mut route = Route { node: self.master_of(keys[0]).await?, asking: false };
        if self.is_cluster() && !hash_slot::is_one(keys.iter().copied()) {
            let why = hash_slot::words(keys.iter().copied());
            return Err(StoreError::Apart { target: self.name(), why });
        }
        let mut tries = 0;
        loop {
            let error = match attempt(route).await {
                Err(error) if error.is_redirect() => error,
                made => return made,
            };
            tries += 1;
            if tries == MAX_TRIES {
                return Err(half_moved(&error, keys[0]));
            }
            route = self.redirected(&error, keys[0]).await?;
        }
    }
}

impl<'a> Transaction<'a> {
    /// Begins to watch Redis keys. This comes before the read, because a change between the two
    /// would otherwise go unnoticed.
    ///
    /// # Errors
    /// The errors of any command; nothing was done.
    pub(super) async fn watch(
        connection: &'a mut Connection,
        route: &'a Route,
        keys: &[&[u8]],
    ) -> Result<Self, StoreError> {
        let mut transaction = Self { connection, route };
        let mut watch: Vec<&[u8]> = vec![b"WATCH"];
        watch.extend(keys);
        transaction.ask_first().await?;
        transaction.connection.call_ok(&pack(watch)).await?;
        Ok(transaction)
    }

    /// Reads the record. Before Redis 7.0 it is read again until the deadlines are exact.
    ///
    /// # Errors
    /// The errors of any read; the record may be on another node.
    pub(super) async fn read(
        &mut self,
        identity: &IdentityCommands<'_>,
    ) -> Result<Observation, StoreError> {
        let mut tries = 0;
        loop {
            let seen = identity.observation(self.ask(&identity.commands()).await?)?;
            tries += 1;
            if !seen.has_unknown_deadline() || tries == MAX_MEASUREMENTS {
                return Ok(seen);
            }
        }
    }

    /// Sends commands in one write before MULTI, and returns their replies.
    ///
    /// # Errors
    /// A reply was lost.
    pub(super) async fn ask(&mut self, commands: &[Words]) -> Result<Vec<Value>, StoreError> {
        call_each(self.connection, self.route, commands).await
    }

    /// Executes the commands, unless a Redis key has changed since WATCH.
    ///
    /// # Errors
    /// Nothing was done.
    pub(super) async fn execute(&mut self, commands: &[Words]) -> Result<Executed, StoreError> {
        let executed = self.queue_and_execute(commands).await;
        // Without EXEC, nothing of a transaction is executed. The connection may be used again.
        if executed.as_ref().is_err_and(|error| !error.lost_the_reply()) {
            let _ = self.connection.call(&pack(["DISCARD"])).await;
        }
        executed
    }

    async fn queue_and_execute(&mut self, commands: &[Words]) -> Result<Executed, StoreError> {
        // Before MULTI, ASKING applies to the whole transaction; inside, it would only be queued.
        self.ask_first().await?;
        self.connection.call_ok(&pack(["MULTI"])).await?;
        for command in commands {
            self.connection.call_ok(&pack(command)).await?;
        }
        match self.connection.call_ok(&pack(["EXEC"])).await {
            Ok(Value::Nil) => Ok(Ok(None)),
            Ok(value) => Ok(match reply::array(value) {
                Some(replies) if replies.len() == commands.len() => Ok(Some(replies)),
                _ => Err(self.connection.unexpected("EXEC")),
            }),
            Err(error) if error.is_without_effect() => Err(error),
            Err(why) => Ok(Err(why)),
        }
    }

    /// Sends ASKING to a node that is only importing the record's slot. It holds for the next
    /// command.
    async fn ask_first(&mut self) -> Result<(), StoreError> {
        if self.route.asking {
            self.connection.call_ok(&pack(["ASKING"])).await?;
        }
        Ok(())
    }
}
