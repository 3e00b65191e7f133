//! The one place that connects.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, Pipeline, ProtocolVersion, RedisConnectionInfo, Value};

use crate::store::connection::client_options::Courtesy;
use crate::store::connection::diagnose;
use crate::store::connection::lines::ShortLines;
use crate::store::connection::socket;
use crate::store::connection::target::Target;
use crate::store::error::StoreError;

/// The name that `CLIENT LIST` shows for idemctl's connections.
pub(in crate::store) const CLIENT_NAME: &str = "idemctl";

/// A connection to one server, and the server's name for messages.
#[derive(Clone)]
pub(in crate::store) struct Node {
    connection: MultiplexedConnection,
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
    let stream = ShortLines::new(socket::open(target).await?);
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(target.timeout));
    let settings = settings(target);
    let logged_in = MultiplexedConnection::new_with_config(&settings, stream, config);
    let logged_in = tokio::time::timeout(target.timeout, logged_in).await;
    let (connection, driver) = match logged_in {
        Ok(Ok(connected)) => connected,
        Ok(Err(error)) => {
            let error = StoreError::from_redis(&error, &target.to_string(), target.timeout);
            return Err(diagnose::look_closer(target, error).await);
        }
        Err(_) => {
            let error = StoreError::TimedOut { target: target.to_string(), seconds: target.timeout.as_secs_f64() };
            return Err(diagnose::look_closer(target, error).await);
        }
    };
    // It ends with the last clone of the connection.
    tokio::spawn(driver);
    Ok(Node { connection, target: target.clone(), greeted: Arc::default(), answered: Arc::default() })
}

fn settings(target: &Target) -> RedisConnectionInfo {
    // RESP2 needs no greeting, so a server without a password costs no round trip; RESP3 tells why a log-in failed.
    let protocol = if target.password.is_some() { ProtocolVersion::RESP3 } else { ProtocolVersion::RESP2 };
    let mut settings = RedisConnectionInfo::default().set_db(target.db).set_protocol(protocol).set_skip_set_lib_name();
    if let Some(user) = &target.user {
        settings = settings.set_username(user);
    }
    if let Some(password) = &target.password {
        settings = settings.set_password(password);
    }
    settings
}

impl Node {
    /// The server.
    pub(in crate::store) fn target(&self) -> &Target {
        &self.target
    }

    /// Sends one command.
    pub(in crate::store) async fn ask(&self, command: &Cmd) -> Result<Value, StoreError> {
        let mut pipeline = redis::pipe();
        pipeline.add_command(command.clone());
        let mut replies = self.ask_all(pipeline).await?;
        let unexpected =
            || StoreError::UnexpectedReply { target: self.target.to_string(), asked: "a command".to_owned() };
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
            for courtesy in &greeting {
                pipeline.cmd(courtesy.words()[0]).arg(&courtesy.words()[1..]);
            }
            for command in asked.cmd_iter() {
                pipeline.add_command(command.clone());
            }
        }
        // The answer to the greeting alone tells nothing: a server without room for another client answers it and closes.
        let replies = self.send(&mut pipeline).await?;
        self.answered.store(true, Ordering::Relaxed);
        let mut replies = replies.into_iter();
        for (courtesy, reply) in greeting.into_iter().zip(replies.by_ref()) {
            // What else is wrong the commands behind it are told, too.
            let _ = self.target.manners.heard(courtesy, reply);
        }
        Ok(replies.collect())
    }

    async fn send(&self, pipeline: &mut Pipeline) -> Result<Vec<Result<Value, StoreError>>, StoreError> {
        let mut connection = self.connection.clone();
        let replies: Vec<redis::RedisResult<Value>> = match pipeline.ignore_errors().query_async(&mut connection).await
        {
            Ok(replies) => replies,
            Err(error) => return Err(self.look_closer(self.error(&error)).await),
        };
        Ok(replies.into_iter().map(|reply| reply.map_err(|error| self.error(&error))).collect())
    }

    /// What is asked of the server with the first commands, as far as it did not refuse that before: the connection's
    /// name, and not to disturb eviction data. The first connection of all takes a round trip to learn what the server is.
    ///
    /// # Errors
    /// As [`Node::ask_all`].
    async fn greeting(&self) -> Result<Vec<Courtesy>, StoreError> {
        if self.greeted.swap(true, Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        if self.target.manners.is_first_hello() {
            let mut hello = redis::pipe();
            hello.cmd("HELLO");
            let reply = self.send(&mut hello).await?.pop();
            // Nothing more is heard on this connection.
            if let Some(Err(error)) = reply.as_ref().filter(|reply| reply.as_ref().is_err_and(StoreError::turns_away)) {
                return Err(error.clone());
            }
            self.target.manners.met(reply.and_then(Result::ok));
        }
        let mut greeting = vec![Courtesy::Name, Courtesy::NoTouch];
        greeting.retain(|courtesy| self.target.manners.does(*courtesy));
        Ok(greeting)
    }

    /// A connection that broke before its first reply may be no Redis at all, or one that speaks TLS only.
    pub(in crate::store) async fn look_closer(&self, error: StoreError) -> StoreError {
        if self.answered.load(Ordering::Relaxed) { error } else { diagnose::look_closer(&self.target, error).await }
    }

    pub(in crate::store) fn error(&self, error: &redis::RedisError) -> StoreError {
        StoreError::from_redis(error, &self.target.to_string(), self.target.timeout)
    }
}
