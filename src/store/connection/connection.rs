//! A connection that writes requests as the socket accepts them, and reads replies in the receive
//! buffer.
//!
//! The client crate passes every request to a task that drives the socket, and builds a tree of
//! owned values from every reply. The task slows a racing worker down considerably, and building
//! the tree takes a scan more time than the server needs. Here the caller itself writes and reads.
//! Commands, values and errors are still types of the crate.

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::future::poll_fn;
use std::hash::BuildHasher as _;
use std::io;
use std::ops::Range;
use std::task::Poll;
use std::time::Instant;

use redis::{Cmd, RedisError, Value};

use super::bounds::{Bounds, MOST, Patience};
use super::client_options::ClientOption;
use super::credentials::Numbered;
use super::diagnose;
use super::permit::Writable;
use super::reply;
use super::resp::{self, Arriving, Token, Unreadable};
use super::target::{Address, Target};
use super::traced::Traced;
use super::transport::Transport;
use crate::domain::step::StepReply;
use crate::store::connection::transport::{self, NotOpen, in_time};
use crate::store::error::StoreError;
use crate::store::error::from_redis::{NOT_RESP, is_refusal};

/// A request in its wire format.
#[derive(Debug, Clone)]
pub struct Packed(Vec<u8>);

pub fn pack<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> Packed {
    let mut command = Cmd::new();
    for word in words {
        command.arg(word.as_ref());
    }
    Packed(command.get_packed_command())
}

/// A connection with its pending requests and replies.
pub struct Connection {
    transport: Transport,
    target: Target,
    /// The number of its log-in, if a program gives it.
    log_in_number: u64,
    /// When this took the place of a connection that the server had closed.
    pub(in crate::store) reopened_at: Option<Instant>,
    patience: Patience,
    /// The size limit of the reply that is read.
    bounds: Bounds,
    /// The number of pending replies of [`Self::call_all`]. They arrive before all later ones, even
    /// if their caller has given up.
    owed: usize,
    /// True after the first reply. Bytes before that count as the reply to the first request,
    /// because a server that rejects a client sends its reason without a request.
    has_answered: bool,
    /// The number of the last marker. The first one is random, so that no stored value can be
    /// mistaken for a marker.
    mark: u64,
    /// The markers whose replies are pending, in order.
    marks: VecDeque<String>,
}

impl Connection {
    /// Connects to a server that may be changed, and logs in. Then it sends each request as
    /// the caller packed it, and adds none.
    ///
    /// # Errors
    /// The server is unreachable, times out, refuses the log-in, or has no room for another client.
    pub async fn connect(server: &Writable) -> Result<Self, StoreError> {
        Self::dial(server).await
    }

    /// Like [`Self::connect`], for store code that only reads or already holds a permit.
    pub(in crate::store) async fn dial(target: &Target) -> Result<Self, StoreError> {
        let mut connection = Self::open(target).await?;
        match connection.say_name().await {
            Ok(()) => Ok(connection),
            Err(error) => Err(diagnose::explain_error(target, error).await),
        }
    }

