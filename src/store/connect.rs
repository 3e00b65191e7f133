//! The one place that connects.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bstr::ByteSlice as _;
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, IntoConnectionInfo as _, Pipeline, ProtocolVersion,
    RedisConnectionInfo, Value,
};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::error::StoreError;
use super::target::{Address, Target};
use super::wire;

/// The name that `CLIENT LIST` shows for idemctl's connections.
pub(super) const CLIENT_NAME: &str = "idemctl";

/// What a server says to a client that it does not let in, before anything is asked: that it is full, or takes no
/// clients of other hosts.
const TURNED_AWAY: [&[u8]; 2] = [b"-ERR max number of clients", b"-DENIED"];

/// A connection to one server, and the server's name for messages.
#[derive(Clone)]
pub(super) struct Node {
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
pub(super) async fn connect(target: &Target) -> Result<Node, StoreError> {
    let wrong = |error: &redis::RedisError| StoreError::from_redis(error, &target.to_string(), target.timeout);
    let client =
        Client::open(connection_info(target).map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(target.timeout))
        .set_response_timeout(Some(target.timeout));
    let connection = match client.get_multiplexed_async_connection_with_config(&config).await {
        Ok(connection) => connection,
        Err(error) => return Err(look_closer(target, wrong(&error)).await),
    };
    Ok(Node { connection, target: target.clone(), greeted: Arc::default(), answered: Arc::default() })
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

impl Node {
    /// The server.
    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    /// Sends one command.
    pub(super) async fn ask(&self, command: &Cmd) -> Result<Value, StoreError> {
        let mut pipeline = redis::pipe();
        pipeline.add_command(command.clone());
        let mut replies = self.ask_all(pipeline).await?;
        let unexpected =
            || StoreError::UnexpectedReply { target: self.target.to_string(), asked: "a command".to_owned() };
        replies.pop().unwrap_or_else(|| Err(unexpected()))
    }

    /// Sends commands in one write; each has its own reply or error.
    pub(super) async fn ask_all(&self, commands: Pipeline) -> Result<Vec<Result<Value, StoreError>>, StoreError> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let mut pipeline = commands;
        if !self.greeted.swap(true, Ordering::Relaxed) {
            let asked = std::mem::replace(&mut pipeline, greeting());
            for command in asked.cmd_iter() {
                pipeline.add_command(command.clone());
            }
        }
        let mut connection = self.connection.clone();
        let replies: Vec<redis::RedisResult<Value>> = match pipeline.ignore_errors().query_async(&mut connection).await
        {
            Ok(replies) => replies,
            Err(error) => return Err(self.look_closer(self.error(&error)).await),
        };
        self.answered.store(true, Ordering::Relaxed);
        Ok(replies.into_iter().map(|reply| reply.map_err(|error| self.error(&error))).collect())
    }

    /// The same as [`look_closer`], unless the server has answered on this connection before.
    pub(super) async fn look_closer(&self, error: StoreError) -> StoreError {
        if self.answered.load(Ordering::Relaxed) { error } else { look_closer(&self.target, error).await }
    }

    pub(super) fn error(&self, error: &redis::RedisError) -> StoreError {
        StoreError::from_redis(error, &self.target.to_string(), self.target.timeout)
    }
}

/// Names the connection and asks not to disturb eviction data; servers that do not know or forbid either serve us all
/// the same. Goes out with the first commands, so that it costs no round trip.
fn greeting() -> Pipeline {
    let mut pipeline = redis::pipe();
    pipeline.cmd("CLIENT").arg("SETNAME").arg(CLIENT_NAME).ignore();
    pipeline.cmd("CLIENT").arg("NO-TOUCH").arg("ON").ignore();
    pipeline
}

/// A connection that broke before its first reply may be no Redis at all, or one that turns clients away: asks what it
/// says to a plain PING.
async fn look_closer(target: &Target, error: StoreError) -> StoreError {
    if !matches!(error, StoreError::Unreachable { .. } | StoreError::NotRedis { .. }) {
        return error;
    }
    let Ok(Ok(words)) = tokio::time::timeout(target.timeout, first_words(&target.address)).await else { return error };
    let is_turned_away = TURNED_AWAY.iter().any(|said| words.starts_with(said));
    match redis::parse_redis_value(&words) {
        Ok(Value::ServerError(said)) if is_turned_away => wire::lost(target, &said.into()),
        _ if words.is_empty() || b"+-".contains(&words[0]) => error,
        _ => {
            let line = words.lines().next().unwrap_or_default();
            StoreError::NotRedis { target: target.to_string(), why: format!("it says {:?}", bstr::BStr::new(line)) }
        }
    }
}

async fn first_words(address: &Address) -> std::io::Result<Vec<u8>> {
    let mut stream = wire::open(address).await?;
    // Read even when nothing can be sent: a server that turns a client away says why before it closes.
    let _ = stream.write_all(b"PING\r\n\r\n").await;
    let mut words = vec![0; 256];
    let count = stream.read(&mut words).await?;
    words.truncate(count);
    Ok(words)
}
