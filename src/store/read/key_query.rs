//! The plain commands that a read sends for each Redis key, and the state of the key that the
//! replies report.
//!
//! Scans send these commands on a connection of their own, all other reads through a client. Both
//! send the same commands in the same order, and read the replies with the same code.
//! [`super::script_reply`] reads the replies of the script instead.

use std::time::Duration;

use redis::{Cmd, Pipeline, Value};

use crate::domain::record::{Content, Deadline, KeyState, Observation, TimeLeft};
use crate::store::cluster::client::{Client, ClientReply};
use crate::store::connection::resp::{DIGITS, digits};
use crate::store::connection::{Connection, Token, reply};
use crate::store::error::StoreError;

/// How much of a value is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadLimit {
    /// At most this many bytes.
    Bytes(usize),
    /// All of it, whatever its size.
    Whole,
}

/// The part of a value that is read with plain commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum ValueQuery {
    /// Nothing: the idle time of the Redis key stays as it is.
    Nothing,
    /// Its type, which leaves the idle time as it is, too.
    Type,
    /// The beginning of a string.
    Head(ReadLimit),
    /// Every field of a hash.
    Fields,
}

/// The command that reports when a Redis key expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum ExpiryCommand {
    /// The exact time, from Redis 7.0 on.
    Pexpiretime,
    /// The milliseconds left. With the server's times before and after the read, they give an
    /// interval in which the key expires.
    Pttl,
}

/// The commands that are sent for each Redis key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct KeyQuery {
    pub(in crate::store) value: ValueQuery,
    pub(in crate::store) expiry: ExpiryCommand,
    pub(in crate::store) length: LengthQuery,
    /// True to ask how long the Redis key was not touched.
    pub(in crate::store) idle: bool,
}

/// How the length of a string is found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum LengthQuery {
    /// By its beginning alone: unknown if the string is longer.
    Head,
    /// By a longer beginning of at most this many bytes, of which only the shorter one is kept.
    LongerHead(usize),
    /// By STRLEN.
    Strlen,
}

/// The bytes of values that are read for their lengths, if hardly any value of a page is longer.
const LONGER_HEAD: usize = 512;

impl LengthQuery {
    /// The cheapest way for pages like one with so many records, of which some were cut. `sizes`
    /// has the lengths of the values in these; `None` for an unknown one.
    pub(super) fn for_pages_like(records: usize, cut: usize, sizes: &[Option<u64>]) -> Self {
        // From a quarter of the page on, the pages find out all lengths, which saves a round trip
        // per page.
        if cut * 4 <= records {
            return Self::Head;
        }
        let mut longer = 0;
        for size in sizes {
            longer += usize::from(size.is_none_or(|bytes| bytes > LONGER_HEAD as u64));
        }
        // A longer beginning costs the server less than STRLEN.
        if longer * 64 <= records { Self::LongerHead(LONGER_HEAD) } else { Self::Strlen }
    }
}

/// The server's time before and after a read, in milliseconds since the epoch; `None` if idemctl
/// did not ask, or the Redis user may not.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::store) struct ReadTimes {
    pub(in crate::store) before: Option<u64>,
    pub(in crate::store) after: Option<u64>,
}

/// Where the commands of a query go.
pub(in crate::store) trait CommandQueue {
    fn add(&mut self, words: &[&[u8]]);
}

/// Where the replies to the commands of a query come from, in the order of the commands.
pub(in crate::store) trait ReplySource {
    /// The next reply, or the error that the server gave in its place.
    ///
    /// # Errors
    /// The connection broke, or the bytes are not a reply.
    async fn next_reply(&mut self) -> Result<ClientReply, StoreError>;

    /// The error for a reply that Redis never sends to this command.
    fn unexpected(&self, command: &str) -> StoreError;
}

impl KeyQuery {
    /// Strings up to this length, and when they expire, by commands that every engine knows.
    pub(in crate::store) fn heads(limit: ReadLimit) -> Self {
        Self {
            value: ValueQuery::Head(limit),
            expiry: ExpiryCommand::Pttl,
            length: LengthQuery::Head,
            idle: false,
        }
    }

