//! Reads a record on the connection of a guarded step: right before the call, and again in the same
//! transaction right after it.

use redis::Value;

use super::set_words::Words;
use crate::domain::record::{
    Content, Deadline, KeyState, Observation, TimeLeft, has_expiring_fields, is_plain_hash,
};
use crate::store::cluster::client::Client;
use crate::store::cluster::deadlines::{TRIED, is_known as knows_pexpiretime};
use crate::store::cluster::routing::Route;
use crate::store::connection::{Connection, pack, reply};
use crate::store::error::StoreError;
use crate::store::read::key_query::{ExpiryCommand, hash_of};
use crate::store::read::script_reply::observation;
use crate::store::scripts;

/// The commands that read everything that identifies a record, and the parser of their replies.
pub(super) struct IdentityCommands<'a> {
    client: &'a Client,
    /// The record as it was seen. Its types decide which commands are sent.
    seen: &'a Observation,
    /// Without PEXPIRETIME, TIME is sent right after PTTL.
    expiry: ExpiryCommand,
    /// The Redis keys whose fields are read, by their indexes in the record.
    hash_key_indexes: &'a [usize],
}

/// Sends ASKING to a node that is only importing the record's slot. It holds for the next command.
///
/// # Errors
/// The errors of any command.
pub(super) async fn send_asking(
    connection: &mut Connection,
    route: &Route,
) -> Result<(), StoreError> {
    if route.asking {
        connection.call_ok(&pack(["ASKING"])).await?;
    }
    Ok(())
}

impl<'a> IdentityCommands<'a> {
    /// The commands for the node behind a connection.
    ///
    /// # Errors
    /// The node does not answer.
    pub(super) async fn for_node(
        client: &'a Client,
        connection: &mut Connection,
        seen: &'a Observation,
        hash_key_indexes: &'a [usize],
    ) -> Result<Self, StoreError> {
        // Tried on each node, because nodes of a cluster may run different versions.
        let tried = match connection.call(&pack(["PEXPIRETIME", TRIED])).await? {
            Value::ServerError(error) => Err(client.error(&error.into())),
            value => Ok(value),
        };
        let expiry = if knows_pexpiretime(tried.as_ref()) {
            ExpiryCommand::Pexpiretime
        } else {
            ExpiryCommand::Pttl
        };
        Ok(Self { client, seen, expiry, hash_key_indexes })
    }

    /// The commands for all Redis keys of the record.
    pub(super) fn commands(&self) -> Vec<Words> {
        let mut commands = Vec::new();
        for (index, key) in self.seen.keys.iter().enumerate() {
            let redis_key = &key.redis_key;
            let value_command = if self.reads_dump(index) { "DUMP" } else { "GET" };
            commands.push(command_for(value_command, redis_key));
            commands.push(command_for("TYPE", redis_key));
            commands.push(command_for("PTTL", redis_key));
            commands.push(match self.expiry {
                ExpiryCommand::Pexpiretime => command_for("PEXPIRETIME", redis_key),
                ExpiryCommand::Pttl => vec![b"TIME".to_vec()],
            });
            if self.is_hash(index) {
                commands.push(command_for("HGETALL", redis_key));
            }
        }
        commands
    }

    /// Reads the record before the call.
    ///
    /// # Errors
    /// The errors of any read; the record may be on another node.
    pub(super) async fn read(
        &self,
        connection: &mut Connection,
        route: &Route,
    ) -> Result<Observation, StoreError> {
        if self.expiry == ExpiryCommand::Pttl {
            return self.read_by_script(connection, route).await;
        }
        let mut replies = Vec::new();
        for words in self.commands() {
            send_asking(connection, route).await?;
            replies.push(connection.call(&pack(words)).await?);
        }
        self.observation(replies)
    }

    /// Reads with a script. Outside a transaction, TIME and PTTL are too far apart to determine a
    /// deadline; a script executes both at the same time.
    async fn read_by_script(
        &self,
        connection: &mut Connection,
        route: &Route,
    ) -> Result<Observation, StoreError> {
        let mut keys = Vec::with_capacity(self.seen.keys.len());
        for key in &self.seen.keys {
            keys.push(key.redis_key.clone());
        }
        let mut call: Words = vec![b"EVAL".to_vec(), scripts::READ_RECORDS.into()];
        call.push(keys.len().to_string().into_bytes());
        call.extend(keys.iter().cloned());
        call.extend([b"-1".to_vec(), b"0".to_vec()]);
        send_asking(connection, route).await?;
        let reply = connection.call_ok(&pack(call)).await?;
        // CLIENT NO-TOUCH is not set on this connection, so idle times only reflect idemctl's own
        // reads.
        observation(reply, &keys, false).ok_or_else(|| self.client.unexpected("EVAL"))
    }

