//! A connection: requests go out as the socket takes them, and replies are read where they lie.
//!
//! The client crate hands every request to a task of its own that drives the socket, and makes a tree of owned values of
//! every reply. The task costs a racing worker a good part of its speed, and the tree takes more time in a scan than the
//! server takes. Here whoever asks writes and reads; commands, values and errors are still the crate's.

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::future::poll_fn;
use std::hash::BuildHasher as _;
use std::io;
use std::ops::Range;
use std::task::Poll;
use std::time::Instant;

use redis::{Cmd, RedisError, Value};

use super::bounds::Bounds;
use super::client_options::ClientOption;
use super::diagnose;
use super::permit::Writable;
use super::reply;
use super::resp::{self, Arriving, Token, Unreadable};
use super::target::Target;
use super::traced::Traced;
use super::transport::Transport;
use crate::domain::step::StepReply;
use crate::store::connection::bounds::Patience;
use crate::store::connection::transport::{self, NotOpen, in_time};
use crate::store::error::StoreError;
use crate::store::error::from_redis::is_refusal;

/// A request as it goes over the wire.
#[derive(Debug, Clone)]
pub struct Packed(Vec<u8>);

pub fn pack<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> Packed {
    let mut command = Cmd::new();
    for word in words {
        command.arg(word.as_ref());
    }
    Packed(command.get_packed_command())
}

/// A connection with requests and replies under way.
pub struct Connection {
    transport: Transport,
    target: Target,
    patience: Patience,
    /// How large the replies to come may be.
    bounds: Bounds,
    /// Replies that are still to come. Whoever waited for them may have given up: they come before all later ones.
    owed: usize,
    /// True once a reply came: what a server says before that is read as the reply to the first request, because a server
    /// that turns a client away says why without being asked.
    has_answered: bool,
    /// The number of the last mark. The first one is at random: no value that a client stored is taken for a mark.
    mark: u64,
    /// The marks whose replies are on their way, the first one first.
    marks: VecDeque<String>,
}

impl Connection {
    /// Connects to a server that may be changed, and logs in: whatever is asked goes over the wire as it is.
    ///
    /// # Errors
    /// Unreachable, timed out, the log-in refused, or the server has no room for another client.
    pub async fn connect(server: &Writable) -> Result<Self, StoreError> {
        Self::dial(server).await
    }

    /// The same within the store, for what only reads, or has its leave already.
    pub(in crate::store) async fn dial(target: &Target) -> Result<Self, StoreError> {
        let mut connection = Self::open(target).await?;
        match connection.say_name().await {
            Ok(()) => Ok(connection),
            Err(error) => Err(diagnose::explain_error(target, error).await),
        }
    }

    /// Opens a connection and logs in. Nothing is sent where there is neither a password nor a database to name.
    ///
    /// # Errors
    /// Unreachable, timed out, or the log-in refused.
    pub(in crate::store) async fn open(target: &Target) -> Result<Self, StoreError> {
        let socket = match transport::open(target).await {
            Ok(socket) => socket,
            Err(NotOpen::Handshake(error)) => {
                return Err(diagnose::without_tls(target, error).await);
            }
            Err(NotOpen::Other(error)) => return Err(error),
        };
        let socket = match &target.trace {
            Some(trace) => Box::new(Traced::around(socket, trace, target.to_string())),
            None => socket,
        };
        let mut connection = Self {
            transport: Transport::new(socket),
            target: target.clone(),
            patience: Patience::default(),
            bounds: Bounds::default(),
            owed: 0,
            has_answered: false,
            mark: RandomState::new().hash_one(0),
            marks: VecDeque::new(),
        };
        match connection.log_in().await {
            Ok(()) => Ok(connection),
            Err(error) => Err(diagnose::explain_error(&connection.target, error).await),
        }
    }

    async fn log_in(&mut self) -> Result<(), StoreError> {
        let mut words = Vec::new();
        if let Some(password) = self.target.password.clone() {
            words.push(pack(
                ["AUTH".to_owned()].into_iter().chain(self.target.user.clone()).chain([password]),
            ));
        }
        if self.target.db != 0 {
            words.push(pack(["SELECT", &self.target.db.to_string()]));
        }
        let requests: Vec<_> = words.iter().flat_map(|Packed(bytes)| bytes).copied().collect();
        for reply in self.exchange_all(&requests, words.len()).await? {
            self.no_error(reply)?;
        }
        Ok(())
    }

