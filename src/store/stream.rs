//! A connection on which requests go out while replies to earlier ones are still to come.

use std::future::{Future as _, poll_fn};
use std::io;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use redis::{RedisError, Value};
use tokio::io::AsyncReadExt as _;

use super::error::StoreError;
use super::resp::{self, Token};
use super::target::Target;
use super::wire::{Socket, Wire, in_time, lost};

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// A connection with requests and replies under way.
pub(super) struct Stream {
    socket: Box<dyn Socket>,
    target: Target,
    out: Vec<u8>,
    sent: usize,
    inbox: Vec<u8>,
    taken: usize,
}

impl Stream {
    /// Connects, logs in, and asks not to disturb eviction data. The time of one round trip comes with it.
    ///
    /// # Errors
    /// As [`Wire::connect`].
    pub(super) async fn connect(target: &Target) -> Result<(Self, Duration), StoreError> {
        let socket = Wire::connect(target).await?.into_socket();
        let mut stream = Self { socket, target: target.clone(), out: Vec::new(), sent: 0, inbox: Vec::new(), taken: 0 };
        let asked = Instant::now();
        stream.ask(&[b"CLIENT", b"NO-TOUCH", b"ON"]);
        // Servers that do not know it or forbid it serve us all the same.
        stream.token().await?;
        Ok((stream, asked.elapsed()))
    }

    /// Queues a command.
    pub(super) fn ask(&mut self, words: &[&[u8]]) {
        resp::pack(&mut self.out, words);
    }

    /// Sends as much of the queue as the socket takes at once. The rest goes out while a reply is waited for: neither
    /// side ever waits for the other to take its bytes first.
    ///
    /// # Errors
    /// Unreachable.
    pub(super) async fn send(&mut self) -> Result<(), StoreError> {
        poll_fn(|context| Poll::Ready(self.poll_send(context))).await.map_err(|error| self.lost(error))
    }

    /// The next token of the replies; what it points to is there until the next one is asked for.
    ///
    /// # Errors
    /// No reply in time, the connection broke, or what comes is no reply.
    pub(super) async fn token(&mut self) -> Result<Token, StoreError> {
        loop {
            match resp::token(&self.inbox, self.taken) {
                Ok(Some((token, next))) => {
                    self.taken = next;
                    return Ok(token);
                }
                Ok(None) => self.receive().await?,
                Err(resp::Malformed) => {
                    let why = "its reply is not in the Redis protocol".to_owned();
                    return Err(StoreError::NotRedis { target: self.target.to_string(), why });
                }
            }
        }
    }

    /// What a token points to.
    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.inbox[range]
    }

    /// What an error reply says.
    pub(super) fn refusal(&self, text: Range<usize>) -> StoreError {
        let line = [b"-", self.bytes(text), b"\r\n"].concat();
        match redis::parse_redis_value(&line) {
            Ok(Value::ServerError(error)) => lost(&self.target, &error.into()),
            _ => self.unexpected("a command"),
        }
    }

    /// A reply that no Redis gives to what was asked.
    pub(super) fn unexpected(&self, asked: &str) -> StoreError {
        StoreError::UnexpectedReply { target: self.target.to_string(), asked: asked.to_owned() }
    }

    /// Waits for more bytes.
    async fn receive(&mut self) -> Result<(), StoreError> {
        self.inbox.drain(..self.taken);
        self.taken = 0;
        let limit = self.target.timeout;
        let received = in_time(limit, poll_fn(|context| self.poll_receive(context))).await;
        received.map_err(|error| self.lost(error))
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while self.sent < self.out.len() {
            match Pin::new(&mut *self.socket).poll_write(context, &self.out[self.sent..]) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(sent) => self.sent += sent?,
                Poll::Pending => return Ok(()),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Read even when nothing can be sent: a server that turns a client away says why before it closes.
        let sent = self.poll_send(context);
        self.inbox.reserve(CHUNK);
        match ready!(pin!(self.socket.read_buf(&mut self.inbox)).poll(context))? {
            0 => Poll::Ready(Err(sent.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()))),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn lost(&self, error: io::Error) -> StoreError {
        lost(&self.target, &RedisError::from(error))
    }
}
