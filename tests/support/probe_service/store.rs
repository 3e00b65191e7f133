//! What the service sends to Redis.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use idemctl::domain::schema::{Meaning, Step};
use idemctl::domain::step::inputs::StepInputs;
use idemctl::domain::step::reply::StepReply;
use redis::{Client, Connection, RedisResult};

use crate::support::wire::{try_ask, words};

/// The Redis server or cluster of the service, and the connections that are not in use.
pub struct Store {
    url: String,
    /// By the URL of their server.
    idle: Mutex<HashMap<String, Vec<Connection>>>,
}

impl Store {
    /// The server at this URL, or the cluster of which it is a node. It is contacted with the first
    /// command.
    pub fn at(url: &str) -> RedisResult<Self> {
        Client::open(url)?;
        Ok(Self { url: url.to_owned(), idle: Mutex::default() })
    }

    /// Sends a command. A node of a cluster may name another node, which is then asked.
    fn ask(&self, command: &[Vec<u8>]) -> RedisResult<StepReply> {
        let reply = self.ask_node(&self.url, command)?;
        if let StepReply::Error { code, message } = &reply
            && code == "MOVED"
            && let Some((_, address)) = message.split_once(' ')
        {
            return self.ask_node(&format!("redis://{address}"), command);
        }
        Ok(reply)
    }

    fn ask_node(&self, url: &str, command: &[Vec<u8>]) -> RedisResult<StepReply> {
        let idle = self.idle.lock().unwrap().get_mut(url).and_then(Vec::pop);
        let mut connection = match idle {
            Some(connection) => connection,
            None => Client::open(url)?.get_connection()?,
        };
        let reply = try_ask(&mut connection, command)?;
        // A connection whose reply was lost is dropped.
        self.idle.lock().unwrap().entry(url.to_owned()).or_default().push(connection);
        Ok(reply)
    }

    /// Executes a step. Returns the meaning of the last reply, which is `None` if the schema does
    /// not list it, and the stored response in it.
    pub fn execute(
        &self,
        step: &Step,
        inputs: &StepInputs<'_>,
    ) -> RedisResult<(Option<Meaning>, Option<Vec<u8>>)> {
        for call in &step.calls {
            let reply = self.ask(&words(call, inputs))?;
            let Some(matched) = inputs.matcher().match_reply(call, &reply) else {
                return Ok((None, None));
            };
            if matched.meaning() != Meaning::Next {
                return Ok((Some(matched.meaning()), reply.stored().map(<[u8]>::to_vec)));
            }
        }
        Ok((None, None))
    }

    /// The value of a Redis key; `None` if there is no text.
    pub fn get(&self, redis_key: &[u8]) -> RedisResult<Option<Vec<u8>>> {
        let reply = self.ask(&[b"GET".to_vec(), redis_key.to_vec()])?;
        Ok(reply.stored().map(<[u8]>::to_vec))
    }

    /// Sets a Redis key, whatever is there, with a TTL in seconds or without one.
    pub fn set(&self, redis_key: &[u8], value: &[u8], ttl: Option<u64>) -> RedisResult<()> {
        let mut command = vec![b"SET".to_vec(), redis_key.to_vec(), value.to_vec()];
        if let Some(seconds) = ttl {
            command.extend([b"EX".to_vec(), seconds.to_string().into_bytes()]);
        }
        self.ask(&command)?;
        Ok(())
    }

    /// Lets a Redis key expire after this time.
    pub fn expire(&self, redis_key: &[u8], ttl: Duration) -> RedisResult<()> {
        let ttl = ttl.as_millis().to_string();
        self.ask(&[b"PEXPIRE".to_vec(), redis_key.to_vec(), ttl.into_bytes()])?;
        Ok(())
    }

    /// Deletes a Redis key, whoever set it.
    pub fn delete(&self, redis_key: &[u8]) -> RedisResult<()> {
        self.ask(&[b"DEL".to_vec(), redis_key.to_vec()])?;
        Ok(())
    }
}