    /// Only when Redis keys expire.
    pub(in crate::store) fn deadlines() -> Self {
        Self { value: ValueQuery::Nothing, ..Self::heads(ReadLimit::Bytes(0)) }
    }

    /// Only the types of Redis keys, and when they expire.
    pub(in crate::store) fn types() -> Self {
        Self { value: ValueQuery::Type, ..Self::deadlines() }
    }

    /// The same, but reading at least this many bytes of a string.
    pub(in crate::store) fn reading_at_least(self, bytes: usize) -> Self {
        match self.value {
            ValueQuery::Head(ReadLimit::Bytes(limit)) => {
                Self { value: ValueQuery::Head(ReadLimit::Bytes(limit.max(bytes))), ..self }
            }
            _ => self,
        }
    }

    /// Queues the commands for the Redis keys of one record.
    pub(in crate::store) fn ask(self, queue: &mut impl CommandQueue, redis_keys: &[Vec<u8>]) {
        // One byte more shows whether the value is longer. A negative index counts from the end.
        let mut buffer = [0; DIGITS];
        let last_byte = match (self.value, self.length) {
            (ValueQuery::Head(ReadLimit::Bytes(limit)), LengthQuery::LongerHead(reach)) => {
                digits(limit.max(reach), &mut buffer)
            }
            (ValueQuery::Head(ReadLimit::Bytes(limit)), _) => digits(limit, &mut buffer),
            _ => b"-1",
        };
        for redis_key in redis_keys {
            // Before the value, because reading it is an access.
            if self.idle {
                queue.add(&[b"OBJECT", b"IDLETIME", redis_key]);
            }
            match self.value {
                ValueQuery::Nothing => {}
                ValueQuery::Type => queue.add(&[b"TYPE", redis_key]),
                ValueQuery::Head(_) => {
                    queue.add(&[b"GETRANGE", redis_key, b"0", last_byte]);
                }
                ValueQuery::Fields => queue.add(&[b"HGETALL", redis_key]),
            }
            // Sent after the value, so that a key which expires in between counts as absent, and
            // not as one without expiry.
            queue.add(&[self.expiry.name().as_bytes(), redis_key]);
            if self.length == LengthQuery::Strlen {
                queue.add(&[b"STRLEN", redis_key]);
            }
        }
    }