    async fn say_name(&mut self) -> Result<(), StoreError> {
        if !self.target.client_options.does(ClientOption::Name) {
            return Ok(());
        }
        let named = self.tell(&pack(ClientOption::Name.words())).await;
        // Where it is not permitted the connection does without a name.
        self.target.client_options.heard(ClientOption::Name, named)
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
    /// As [`Connection::ask`], and whatever else the server says.
    pub(in crate::store) async fn tell(&mut self, request: &Packed) -> Result<Value, StoreError> {
        let reply = self.exchange(request).await?;
        self.no_error(reply)
    }

    /// A reply as schemas speak of it.
    ///
    /// # Errors
    /// One that speaks of the server or the user, not of a record.
    pub(in crate::store) fn step_reply(&self, reply: Value) -> Result<StepReply, StoreError> {
        if let Value::ServerError(error) = &reply {
            let typed = self.lost(&error.clone().into());
            if typed.is_permission() || is_refusal(error) {
                return Err(typed);
            }
        }
        Ok(reply::step_reply(reply))
    }

    /// Sends a request and waits for whatever comes back.
    pub(in crate::store) async fn exchange(
        &mut self,
        Packed(request): &Packed,
    ) -> Result<Value, StoreError> {
        let mut replies = self.exchange_all(request, 1).await?;
        replies.pop().ok_or_else(|| self.unexpected("a command"))
    }

    /// Sends so many requests in one write and waits for whatever comes back.
    ///
    /// # Errors
    /// Bytes came that nothing had asked for, so that nothing was sent. Or not all replies came in time, more came than
    /// were asked for, or the connection broke: what was sent may have been executed.
    pub(in crate::store) async fn exchange_all(
        &mut self,
        requests: &[u8],
        count: usize,
    ) -> Result<Vec<Value>, StoreError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        if self.owed == 0
            && self.has_answered
            && self.has_unread().await.map_err(|error| self.lost(&error.into()))?
        {
            return Err(StoreError::Unasked { target: self.target.to_string() });
        }
        self.transport.out.extend_from_slice(requests);
        self.bounds.ask_packed(requests);
        let stale = self.owed;
        self.owed += count;
        let is_marked = count > 1;
        if is_marked {
            self.queue_mark();
            self.owed += 1;
        }
        self.patience = Patience::default();
        let mut replies = Vec::new();
        for number in 0..stale + count {
            let reply = self.value().await?;
            // Nobody waits for the first ones any longer.
            if number >= stale {
                replies.push(reply);
            }
        }
        self.has_answered = true;
        if is_marked {
            self.take_mark_as_value().await?;
            self.has_ended().await?;
        }
        Ok(replies)
    }

    /// Passes if nothing came behind the replies to all that was sent.
    ///
    /// # Errors
    /// More came: a reply is there twice, and all behind it were taken for others.
    pub(in crate::store) async fn has_ended(&mut self) -> Result<(), StoreError> {
        if self.has_unread().await.unwrap_or(false) { Err(self.out_of_step()) } else { Ok(()) }
    }

    /// Queues a request of which the reply is known beforehand. Behind several requests it proves that each reply is that of
    /// its own request: if a reply came twice, all behind it would be taken for others.
    pub(in crate::store) fn queue_mark(&mut self) {
        self.mark = self.mark.wrapping_add(1);
        let text = format!("idemctl-{:016x}", self.mark);
        self.queue(&[b"PING", text.as_bytes()]);
        self.marks.push_back(text);
    }

    /// Reads the reply to the first mark on its way, token by token.
    ///
    /// # Errors
    /// It is the reply to something else; or as [`Connection::token`].
    pub(in crate::store) async fn take_mark(&mut self) -> Result<(), StoreError> {
        let expected = self.marks.pop_front().unwrap_or_default();
        match self.token().await? {
            Token::Text(text) if answers_mark(self.bytes(text.clone()), &expected) => Ok(()),
            // A user who may not send PING, or a server that refuses every request, answers so in its place.
            Token::Error(_) => Ok(()),
            _ => Err(self.out_of_step()),
        }
    }

    /// The same for replies that are read as a whole.
    async fn take_mark_as_value(&mut self) -> Result<(), StoreError> {
        let reply = self.value().await?;
        let expected = self.marks.pop_front().unwrap_or_default();
        match reply {
            Value::BulkString(text) if answers_mark(&text, &expected) => Ok(()),
            Value::SimpleString(text) if answers_mark(text.as_bytes(), &expected) => Ok(()),
            Value::ServerError(_) => Ok(()),
            _ => Err(self.out_of_step()),
        }
    }

    /// Replies that do not belong to their requests.
    fn out_of_step(&self) -> StoreError {
        let why = "it sent more replies than it was asked for".to_owned();
        StoreError::NotRedis { target: self.target.to_string(), why }
    }

