//! A connection of one's own that carries one request at a time, for workers that race.
//!
//! The client crate's connection hands every request to a task of its own that drives the socket, which costs a racing
//! worker a good part of its speed. Here the worker itself writes and reads; packing and parsing are still the crate's.

use std::io;

use redis::{Cmd, ErrorKind, RedisError, ServerError, Value};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::client_options::Courtesy;
use super::diagnose;
use super::permit::Writable;
use super::reply;
use super::resp::{self, Arriving};
use super::socket::{self, Socket, in_time};
use super::target::Target;
use crate::domain::step::reply::StepReply;
use crate::store::error::StoreError;
use crate::store::error::from_redis::out_of_script;

/// Codes of errors that speak of the server or the user, not of a record: they end what was tried.
const REFUSALS: &[&str] = &[
    "READONLY",
    "OOM",
    "MISCONF",
    "LOADING",
    "BUSY",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "MOVED",
    "ASK",
    "CROSSSLOT",
    "NOREPLICAS",
    "NOPERM",
    "NOAUTH",
];

/// How much is read at once, at least.
const READ_SIZE: usize = 4096;

/// A request as it goes over the wire.
#[derive(Debug, Clone)]
pub struct Packed(Vec<u8>);

/// Packs a request from its words.
pub fn pack<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> Packed {
    let mut command = Cmd::new();
    for word in words {
        command.arg(word.as_ref());
    }
    Packed(command.get_packed_command())
}

/// A connection that carries one request at a time.
pub struct Wire {
    socket: Box<dyn Socket>,
    buffer: Vec<u8>,
    target: Target,
}

impl Wire {
    /// Connects to a server that may be changed, and logs in: whatever is asked goes over the wire as it is.
    ///
    /// # Errors
    /// Unreachable, timed out, the log-in refused, or the server has no room for another client.
    pub async fn connect(server: &Writable) -> Result<Self, StoreError> {
        Self::dial(server).await
    }

    /// The same within the store, for what only reads, or has its leave already.
    pub(in crate::store) async fn dial(target: &Target) -> Result<Self, StoreError> {
        let socket = socket::open(target).await?;
        let mut wire = Self { socket, buffer: Vec::with_capacity(READ_SIZE), target: target.clone() };
        match wire.introduce().await {
            Ok(()) => Ok(wire),
            Err(error) => Err(diagnose::look_closer(target, error).await),
        }
    }

    /// Sends a request and waits for its reply; an error that speaks of the record is a reply.
    ///
    /// # Errors
    /// No reply in time or the connection broke, so that the request may have been executed and the connection is of
    /// no more use; or the server refuses service.
    pub async fn ask(&mut self, request: &Packed) -> Result<StepReply, StoreError> {
        let reply = self.exchange(request).await?;
        self.step_reply(reply)
    }

    /// Sends a request that has to go well: every error ends what is tried.
    ///
    /// # Errors
    /// As [`Wire::ask`], and whatever else the server says.
    pub(in crate::store) async fn tell(&mut self, request: &Packed) -> Result<Value, StoreError> {
        match self.exchange(request).await? {
            Value::ServerError(error) => Err(lost(&self.target, &error.into())),
            value => Ok(value),
        }
    }

    /// A reply as schemas speak of it.
    ///
    /// # Errors
    /// One that speaks of the server or the user, not of a record.
    pub(in crate::store) fn step_reply(&self, reply: Value) -> Result<StepReply, StoreError> {
        if let Value::ServerError(error) = &reply {
            let typed = lost(&self.target, &error.clone().into());
            if typed.is_permission() || is_refusal(error) {
                return Err(typed);
            }
        }
        Ok(reply::step_reply(reply))
    }

    /// The connection itself, for another way to talk.
    pub(in crate::store) fn into_socket(self) -> Box<dyn Socket> {
        self.socket
    }

    /// Sends a request and waits for whatever comes back.
    pub(in crate::store) async fn exchange(&mut self, request: &Packed) -> Result<Value, StoreError> {
        let exchanged =
            in_time(self.target.timeout, async { Ok(exchange(&mut *self.socket, &mut self.buffer, request).await) });
        exchanged.await.map_err(RedisError::from).flatten().map_err(|error| lost(&self.target, &error))
    }

    async fn introduce(&mut self) -> Result<(), StoreError> {
        if let Some(password) = self.target.password.clone() {
            let words = ["AUTH".to_owned()].into_iter().chain(self.target.user.clone()).chain([password]);
            self.tell(&pack(words)).await?;
        }
        if self.target.db != 0 {
            self.tell(&pack(["SELECT", &self.target.db.to_string()])).await?;
        }
        if self.target.manners.does(Courtesy::Name) {
            let named = self.tell(&pack(Courtesy::Name.words())).await;
            // Where it is not permitted the connection does without a name.
            self.target.manners.heard(Courtesy::Name, named)?;
        }
        Ok(())
    }
}

async fn exchange(socket: &mut dyn Socket, buffer: &mut Vec<u8>, request: &Packed) -> Result<Value, RedisError> {
    let sent = match socket.write_all(&request.0).await {
        // TLS may hold a part of it back.
        Ok(()) => socket.flush().await,
        Err(error) => Err(error),
    };
    buffer.clear();
    let mut arriving = Arriving::new();
    loop {
        buffer.reserve(READ_SIZE);
        // Read even when nothing could be sent: a server that turns a client away says why before it closes.
        if socket.read_buf(buffer).await? == 0 {
            return Err(sent.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()).into());
        }
        if arriving.is_whole(buffer).map_err(|resp::Malformed| not_the_protocol())? {
            return redis::parse_redis_value(buffer);
        }
    }
}

fn not_the_protocol() -> RedisError {
    (ErrorKind::Parse, "not in the Redis protocol").into()
}

pub(in crate::store) fn lost(target: &Target, error: &RedisError) -> StoreError {
    StoreError::from_redis(error, &target.to_string(), target.timeout)
}

/// True for an error that speaks of the server or the user.
fn is_refusal(error: &ServerError) -> bool {
    let inside = error.details().and_then(out_of_script).map(|(code, _)| code);
    REFUSALS.contains(&inside.unwrap_or(error.code()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_ran_into_is_found_inside_its_error() {
        let of = |text: &[u8]| match redis::parse_redis_value(text).unwrap() {
            Value::ServerError(error) => is_refusal(&error),
            other => panic!("{other:?}"),
        };
        assert!(of(b"-READONLY You can't write against a read only replica.\r\n"));
        let wrapped = b"-ERR Error running script (call to f_1): @user_script:17: -OOM command not allowed\r\n";
        assert!(of(wrapped));
        assert!(!of(b"-LOCKED the key is held\r\n"));
        assert!(!of(b"-ERR something BUSY\r\n"));
    }
}