    /// Opens a connection and logs in. Sends nothing if there is neither a password nor a database
    /// to select.
    ///
    /// # Errors
    /// The server is unreachable, times out, or refuses the log-in.
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
            log_in_number: 0,
            reopened_at: None,
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
        let Some(newest) = self.newest_log_in(None).await? else {
            return self.log_in_as(None).await;
        };
        match self.log_in_as(Some(&newest)).await {
            // The password may have been replaced before its time. Nothing was sent yet.
            Err(StoreError::Authentication { .. }) => {
                let newer = self.newest_log_in(Some(newest.number)).await?;
                self.log_in_as(newer.as_ref()).await
            }
            done => done,
        }
    }

    async fn newest_log_in(
        &mut self,
        refused: Option<u64>,
    ) -> Result<Option<Numbered>, StoreError> {
        let Some(credentials) = &self.target.credentials else { return Ok(None) };
        let newest = credentials.newest(refused).await;
        newest
            .map(Some)
            .map_err(|why| StoreError::NoPassword { target: self.target.to_string(), why })
    }

    /// The request that logs in.
    fn auth(&self, numbered: Option<&Numbered>) -> Option<Packed> {
        let (mut user, mut password) = (&self.target.user, self.target.password.as_ref());
        if let Some(Numbered { log_in, .. }) = numbered {
            password = Some(&log_in.password);
            if log_in.user.is_some() {
                user = &log_in.user;
            }
        }
        let mut auth = vec!["AUTH"];
        auth.extend(user.as_deref());
        auth.push(password?);
        Some(pack(auth))
    }

    async fn log_in_as(&mut self, numbered: Option<&Numbered>) -> Result<(), StoreError> {
        let mut requests = Vec::new();
        let mut count = 0;
        if let Some(Packed(auth)) = self.auth(numbered) {
            requests.extend(auth);
            count += 1;
        }
        if self.target.db != 0 {
            requests.extend(pack(["SELECT", &self.target.db.to_string()]).0);
            count += 1;
        }
        // Both in one write, because round trips take most of the time of a short command.
        for reply in self.call_all(&requests, count).await? {
            self.no_error(reply)?;
        }
        self.log_in_number = numbered.map_or(0, |numbered| numbered.number);
        Ok(())
    }

    /// Logs in again if the program has given, or now has to give, another log-in. For connections
    /// between two requests: no reply is awaited, and no key is watched. True if the server had
    /// closed this connection, its log-in is no longer valid, and it was opened anew. If the log-in
    /// is valid, there is another reason, such as another server at this address.
    ///
    /// # Errors
    /// The program failed, or the errors of [`Self::open`]; the next request must not be sent.
    pub(in crate::store) async fn renew_log_in(&mut self) -> Result<bool, StoreError> {
        if self.owed > 0 {
            return Ok(false);
        }
        let Some(newest) = self.newest_log_in(None).await? else { return Ok(false) };
        if newest.number == self.log_in_number {
            if self.has_unread().await.is_ok() {
                return Ok(false);
            }
        } else {
            match self.log_in().await {
                Err(StoreError::Unreachable { .. }) => {}
                done => return done.map(|()| false),
            }
        }
        let reopened = Self::open(&self.target.clone()).await?;
        if reopened.log_in_number == self.log_in_number {
            return Ok(false);
        }
        *self = Self { reopened_at: Some(Instant::now()), ..reopened };
        Ok(true)
    }

    /// The same for a connection whose requests are queued. True if there is a reply to it.
    ///
    /// # Errors
    /// The program failed.
    pub(in crate::store) async fn queue_log_in(&mut self) -> Result<bool, StoreError> {
        let newest = self.newest_log_in(None).await?;
        let number = newest.as_ref().map_or(0, |newest| newest.number);
        if number == self.log_in_number {
            return Ok(false);
        }
        let Some(Packed(auth)) = self.auth(newest.as_ref()) else { return Ok(false) };
        self.transport.out.extend(auth);
        self.log_in_number = number;
        Ok(true)
    }

    async fn say_name(&mut self) -> Result<(), StoreError> {
        if !self.target.client_options.is_enabled(ClientOption::Name) {
            return Ok(());
        }
        let named = self.call_ok(&pack(ClientOption::Name.words())).await;
        // Without the right to set a name, the connection stays unnamed.
        self.target.client_options.record_reply(ClientOption::Name, named)
    }

    /// Sends a request and waits for its reply. An error about the record counts as a reply.
    ///
    /// # Errors
    /// No reply in time, or the connection broke: the request may have been executed, and the
    /// connection is no longer usable. Or the server refuses service.
    pub async fn ask(&mut self, request: &Packed) -> Result<StepReply, StoreError> {
        let reply = self.call(request).await?;
        self.step_reply(reply)
    }

    /// Sends several requests in one write and waits for their replies, as [`Connection::ask`] does
    /// for one.
    ///
    /// # Errors
    /// The errors of [`Connection::ask`].
    pub async fn ask_packed(&mut self, requests: &[Packed]) -> Result<Vec<StepReply>, StoreError> {
        let mut packed = Vec::new();
        for Packed(request) in requests {
            packed.extend_from_slice(request);
        }
        let mut replies = Vec::new();
        for reply in self.call_all(&packed, requests.len()).await? {
            replies.push(self.step_reply(reply)?);
        }
        Ok(replies)
    }

    /// Sends a request that must succeed: every error reply is an error.
    ///
    /// # Errors
    /// The errors of [`Connection::ask`], and any other error reply.
    pub(in crate::store) async fn call_ok(
        &mut self,
        request: &Packed,
    ) -> Result<Value, StoreError> {
        let reply = self.call(request).await?;
        self.no_error(reply)
    }

    /// Converts a reply into the type that schemas use.
    ///
    /// # Errors
    /// An error about the server or the user, not about a record.
    pub(in crate::store) fn step_reply(&self, reply: Value) -> Result<StepReply, StoreError> {
        if let Value::ServerError(error) = &reply {
            let typed = self.store_error(&error.clone().into());
            if typed.is_permission() || is_refusal(error) {
                return Err(typed);
            }
        }
        Ok(reply::step_reply(reply))
    }

    /// Sends a request and waits for any reply, including an error reply.
    pub(in crate::store) async fn call(
        &mut self,
        Packed(request): &Packed,
    ) -> Result<Value, StoreError> {
        let mut replies = self.call_all(request, 1).await?;
        replies.pop().ok_or_else(|| self.unexpected("a command"))
    }

    /// Sends `count` requests in one write and waits for their replies, including error replies.
    ///
    /// # Errors
    /// The server sent unrequested bytes, and idemctl sent nothing. Or not all replies arrived in
    /// time, there were too many, or the connection broke: the requests may have been executed.
    pub(in crate::store) async fn call_all(
        &mut self,
        requests: &[u8],
        count: usize,
    ) -> Result<Vec<Value>, StoreError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        // Checked before sending, so that this error proves that nothing was executed.
        if self.owed == 0
            && self.has_answered
            && self.has_unread().await.map_err(|error| self.store_error(&error.into()))?
        {
            return Err(StoreError::Unasked { target: self.target.to_string() });
        }
        // Only queued here: `next_value` waits in `send_and_receive`, which writes before it reads.
        self.transport.out.extend_from_slice(requests);
        let stale = self.owed;
        self.owed += count;
        let is_marked = count > 1;
        if is_marked {
            self.queue_mark();
            self.owed += 1;
        }
        // Each write has the whole timeout.
        self.patience = Patience::default();
        let mut replies = Vec::new();
        for number in 0..stale + count {
            let reply = self.next_value().await?;
            // Skip the replies to earlier requests whose callers gave up.
            if number >= stale {
                replies.push(reply);
            }
        }
        self.has_answered = true;
        if is_marked {
            self.take_mark_as_value().await?;
            self.check_ended().await?;
        }
        Ok(replies)
    }

    /// Checks that no bytes follow the replies to all requests.
    ///
    /// # Errors
    /// There were more bytes: a reply was duplicated, so later replies were matched to the wrong
    /// requests.
    pub(in crate::store) async fn check_ended(&mut self) -> Result<(), StoreError> {
        // All replies have arrived, so a connection that breaks now does no harm.
        if self.has_unread().await.unwrap_or(false) {
            return Err(self.out_of_step());
        }
        Ok(())
    }

    /// Queues a marker, which is a request with a known reply. After several requests, its reply
    /// proves that each reply was matched to its own request. A duplicated reply would shift all
    /// later ones.
    pub(in crate::store) fn queue_mark(&mut self) {
        self.mark = self.mark.wrapping_add(1);
        let text = format!("idemctl-{:016x}", self.mark);
        self.queue(&[b"PING", text.as_bytes()]);
        self.marks.push_back(text);
    }

    /// Reads the reply to the oldest pending marker, token by token.
    ///
    /// # Errors
    /// It is the reply to another request; or the errors of [`Connection::token`].
    pub(in crate::store) async fn take_mark(&mut self) -> Result<(), StoreError> {
        let expected = self.marks.pop_front().unwrap_or_default();
        match self.token().await? {
            Token::Text(text) if answers_mark(self.bytes(text.clone()), &expected) => Ok(()),
            // The server answers a marker with an error if the Redis user may not send PING, or if
            // it refuses all requests.
            Token::Error(_) => Ok(()),
            _ => Err(self.out_of_step()),
        }
    }

    /// Like [`Self::take_mark`], for replies that are read as a whole.
    async fn take_mark_as_value(&mut self) -> Result<(), StoreError> {
        let reply = self.next_value().await?;
        let expected = self.marks.pop_front().unwrap_or_default();
        match reply {
            Value::BulkString(text) if answers_mark(&text, &expected) => Ok(()),
            Value::SimpleString(text) if answers_mark(text.as_bytes(), &expected) => Ok(()),
            Value::ServerError(_) => Ok(()),
            _ => Err(self.out_of_step()),
        }
    }

    /// The error for replies that do not match their requests.
    fn out_of_step(&self) -> StoreError {
        let why = "it sent more replies than it was asked for".to_owned();
        StoreError::NotRedis { target: self.target.to_string(), why }
    }

    /// True if unrequested bytes arrived, which the next request would take for its reply. Does not
    /// wait.
    async fn has_unread(&mut self) -> io::Result<bool> {
        if self.transport.taken < self.transport.inbox.len() {
            return Ok(true);
        }
        self.transport.has_more().await
    }

    async fn next_value(&mut self) -> Result<Value, StoreError> {
        let mut arriving = Arriving::new(MOST);
        loop {
            let arrived = &self.transport.inbox[self.transport.taken..];
            if let Some(end) = arriving.end(arrived).map_err(|why| self.unreadable(why))? {
                let value = resp::value(&arrived[..end]).map_err(|why| self.unreadable(why))?;
                self.transport.taken += end;
                self.owed -= 1;
                return Ok(value);
            }
            self.send_and_receive().await.map_err(|error| self.store_error(&error.into()))?;
        }
    }

    pub(in crate::store) fn queue(&mut self, words: &[&[u8]]) {
        resp::pack(&mut self.transport.out, words);
    }

    /// Sends as much of the queue as the socket accepts now. The rest is sent while a reply is
    /// awaited, so that both sides cannot block each other.
    ///
    /// # Errors
    /// The server is unreachable.
    pub(in crate::store) async fn send(&mut self) -> Result<(), StoreError> {
        self.patience = Patience::default();
        poll_fn(|context| Poll::Ready(self.transport.poll_send(context)))
            .await
            .map_err(|error| self.store_error(&error.into()))
    }

    /// The next token of the replies to the queued requests. Its ranges are valid until the next
    /// call.
    ///
    /// # Errors
    /// No reply in time, the connection broke, or the bytes are not a valid reply.
    pub(in crate::store) async fn token(&mut self) -> Result<Token, StoreError> {
        loop {
            match self.arrived_token() {
                Ok(Some(token)) => return Ok(token),
                Ok(None) => self
                    .send_and_receive()
                    .await
                    .map_err(|error| self.store_error(&error.into()))?,
                Err(why) => return Err(self.unreadable(why)),
            }
        }
    }

    /// The next token, if all its bytes have arrived.
    fn arrived_token(&mut self) -> Result<Option<Token>, Unreadable> {
        let taken = self.transport.taken;
        let most = self.bounds.left();
        let Some((token, next)) = resp::token(&self.transport.inbox, taken, most)? else {
            return Ok(None);
        };
        self.bounds.take(&token, next - taken)?;
        self.transport.taken = next;
        Ok(Some(token))
    }

    /// The bytes that a token refers to.
    pub(in crate::store) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.transport.inbox[range]
    }

    /// The error in an error reply.
    pub(in crate::store) fn refusal(&self, text: Range<usize>) -> StoreError {
        // A whole line again, because the crate parses the code and the message of an error.
        let line = [b"-", self.bytes(text), b"\r\n"].concat();
        match redis::parse_redis_value(&line) {
            Ok(Value::ServerError(error)) => self.store_error(&error.into()),
            _ => self.unexpected("a command"),
        }
    }

    /// The error for a reply that Redis never sends to this request.
    pub(in crate::store) fn unexpected(&self, asked: &str) -> StoreError {
        StoreError::UnexpectedReply { target: self.target.to_string(), asked: asked.to_owned() }
    }

    pub(in crate::store) fn is_unix_socket(&self) -> bool {
        matches!(self.target.address, Address::Unix(_))
    }

    pub(in crate::store) fn target(&self) -> &Target {
        &self.target
    }

    /// Converts an error reply into an error.
    ///
    /// # Errors
    /// The server's error reply.
    pub(in crate::store) fn no_error(&self, reply: Value) -> Result<Value, StoreError> {
        match reply {
            Value::ServerError(error) => Err(self.store_error(&error.into())),
            value => Ok(value),
        }
    }

    /// The error for bytes that are not a valid reply to the request.
    fn unreadable(&self, why: Unreadable) -> StoreError {
        let why = match why {
            Unreadable::Malformed => NOT_RESP,
            Unreadable::TooLarge => "its reply is larger than any reply to what it was asked",
        };
        StoreError::NotRedis { target: self.target.to_string(), why: why.to_owned() }
    }

    /// The error of a connection, or of an error reply, as one of this server.
    fn store_error(&self, error: &RedisError) -> StoreError {
        StoreError::at(&self.target, error)
    }

    /// Writes what is queued and waits for more bytes, within the time for all replies to the last
    /// write.
    async fn send_and_receive(&mut self) -> io::Result<()> {
        let left = self.patience.left(self.target.timeout);
        let since = Instant::now();
        let count =
            in_time(left, poll_fn(|context| self.transport.poll_send_and_receive(context))).await?;
        self.patience.waited += since.elapsed();
        self.patience.received += count as u64;
        Ok(())
    }
}

/// True for the reply to a marker. Some proxies answer PING themselves, always with PONG.
fn answers_mark(reply: &[u8], mark: &str) -> bool {
    reply == mark.as_bytes() || reply == b"PONG"
}

#[cfg(test)]
mod tests;
