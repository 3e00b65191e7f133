//! The one place that connects.

use std::future::Future as _;
use std::pin::pin;
use std::task::Poll;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, IntoConnectionInfo as _, Pipeline, ProtocolVersion,
    RedisConnectionInfo, Value,
};

use super::error::StoreError;
use super::read::Reader;
use super::target::{Address, Target};
use super::write::Writer;

/// The name that `CLIENT LIST` shows for idemctl's connections.
const CLIENT_NAME: &str = "idemctl";

/// A connection to one server, and the server's name for messages.
#[derive(Clone)]
pub struct Link {
    connection: MultiplexedConnection,
    target: Target,
}

/// Connects to a server.
///
/// Nothing is sent before the first command, but for the log-in where there is a password and `SELECT` where there is
/// a database: a wrong password is known here, a missing one with the first command.
///
/// # Errors
/// Unreachable, timed out, or the log-in refused.
pub async fn connect(target: &Target) -> Result<Link, StoreError> {
    let wrong = |error: &redis::RedisError| StoreError::from_redis(error, &target.to_string(), target.timeout);
    let client =
        Client::open(connection_info(target).map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(target.timeout))
        .set_response_timeout(Some(target.timeout));
    let connection =
        client.get_multiplexed_async_connection_with_config(&config).await.map_err(|error| wrong(&error))?;
    let link = Link { connection, target: target.clone() };
    link.introduce().await;
    Ok(link)
}

fn connection_info(target: &Target) -> redis::RedisResult<redis::ConnectionInfo> {
    let address = match &target.address {
        Address::Tcp(host, port) => ConnectionAddr::Tcp(host.clone(), *port),
        Address::Unix(path) => ConnectionAddr::Unix(path.clone()),
    };
    // RESP2 needs no greeting, so a server without a password costs no round trip; RESP3 tells why a log-in failed.
    let protocol = if target.password.is_some() { ProtocolVersion::RESP3 } else { ProtocolVersion::RESP2 };
    let mut settings = RedisConnectionInfo::default().set_db(target.db).set_protocol(protocol).set_skip_set_lib_name();
    if let Some(user) = &target.user {
        settings = settings.set_username(user);
    }
    if let Some(password) = &target.password {
        settings = settings.set_password(password);
    }
    let info = address.into_connection_info()?;
    let tcp = info.tcp_settings().clone().set_nodelay(true);
    Ok(info.set_redis_settings(settings).set_tcp_settings(tcp))
}

impl Link {
    /// The server's name for people.
    pub fn name(&self) -> String {
        self.target.to_string()
    }

    /// The server.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// What may only read.
    pub fn reader(&self) -> Reader {
        Reader::new(self.clone())
    }

    /// What may change.
    pub fn writer(&self) -> Writer {
        Writer::new(self.clone())
    }

    /// Sends one command.
    pub(super) async fn ask(&self, command: &Cmd) -> Result<Value, StoreError> {
        let mut connection = self.connection.clone();
        command.query_async(&mut connection).await.map_err(|error| self.error(&error))
    }

    /// Sends commands in one write; each has its own reply or error.
    pub(super) async fn ask_all(&self, commands: &mut Pipeline) -> Result<Vec<Result<Value, StoreError>>, StoreError> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let mut connection = self.connection.clone();
        let replies: Vec<redis::RedisResult<Value>> =
            commands.ignore_errors().query_async(&mut connection).await.map_err(|error| self.error(&error))?;
        Ok(replies.into_iter().map(|reply| reply.map_err(|error| self.error(&error))).collect())
    }

    pub(super) fn error(&self, error: &redis::RedisError) -> StoreError {
        StoreError::from_redis(error, &self.name(), self.target.timeout)
    }

    pub(super) fn unexpected(&self, asked: &str) -> StoreError {
        StoreError::UnexpectedReply { target: self.name(), asked: asked.to_owned() }
    }

    /// Names the connection and asks not to disturb eviction data. Queued ahead of the first command and not waited
    /// for: servers that do not know or forbid either serve us all the same.
    async fn introduce(&self) {
        let mut connection = self.connection.clone();
        let mut greeting = Box::pin(async move {
            let mut pipeline = redis::pipe();
            pipeline.cmd("CLIENT").arg("SETNAME").arg(CLIENT_NAME);
            pipeline.cmd("CLIENT").arg("NO-TOUCH").arg("ON");
            let _: redis::RedisResult<Vec<redis::RedisResult<Value>>> =
                pipeline.ignore_errors().query_async(&mut connection).await;
        });
        // One poll puts it into the connection's queue, so that it goes out first.
        let done = std::future::poll_fn(|context| Poll::Ready(pin!(&mut greeting).poll(context).is_ready())).await;
        if !done {
            tokio::spawn(greeting);
        }
    }
}
