//! One server behind a client: its connection, and the options that idemctl sets on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use redis::{Cmd, Pipeline, Value};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::store::connection::{ClientOption, Connection, Target, diagnose};
use crate::store::error::StoreError;

/// A connection to one server; clones share it and take turns.
#[derive(Clone)]
pub(in crate::store) struct Node {
    connection: Arc<Mutex<Connection>>,
    target: Target,
    greeted: Arc<AtomicBool>,
    answered: Arc<AtomicBool>,
}

/// Connects to a server.
///
/// Before the first command, this sends only the log-in if there is a password, and `SELECT` if a
/// database was chosen. A wrong password therefore fails here, a missing one at the first command.
///
/// # Errors
/// The server is unreachable, does not answer in time, or refuses the log-in.
pub(in crate::store) async fn connect(target: &Target) -> Result<Node, StoreError> {
    let connection = Arc::new(Mutex::new(Connection::open(target).await?));
    Ok(Node {
        connection,
        target: target.clone(),
        greeted: Arc::default(),
        answered: Arc::default(),
    })
}

impl Node {
    pub(in crate::store) fn target(&self) -> &Target {
        &self.target
    }

    /// True if the connection took the place of another one after this moment.
    pub(in crate::store) async fn was_reopened(&self, since: Instant) -> bool {
        self.connection.lock().await.reopened_at.is_some_and(|at| at >= since)
    }

    /// The connection, which nobody else uses until the guard is dropped.
    ///
    /// # Errors
    /// The Redis user may not send UNWATCH, which ends a transaction that left its record alone.
    pub(in crate::store) async fn lock(&self) -> Result<OwnedMutexGuard<Connection>, StoreError> {
        self.ask(&redis::cmd("UNWATCH")).await?;
        Ok(Arc::clone(&self.connection).lock_owned().await)
    }

    pub(in crate::store) async fn ask(&self, command: &Cmd) -> Result<Value, StoreError> {
        let mut pipeline = redis::pipe();
        pipeline.add_command(command.clone());
        match self.ask_pipeline(pipeline).await?.pop() {
            Some(reply) => reply,
            None => Err(StoreError::UnexpectedReply {
                target: self.target.to_string(),
                asked: "a command".to_owned(),
            }),
        }
    }

    /// Sends commands in one write and returns a reply or an error for each.
    pub(in crate::store) async fn ask_pipeline(
        &self,
        commands: Pipeline,
    ) -> Result<Vec<Result<Value, StoreError>>, StoreError> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        if self.connection.lock().await.renew_log_in().await? {
            // Its name and its options were those of the former connection.
            self.greeted.store(false, Ordering::Relaxed);
        }
        let options = self.options_to_send().await?;
        let mut pipeline = commands;
        if !options.is_empty() {
            let asked = std::mem::take(&mut pipeline);
            for option in &options {
                pipeline.cmd(option.words()[0]).arg(&option.words()[1..]);
            }
            for command in asked.cmd_iter() {
                pipeline.add_command(command.clone());
            }
        }
        // The options are never sent alone, because a server at its client limit may answer them and
        // then close.
        let replies = self.send(&pipeline).await?;
        self.answered.store(true, Ordering::Relaxed);
        let mut replies = replies.into_iter();
        for (option, reply) in options.into_iter().zip(replies.by_ref()) {
            // The error is ignored: if it matters, the commands after the options get it as well.
            let _ = self.target.client_options.record_reply(option, reply);
        }
        Ok(replies.collect())
    }

    async fn send(
        &self,
        pipeline: &Pipeline,
    ) -> Result<Vec<Result<Value, StoreError>>, StoreError> {
        let count = pipeline.cmd_iter().count();
        let exchanged =
            self.connection.lock().await.call_all(&pipeline.get_packed_pipeline(), count).await;
        let replies = match exchanged {
            Ok(replies) => replies,
            Err(error) => return Err(self.explain_error(error).await),
        };
        let mut results = Vec::with_capacity(count);
        for reply in replies {
            results.push(match reply {
                Value::ServerError(error) => Err(self.error(&error.into())),
                value => Ok(value),
            });
        }
        Ok(results)
    }

    /// The client options to set with the first commands, unless the server refused them before:
    /// the connection's name, and CLIENT NO-TOUCH, which leaves eviction data unchanged. The first
    /// connection of a run, to whichever node of a cluster, needs one round trip more for HELLO, to
    /// learn which kind of server it is.
    async fn options_to_send(&self) -> Result<Vec<ClientOption>, StoreError> {
        if self.greeted.swap(true, Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        if self.target.client_options.claim_first_hello() {
            let mut hello = redis::pipe();
            hello.cmd("HELLO");
            let reply = self.send(&hello).await?.pop();
            // The server closes or rejects this connection, so further commands would fail as well.
            if let Some(Err(error)) = &reply
                && error.turns_away()
            {
                return Err(error.clone());
            }
            self.target.client_options.record_hello(reply.and_then(Result::ok));
        }
        let mut options = Vec::new();
        for option in [ClientOption::Name, ClientOption::NoTouch] {
            if self.target.client_options.is_enabled(option) {
                options.push(option);
            }
        }
        Ok(options)
    }

    /// Explains an error before the first reply: the peer may not be a Redis server, or may accept
    /// only TLS.
    pub(in crate::store) async fn explain_error(&self, error: StoreError) -> StoreError {
        if self.answered.load(Ordering::Relaxed) {
            error
        } else {
            diagnose::explain_error(&self.target, error).await
        }
    }

    pub(in crate::store) fn error(&self, error: &redis::RedisError) -> StoreError {
        StoreError::at(&self.target, error)
    }
}
