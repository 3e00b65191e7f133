//! A connection of one's own that carries one request at a time, for workers that race.
//!
//! The client crate's connection hands every request to a task of its own that drives the socket, which costs a racing
//! worker a good part of its speed. Here the worker itself writes and reads; packing and parsing are still the crate's.

use std::io;

use redis::{Cmd, RedisError, ServerError, Value};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::access::Writable;
use super::error::StoreError;
use super::manners::Courtesy;
use super::probe;
use super::reply;
use super::socket::{self, Socket, in_time};
use super::target::Target;
use crate::domain::step::StepReply;

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
    pub(super) async fn dial(target: &Target) -> Result<Self, StoreError> {
        let socket = socket::open(target).await?;
        let mut wire = Self { socket, buffer: Vec::with_capacity(READ_SIZE), target: target.clone() };
        match wire.introduce().await {
            Ok(()) => Ok(wire),
            Err(error) => Err(probe::look_closer(target, error).await),
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
    pub(super) async fn tell(&mut self, request: &Packed) -> Result<Value, StoreError> {
        match self.exchange(request).await? {
            Value::ServerError(error) => Err(lost(&self.target, &error.into())),
            value => Ok(value),
        }
    }

    /// A reply as schemas speak of it.
    ///
    /// # Errors
    /// One that speaks of the server or the user, not of a record.
    pub(super) fn step_reply(&self, reply: Value) -> Result<StepReply, StoreError> {
        if let Value::ServerError(error) = &reply {
            if let Some(code) = refusal(error) {
                return Err(self.refused(error.clone(), code));
            }
            let typed = lost(&self.target, &error.clone().into());
            if typed.is_permission() {
                return Err(typed);
            }
        }
        Ok(reply::step_reply(reply))
    }

    /// The connection itself, for another way to talk.
    pub(super) fn into_socket(self) -> Box<dyn Socket> {
        self.socket
    }

    /// Sends a request and waits for whatever comes back.
    pub(super) async fn exchange(&mut self, request: &Packed) -> Result<Value, StoreError> {
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

    /// Redis 6.2 wraps what a script ran into, so that the code is not the error's first word.
    fn refused(&self, error: ServerError, code: &str) -> StoreError {
        if error.code() == code {
            return lost(&self.target, &error.into());
        }
        let (target, why) = (self.target.to_string(), error.details().unwrap_or_default().to_owned());
        match code {
            "NOPERM" => StoreError::Permission { target, why },
            _ => StoreError::Refused { target, code: code.to_owned(), why },
        }
    }
}

async fn exchange(socket: &mut dyn Socket, buffer: &mut Vec<u8>, request: &Packed) -> Result<Value, RedisError> {
    let sent = match socket.write_all(&request.0).await {
        // TLS may hold a part of it back.
        Ok(()) => socket.flush().await,
        Err(error) => Err(error),
    };
    buffer.clear();
    loop {
        buffer.reserve(READ_SIZE);
        // Read even when nothing could be sent: a server that turns a client away says why before it closes.
        if socket.read_buf(buffer).await? == 0 {
            return Err(sent.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()).into());
        }
        match redis::parse_redis_value(buffer) {
            Err(error) if error.is_connection_dropped() => {}
            parsed => return parsed,
        }
    }
}

pub(super) fn lost(target: &Target, error: &RedisError) -> StoreError {
    StoreError::from_redis(error, &target.to_string(), target.timeout)
}

/// The code of an error that speaks of the server or the user.
fn refusal(error: &ServerError) -> Option<&'static str> {
    let known = |word: &str| REFUSALS.iter().find(|code| **code == word).copied();
    known(error.code()).or_else(|| {
        let wrapped = error.details().filter(|details| details.starts_with("Error running script"))?;
        wrapped.split_whitespace().find_map(|word| known(word.strip_prefix('-')?))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_script_ran_into_is_found_inside_its_error() {
        let of = |text: &[u8]| match redis::parse_redis_value(text).unwrap() {
            Value::ServerError(error) => refusal(&error),
            other => panic!("{other:?}"),
        };
        assert_eq!(of(b"-READONLY You can't write against a read only replica.\r\n"), Some("READONLY"));
        let wrapped = b"-ERR Error running script (call to f_1): @user_script:17: -OOM command not allowed\r\n";
        assert_eq!(of(wrapped), Some("OOM"));
        assert_eq!(of(b"-LOCKED the key is held\r\n"), None);
        assert_eq!(of(b"-ERR something BUSY\r\n"), None);
    }

    proptest! {
        #[test]
        fn a_reply_that_is_cut_off_is_told_from_a_whole_one(
            text in prop::collection::vec(any::<u8>(), 0..30),
            cut in any::<prop::sample::Index>(),
        ) {
            let whole = [format!("*2\r\n:3\r\n${}\r\n", text.len()).as_bytes(), &text, b"\r\n"].concat();
            let cut = cut.index(whole.len());
            prop_assert!(redis::parse_redis_value(&whole[..cut]).is_err_and(|error| error.is_connection_dropped()));
            let expected = StepReply::Array(vec![StepReply::Integer(3), StepReply::Text(text)]);
            prop_assert_eq!(redis::parse_redis_value(&whole).map(reply::step_reply), Ok(expected));
        }
    }
}
