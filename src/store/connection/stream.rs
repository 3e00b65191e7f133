//! A connection on which requests go out while replies to earlier ones are still to come.

use std::future::{Future as _, poll_fn};
use std::io;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use redis::{RedisError, Value};
use tokio::io::AsyncReadExt as _;

use super::client_options::Courtesy;
use super::connection::{Wire, lost};
use super::resp::{self, Token};
use super::socket::{Socket, in_time};
use super::target::Target;
use crate::store::error::StoreError;

/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// A connection with requests and replies under way.
pub(in crate::store) struct Stream {
    socket: Box<dyn Socket>,
    target: Target,
    out: Vec<u8>,
    sent: usize,
    /// All went out, but the socket has not let go of it.
    held_back: bool,
    inbox: Vec<u8>,
    taken: usize,
}

impl Stream {
    /// Connects, logs in, and asks not to disturb eviction data. The time of one round trip comes with it.
    ///
    /// # Errors
    /// As [`Wire::connect`].
    pub(in crate::store) async fn connect(target: &Target) -> Result<(Self, Duration), StoreError> {
        let socket = Wire::dial(target).await?.into_socket();
        let (out, inbox) = (Vec::new(), Vec::new());
        let mut stream = Self { socket, target: target.clone(), out, sent: 0, held_back: false, inbox, taken: 0 };
        let asked = Instant::now();
        let polite = target.manners.does(Courtesy::NoTouch);
        // Where it is refused, or was, something else that everybody may ask takes the time of a round trip.
        let words = if polite { &Courtesy::NoTouch.words()[..] } else { &["PING"] };
        stream.ask(&words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
        let reply = match stream.token().await? {
            Token::Error(text) => Err(stream.refusal(text)),
            _ => Ok(()),
        };
        if polite {
            // Whatever else is wrong is told with the first page.
            let _ = target.manners.heard(Courtesy::NoTouch, reply);
        }
        Ok((stream, asked.elapsed()))
    }

    /// Queues a command.
    pub(in crate::store) fn ask(&mut self, words: &[&[u8]]) {
        resp::pack(&mut self.out, words);
    }

    /// Sends as much of the queue as the socket takes at once. The rest goes out while a reply is waited for: neither
    /// side ever waits for the other to take its bytes first.
    ///
    /// # Errors
    /// Unreachable.
    pub(in crate::store) async fn send(&mut self) -> Result<(), StoreError> {
        poll_fn(|context| Poll::Ready(self.poll_send(context))).await.map_err(|error| self.lost(error))
    }

    /// The next token of the replies; what it points to is there until the next one is asked for.
    ///
    /// # Errors
    /// No reply in time, the connection broke, or what comes is no reply.
    pub(in crate::store) async fn token(&mut self) -> Result<Token, StoreError> {
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
    pub(in crate::store) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.inbox[range]
    }

    /// What an error reply says.
    pub(in crate::store) fn refusal(&self, text: Range<usize>) -> StoreError {
        let line = [b"-", self.bytes(text), b"\r\n"].concat();
        match redis::parse_redis_value(&line) {
            Ok(Value::ServerError(error)) => lost(&self.target, &error.into()),
            _ => self.unexpected("a command"),
        }
    }

    /// A reply that no Redis gives to what was asked.
    pub(in crate::store) fn unexpected(&self, asked: &str) -> StoreError {
        StoreError::UnexpectedReply { target: self.target.to_string(), asked: asked.to_owned() }
    }

    /// A SCAN that does not come to an end.
    pub(in crate::store) fn endless(&self, why: &str) -> StoreError {
        StoreError::NotRedis { target: self.target.to_string(), why: format!("its SCAN has no end: {why}") }
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
        if self.out.is_empty() && !self.held_back {
            return Ok(());
        }
        while self.sent < self.out.len() {
            match Pin::new(&mut *self.socket).poll_write(context, &self.out[self.sent..]) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(sent) => self.sent += sent?,
                Poll::Pending => return Ok(()),
            }
        }
        self.out.clear();
        self.sent = 0;
        // TLS may hold a part of it back until the socket takes it.
        self.held_back = true;
        if let Poll::Ready(flushed) = Pin::new(&mut *self.socket).poll_flush(context) {
            self.held_back = false;
            flushed?;
        }
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