    /// Reads the replies to [`KeyQuery::ask`]. The Redis keys of a record are read one after the
    /// other.
    ///
    /// # Errors
    /// Inside: one of the Redis keys cannot be read. Outside: as [`ReplySource::next_reply`].
    pub(in crate::store) async fn read(
        self,
        replies: &mut impl ReplySource,
        redis_keys: &[Vec<u8>],
    ) -> Result<Result<Observation, StoreError>, StoreError> {
        let mut keys = Vec::with_capacity(redis_keys.len());
        let mut first_error = None;
        for redis_key in redis_keys {
            // Each key's replies are read, even after an error, because the replies of the next
            // record follow.
            match self.read_key(replies, redis_key).await? {
                Ok(key) => keys.push(key),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        if let Some(error) = first_error {
            return Ok(Err(error));
        }
        Ok(Ok(Observation { server_ms: None, atomic: keys.len() == 1, keys }))
    }

    async fn read_key(
        self,
        replies: &mut impl ReplySource,
        redis_key: &[u8],
    ) -> Result<Result<KeyState, StoreError>, StoreError> {
        let mut idle = None;
        // Under an LFU policy, and to a Redis user who may not ask, the reply is an error.
        if self.idle
            && let Ok(Value::Int(seconds)) = replies.next_reply().await?
        {
            idle = u64::try_from(seconds).ok().map(Duration::from_secs);
        }
        let value = match self.value {
            ValueQuery::Nothing => None,
            _ => Some(replies.next_reply().await?),
        };
        let expiry = replies.next_reply().await?;
        let length = match self.length {
            LengthQuery::Strlen => Some(replies.next_reply().await?),
            LengthQuery::Head | LengthQuery::LongerHead(_) => None,
        };

        let mut content = match value.map(|value| self.content_of(value, replies)) {
            Some(Ok(content)) => content,
            Some(Err(error)) => return Ok(Err(error)),
            None => Content::not_read(),
        };
        let expires = match expiry {
            Ok(Value::Int(expires)) => expires,
            Ok(_) => return Ok(Err(replies.unexpected(self.expiry.name()))),
            Err(error) => return Ok(Err(error)),
        };
        if expires == -2 {
            content = Content::Absent;
        }
        if let (Content::Text { head, length }, Some(Ok(Value::Int(now)))) = (&mut content, length)
            && length.is_none()
        {
            // The value may have changed since its beginning was read.
            let now = u64::try_from(now).unwrap_or(0);
            *length = Some(now.max(head.len() as u64));
        }
        let (expiry, deadline) = match self.expiry {
            // `set_times` computes the time left once the server's time is known.
            ExpiryCommand::Pexpiretime => (TimeLeft::NoExpiry, Deadline::from_pexpiretime(expires)),
            ExpiryCommand::Pttl => {
                (TimeLeft::from_pttl(expires), Deadline::from_pttl(expires, None, None))
            }
        };
        let key = KeyState::new(redis_key, content, expiry, deadline);
        Ok(Ok(KeyState { idle, ..key }))
    }

    /// The content of a value, by the reply to TYPE, GETRANGE or HGETALL.
    fn content_of(
        self,
        reply: ClientReply,
        replies: &impl ReplySource,
    ) -> Result<Content, StoreError> {
        let value = match reply {
            Ok(value) => value,
            // `read_lengths` asks for the type.
            Err(error) if error.is_wrong_type() => return Ok(Content::Other(String::new())),
            Err(error) => return Err(error),
        };
        match self.value {
            ValueQuery::Nothing => Ok(Content::not_read()),
            ValueQuery::Type => type_of(value).ok_or_else(|| replies.unexpected("TYPE")),
            ValueQuery::Fields => hash_of(value).ok_or_else(|| replies.unexpected("HGETALL")),
            ValueQuery::Head(limit) => {
                let read = reply::bytes(value).ok_or_else(|| replies.unexpected("GETRANGE"))?;
                let ReadLimit::Bytes(limit) = limit else { return Ok(Content::text(read)) };
                if read.len() <= limit {
                    return Ok(Content::text(read));
                }
                let is_all = match self.length {
                    LengthQuery::LongerHead(reach) => read.len() <= limit.max(reach),
                    LengthQuery::Head | LengthQuery::Strlen => false,
                };
                let length = if is_all { Some(read.len() as u64) } else { None };
                // Copied, because the page would otherwise keep all that was read.
                Ok(Content::Text { head: read[..limit].to_vec(), length })
            }
        }
    }

    /// Adds the server's times around a read to the observation.
    pub(in crate::store) fn set_times(self, seen: &mut Observation, times: ReadTimes) {
        match self.expiry {
            // The time left counts from the time after the read: a lock that was renewed during the
            // read would otherwise have more left than its TTL.
            ExpiryCommand::Pexpiretime => {
                seen.server_ms = times.after;
                for key in &mut seen.keys {
                    key.time_left = TimeLeft::until(key.deadline, times.after.unwrap_or_default());
                }
            }
            // PTTL was asked between the two times, which lie up to 55 ms apart around a page on a
            // busy server.
            ExpiryCommand::Pttl => {
                seen.server_ms = times.before;
                for key in &mut seen.keys {
                    if let TimeLeft::Millis(left) = key.time_left {
                        let left = i64::try_from(left).unwrap_or(i64::MAX);
                        key.deadline = Deadline::from_pttl(left, times.before, times.after);
                    }
                }
            }
        }
    }
}

impl ExpiryCommand {
    pub(in crate::store) fn name(self) -> &'static str {
        match self {
            Self::Pexpiretime => "PEXPIRETIME",
            Self::Pttl => "PTTL",
        }
    }
}

/// A value of which only the type is known, by the reply to TYPE.
fn type_of(reply: Value) -> Option<Content> {
    let kind = reply::word(reply)?;
    Some(match kind.as_str() {
        "none" => Content::Absent,
        "string" => Content::not_read(),
        _ => Content::Other(kind),
    })
}

/// A hash, by the reply to HGETALL in either protocol version; `None` if it is not such a reply.
pub(in crate::store) fn hash_of(reply: Value) -> Option<Content> {
    let mut fields = Vec::new();
    match reply {
        Value::Map(pairs) => {
            for (name, value) in pairs {
                fields.push(reply::bytes(name)?);
                fields.push(reply::bytes(value)?);
            }
        }
        other => {
            for word in reply::array(other)? {
                fields.push(reply::bytes(word)?);
            }
        }
    }
    // A hash has at least one field.
    if fields.is_empty() { Some(Content::Absent) } else { Some(Content::hash(fields)) }
}

/// Reads the reply to TIME, in milliseconds since the epoch; `None` if the Redis user may not ask.
///
/// # Errors
/// As [`ReplySource::next_reply`]; a reply that Redis never sends.
pub(in crate::store) async fn read_time(
    replies: &mut impl ReplySource,
) -> Result<Option<u64>, StoreError> {
    match replies.next_reply().await? {
        Ok(time) => match reply::millis(time) {
            Some(millis) => Ok(Some(millis)),
            None => Err(replies.unexpected("TIME")),
        },
        Err(_) => Ok(None),
    }
}

/// Returns an error that concerns only one Redis key: the Redis user may not read the key, it has
/// another type, or the node does not serve its slot.
///
/// # Errors
/// Any other error, which ends a scan.
pub(in crate::store) fn only_of_the_key<T>(
    read: Result<T, StoreError>,
) -> Result<Result<T, StoreError>, StoreError> {
    match read {
        Err(error)
            if !(error.is_permission() || error.is_wrong_type() || error.is_of_the_slot()) =>
        {
            Err(error)
        }
        read => Ok(read),
    }
}

impl CommandQueue for Connection {
    fn add(&mut self, words: &[&[u8]]) {
        self.queue(words);
    }
}

impl ReplySource for Connection {
    async fn next_reply(&mut self) -> Result<ClientReply, StoreError> {
        match self.token().await? {
            Token::Array(elements) => Ok(Ok(array(self, elements).await?)),
            token => Ok(owned(self, token)),
        }
    }

