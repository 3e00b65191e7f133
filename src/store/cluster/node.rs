//! One server behind a client: its connection, and what was said to greet it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redis::{Cmd, Pipeline, Value};
use tokio::sync::Mutex;

use crate::store::connection::{ClientOption, Connection, Target, diagnose};
use crate::store::error::StoreError;

/// A connection to one server, which several may use in turn.
#[derive(Clone)]
pub(in crate::store) struct Node {
    connection: Arc<Mutex<Connection>>,
    target: Target,
    greeted: Arc<AtomicBool>,
    answered: Arc<AtomicBool>,
}

/// Connects to a server.
///
/// Nothing is sent before the first command, but for the log-in where there is a password and `SELECT` where there is
/// a database: a wrong password is known here, a missing one with the first command.
///
/// # Errors
/// Unreachable, timed out, or the log-in refused.
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

    pub(in crate::store) async fn ask(&self, command: &Cmd) -> Result<Value, StoreError> {
        let mut pipeline = redis::pipe();
        pipeline.add_command(command.clone());
        let mut replies = self.ask_all(pipeline).await?;
        let unexpected = || StoreError::UnexpectedReply {
            target: self.target.to_string(),
            asked: "a command".to_owned(),
        };
        replies.pop().unwrap_or_else(|| Err(unexpected()))
    }

    /// Sends commands in one write; each has its own reply or error.
    pub(in crate::store) async fn ask_all(
        &self,
        commands: Pipeline,
    ) -> Result<Vec<Result<Value, StoreError>>, StoreError> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let greeting = self.greeting().await?;
        let mut pipeline = commands;
        if !greeting.is_empty() {
            let asked = std::mem::take(&mut pipeline);
            for option in &greeting {
                pipeline.cmd(option.words()[0]).arg(&option.words()[1..]);
            }
            for command in asked.cmd_iter() {
                pipeline.add_command(command.clone());
            }
        }
        // The answer to the greeting alone tells nothing: a server without room for another client answers it and closes.
        let replies = self.send(&pipeline).await?;
        self.answered.store(true, Ordering::Relaxed);
        let mut replies = replies.into_iter();
        for (option, reply) in greeting.into_iter().zip(replies.by_ref()) {
            // What else is wrong the commands behind it are told, too.
            let _ = self.target.client_options.heard(option, reply);
        }
        Ok(replies.collect())
    }

    async fn send(
        &self,
        pipeline: &Pipeline,
    ) -> Result<Vec<Result<Value, StoreError>>, StoreError> {
        let count = pipeline.cmd_iter().count();
        let exchanged =
            self.connection.lock().await.exchange_all(&pipeline.get_packed_pipeline(), count).await;
        let replies = match exchanged {
            Ok(replies) => replies,
            Err(error) => return Err(self.explain_error(error).await),
        };
        let reply = |value| match value {
            Value::ServerError(error) => Err(self.error(&error.into())),
            value => Ok(value),
        };
        Ok(replies.into_iter().map(reply).collect())
    }

    /// What is asked of the server with the first commands, as far as it did not refuse that before: the connection's
    /// name, and not to disturb eviction data. The first connection of all takes a round trip to learn what the server is.
    async fn greeting(&self) -> Result<Vec<ClientOption>, StoreError> {
        if self.greeted.swap(true, Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        if self.target.client_options.is_first_hello() {
            let mut hello = redis::pipe();
            hello.cmd("HELLO");
            let reply = self.send(&hello).await?.pop();
            // Nothing more is heard on this connection.
            if let Some(Err(error)) =
                reply.as_ref().filter(|reply| reply.as_ref().is_err_and(StoreError::turns_away))
            {
                return Err(error.clone());
            }
            self.target.client_options.met(reply.and_then(Result::ok));
        }
        let mut greeting = vec![ClientOption::Name, ClientOption::NoTouch];
        greeting.retain(|option| self.target.client_options.does(*option));
        Ok(greeting)
    }

    /// A connection that broke before its first reply may be no Redis at all, or one that speaks TLS only.
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