    /// True when bytes came that nobody asked for: the next request would take them for its reply. Waits for nothing.
    async fn has_unread(&mut self) -> io::Result<bool> {
        if self.transport.taken < self.transport.inbox.len() {
            return Ok(true);
        }
        // The runtime learns what has arrived at its sockets between tasks alone.
        tokio::task::yield_now().await;
        poll_fn(|context| match self.transport.poll_receive(context) {
            Poll::Ready(received) => Poll::Ready(received.map(|_| true)),
            Poll::Pending => Poll::Ready(Ok(false)),
        })
        .await
    }

    async fn value(&mut self) -> Result<Value, StoreError> {
        let mut arriving = Arriving::new(self.bounds.of_reply());
        loop {
            let arrived = &self.transport.inbox[self.transport.taken..];
            if let Some(end) = arriving.end(arrived).map_err(|why| self.unreadable(why))? {
                let value =
                    redis::parse_redis_value(&arrived[..end]).map_err(|error| self.lost(&error))?;
                self.transport.taken += end;
                self.bounds.took_reply();
                self.owed -= 1;
                return Ok(value);
            }
            self.receive().await.map_err(|error| self.lost(&error.into()))?;
        }
    }

    pub(in crate::store) fn queue(&mut self, words: &[&[u8]]) {
        self.bounds.ask(words);
        resp::pack(&mut self.transport.out, words);
    }

    /// Sends as much of the queue as the socket takes at once. The rest goes out while a reply is waited for: neither
    /// side ever waits for the other to take its bytes first.
    ///
    /// # Errors
    /// Unreachable.
    pub(in crate::store) async fn send(&mut self) -> Result<(), StoreError> {
        self.patience = Patience::default();
        poll_fn(|context| Poll::Ready(self.transport.poll_send(context)))
            .await
            .map_err(|error| self.lost(&error.into()))
    }

    /// The next token of the replies to what was queued; what a token points to is there until the next one is asked for.
    ///
    /// # Errors
    /// No reply in time, the connection broke, or what comes is no reply.
    pub(in crate::store) async fn token(&mut self) -> Result<Token, StoreError> {
        loop {
            match resp::token(&self.transport.inbox, self.transport.taken, self.bounds.of_token()) {
                Ok(Some((token, next))) => {
                    self.bounds.check(&token).map_err(|why| self.unreadable(why))?;
                    self.bounds.took_token(&token, next - self.transport.taken);
                    self.transport.taken = next;
                    return Ok(token);
                }
                Ok(None) => self.receive().await.map_err(|error| self.lost(&error.into()))?,
                Err(why) => return Err(self.unreadable(why)),
            }
        }
    }

    /// What a token points to.
    pub(in crate::store) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.transport.inbox[range]
    }

    /// What an error reply says.
    pub(in crate::store) fn refusal(&self, text: Range<usize>) -> StoreError {
        let line = [b"-", self.bytes(text), b"\r\n"].concat();
        match redis::parse_redis_value(&line) {
            Ok(Value::ServerError(error)) => self.lost(&error.into()),
            _ => self.unexpected("a command"),
        }
    }

    /// A reply that no Redis gives to what was asked.
    pub(in crate::store) fn unexpected(&self, asked: &str) -> StoreError {
        StoreError::UnexpectedReply { target: self.target.to_string(), asked: asked.to_owned() }
    }

    pub(in crate::store) fn target(&self) -> &Target {
        &self.target
    }

    /// A reply that is no error.
    ///
    /// # Errors
    /// The server's, as a reply.
    pub(in crate::store) fn no_error(&self, reply: Value) -> Result<Value, StoreError> {
        match reply {
            Value::ServerError(error) => Err(self.lost(&error.into())),
            value => Ok(value),
        }
    }

    /// Bytes that are no reply to what was asked.
    fn unreadable(&self, why: Unreadable) -> StoreError {
        let why = match why {
            Unreadable::Malformed => "its reply is not in the Redis protocol",
            Unreadable::TooLarge => "its reply is larger than any reply to what it was asked",
        };
        StoreError::NotRedis { target: self.target.to_string(), why: why.to_owned() }
    }

    fn lost(&self, error: &RedisError) -> StoreError {
        StoreError::at(&self.target, error)
    }

    /// Waits for more bytes, as long as all replies to what was sent may take.
    async fn receive(&mut self) -> io::Result<()> {
        let (left, since) = (self.patience.left(self.target.timeout), Instant::now());
        let count = in_time(left, poll_fn(|context| self.transport.poll_receive(context))).await?;
        self.patience.waited += since.elapsed();
        self.patience.received += count as u64;
        Ok(())
    }
}

/// True for the reply to a mark. Some proxies answer PING themselves, and say PONG whatever it says.
fn answers_mark(reply: &[u8], mark: &str) -> bool {
    reply == mark.as_bytes() || reply == b"PONG"
}

#[cfg(test)]
mod tests;