    fn unexpected(&self, command: &str) -> StoreError {
        Connection::unexpected(self, command)
    }
}

/// An array with this many elements, none of which is an array.
async fn array(connection: &mut Connection, elements: usize) -> Result<Value, StoreError> {
    let mut items = Vec::with_capacity(elements);
    for _ in 0..elements {
        let token = connection.token().await?;
        if let Token::Array(_) = token {
            // No command of a query has such a reply.
            return Err(Connection::unexpected(connection, "a query"));
        }
        items.push(owned(connection, token).unwrap_or(Value::Nil));
    }
    Ok(Value::Array(items))
}

/// A reply that owns the bytes which a token points to.
fn owned(connection: &Connection, token: Token) -> ClientReply {
    match token {
        Token::Text(text) => Ok(Value::BulkString(connection.bytes(text).to_vec())),
        Token::Integer(number) => Ok(Value::Int(number)),
        Token::Error(text) => Err(connection.refusal(text)),
        Token::Nil | Token::Array(_) => Ok(Value::Nil),
    }
}

impl CommandQueue for Pipeline {
    fn add(&mut self, words: &[&[u8]]) {
        let mut command = Cmd::new();
        for word in words {
            command.arg(word);
        }
        self.add_command(command);
    }
}

/// The replies to a pipeline that a client sent.
pub(in crate::store) struct PipelineReplies<'a> {
    client: &'a Client,
    replies: std::vec::IntoIter<ClientReply>,
}

impl<'a> PipelineReplies<'a> {
    /// Sends a pipeline, and waits for all replies to it.
    pub(in crate::store) async fn to(client: &'a Client, pipeline: &Pipeline) -> Self {
        Self { client, replies: client.ask_each(pipeline).await.into_iter() }
    }

    /// The next reply if it is a number.
    pub(in crate::store) fn next_number(&mut self) -> Option<i64> {
        let reply = self.replies.next()?.ok()?;
        reply::integer(&reply)
    }
}

impl ReplySource for PipelineReplies<'_> {
    async fn next_reply(&mut self) -> Result<ClientReply, StoreError> {
        Ok(self.replies.next().unwrap_or_else(|| Err(self.unexpected("a pipeline"))))
    }

    fn unexpected(&self, command: &str) -> StoreError {
        self.client.unexpected(command)
    }
}
