//! Reads a record on the connection of a transaction: after WATCH, and for a service's step again
//! right after the call.

use redis::{Cmd, Value};

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

/// The commands that read everything that identifies a record, and the parser of their replies.
pub(super) struct IdentityCommands<'a> {
    client: &'a Client,
    /// The record as it was seen. Its types decide which commands are sent.
    seen: &'a Observation,
    /// Without PEXPIRETIME, TIME is sent right before and after PTTL.
    expiry: ExpiryCommand,
    /// The Redis keys whose fields are read, by their indexes in the record.
    hash_key_indexes: &'a [usize],
}

/// Sends commands in one write, each after ASKING to a node that is only importing the slot.
///
/// # Errors
/// A reply was lost.
pub(super) async fn call_each(
    connection: &mut Connection,
    route: &Route,
    commands: &[Words],
) -> Result<Vec<Value>, StoreError> {
    let mut requests = Vec::new();
    let mut count = 0;
    for words in commands {
        if route.asking {
            requests.extend(Cmd::new().arg("ASKING").get_packed_command());
            count += 1;
        }
        requests.extend(Cmd::new().arg(words).get_packed_command());
        count += 1;
    }
    let mut replies = connection.call_all(&requests, count).await?;
    if route.asking {
        replies = replies.into_iter().skip(1).step_by(2).collect();
    }
    Ok(replies)
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
        let tried = client.no_error(connection.call(&pack(["PEXPIRETIME", TRIED])).await?);
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
            commands.push(match self.expiry {
                ExpiryCommand::Pexpiretime => command_for("PEXPIRETIME", redis_key),
                ExpiryCommand::Pttl => vec![b"TIME".to_vec()],
            });
            commands.push(command_for("PTTL", redis_key));
            if self.expiry == ExpiryCommand::Pttl {
                commands.push(vec![b"TIME".to_vec()]);
            }
            if self.is_hash(index) {
                commands.push(command_for("HGETALL", redis_key));
            } else if self.is_part(index) {
                commands.push(command_for("GET", redis_key));
            }
        }
        commands
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
            let kind = self.client.no_error(kind)?;
            let moment = self.next_reply(&mut replies)?;
            let moment = self.client.no_error(moment)?;
            let pttl = self.next_reply(&mut replies)?;
            let pttl = self.client.no_error(pttl)?;
            let Some(pttl) = reply::integer(&pttl) else {
                return Err(self.client.unexpected("PTTL"));
            };
            let deadline = match self.expiry {
                ExpiryCommand::Pexpiretime => match reply::integer(&moment) {
                    Some(at) => Deadline::from_pexpiretime(at),
                    None => return Err(self.client.unexpected("PEXPIRETIME")),
                },
                ExpiryCommand::Pttl => {
                    let after = self.next_reply(&mut replies)?;
                    let after = reply::millis(self.client.no_error(after)?);
                    Deadline::measured(pttl, reply::millis(moment), after)
                }
            };
            let mut beside = None;
            if self.is_hash(index) || self.is_part(index) {
                beside = Some(self.next_reply(&mut replies)?);
            }
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
                    match beside {
                        Some(Value::BulkString(text)) => Content::text(text),
                        beside => match beside.and_then(hash_of) {
                            Some(fields) => fields,
                            None => Content::Other(reply::word(kind).unwrap_or_default()),
                        },
                    }
                }
                Value::ServerError(error) if error.code() == "WRONGTYPE" => {
                    Content::Other(reply::word(kind).unwrap_or_default())
                }
                value => match reply::bytes(self.client.no_error(value)?) {
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

    /// True for the Redis key of a hash, unless it was seen to hold a string: GET reads that one.
    fn is_hash(&self, index: usize) -> bool {
        let is_text = matches!(self.seen.keys[index].content, Content::Text { .. });
        self.hash_key_indexes.contains(&index) && !is_text
    }

    /// True for a string that was seen in part.
    fn is_part(&self, index: usize) -> bool {
        let content = &self.seen.keys[index].content;
        content.other_type().is_none() && !content.is_whole()
    }

    /// True for a value that is not a string, or was seen in part: its DUMP shows whether it
    /// changed.
    fn reads_dump(&self, index: usize) -> bool {
        let is_other = self.seen.keys[index].content.other_type().is_some();
        self.is_hash(index) || self.is_part(index) || is_other
    }
}

/// The words of a command whose only argument is a Redis key.
fn command_for(command: &str, redis_key: &[u8]) -> Words {
    vec![command.as_bytes().to_vec(), redis_key.to_vec()]
}