    /// Parses the replies to [`IdentityCommands::commands`].
    ///
    /// # Errors
    /// A command was refused, or a reply is not one that Redis sends.
    pub(super) fn observation(&self, replies: Vec<Value>) -> Result<Observation, StoreError> {
        let mut replies = replies.into_iter();
        let mut keys = Vec::with_capacity(self.seen.keys.len());
        for (index, seen) in self.seen.keys.iter().enumerate() {
            // The value's reply is checked last, because a value of another type answers WRONGTYPE.
            let value = self.next_reply(&mut replies)?;
            let kind = self.next_reply(&mut replies)?;
            let kind = self.no_error(kind)?;
            let pttl = self.next_reply(&mut replies)?;
            let pttl = self.no_error(pttl)?;
            let moment = self.next_reply(&mut replies)?;
            let moment = self.no_error(moment)?;
            let mut fields = None;
            if self.is_hash(index) {
                fields = Some(self.next_reply(&mut replies)?);
            }
            let Some(pttl) = reply::integer(&pttl) else {
                return Err(self.client.unexpected("PTTL"));
            };
            let deadline = self.deadline(moment, pttl)?;
            let mut checksum = None;
            let mut has_plain_fields = false;
            let content = match value {
                _ if pttl == -2 => Content::Absent,
                Value::BulkString(dump) if self.reads_dump(index) => {
                    // The last bytes of a DUMP are a checksum of type and bytes.
                    // That of a hash whose fields expire is not compared.
                    has_plain_fields = is_plain_hash(&dump);
                    if !has_expiring_fields(&dump) {
                        checksum = dump.last_chunk().copied();
                    }
                    match fields.and_then(hash_of) {
                        Some(fields) => fields,
                        None => Content::Other(reply::word(kind).unwrap_or_default()),
                    }
                }
                Value::ServerError(error) if error.code() == "WRONGTYPE" => {
                    Content::Other(reply::word(kind).unwrap_or_default())
                }
                value => match reply::bytes(self.no_error(value)?) {
                    Some(text) => Content::text(text),
                    None => Content::Absent,
                },
            };
            let time_left = TimeLeft::from_pttl(pttl);
            let now = KeyState::new(&seen.redis_key, content, time_left, deadline);
            keys.push(KeyState { checksum, has_plain_fields, ..now });
        }
        Ok(Observation { server_ms: self.seen.server_ms, keys, atomic: true })
    }

    fn next_reply(&self, replies: &mut impl Iterator<Item = Value>) -> Result<Value, StoreError> {
        replies.next().ok_or_else(|| self.client.unexpected("GET"))
    }

    fn deadline(&self, moment: Value, pttl: i64) -> Result<Deadline, StoreError> {
        match self.expiry {
            ExpiryCommand::Pexpiretime => match reply::integer(&moment) {
                Some(at) => Ok(Deadline::from_pexpiretime(at)),
                None => Err(self.client.unexpected("PEXPIRETIME")),
            },
            ExpiryCommand::Pttl => match reply::millis(moment) {
                Some(now) => Ok(Deadline::from_pttl(pttl, Some(now), Some(now))),
                None => Err(self.client.unexpected("TIME")),
            },
        }
    }

    /// True for the Redis key of a hash, unless it was seen to hold a string: GET reads that one.
    fn is_hash(&self, index: usize) -> bool {
        let is_text = matches!(self.seen.keys[index].content, Content::Text { .. });
        self.hash_key_indexes.contains(&index) && !is_text
    }

    /// True for a value that is not a string: its DUMP shows whether it changed.
    fn reads_dump(&self, index: usize) -> bool {
        self.is_hash(index) || self.seen.keys[index].content.other_type().is_some()
    }

    fn no_error(&self, reply: Value) -> Result<Value, StoreError> {
        match reply {
            Value::ServerError(error) => Err(self.client.error(&error.into())),
            reply => Ok(reply),
        }
    }
}

/// The words of a command whose only argument is a Redis key.
fn command_for(command: &str, redis_key: &[u8]) -> Words {
    vec![command.as_bytes().to_vec(), redis_key.to_vec()]
}
