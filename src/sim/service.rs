//! A service whose workers idemctl runs: its loaded scripts, and the server's time.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::domain::record::{Content, age};
use crate::domain::schema::{Action, Schema};
use crate::domain::step::{CallSender, StepCall, StepReply};
use crate::store::{Connection, Packed, StoreError, pack, set_words};

/// A service whose scripts are loaded into the server.
pub(super) struct LoadedService<'a> {
    pub(super) schema: &'a Schema,
    /// The digests of the scripts that were loaded in advance.
    digests: BTreeMap<&'a str, Vec<u8>>,
    /// The server's time at `started`, in milliseconds since the epoch; 0 if the Redis user may not
    /// read it.
    started_ms: u64,
    started: Instant,
}

impl<'a> LoadedService<'a> {
    /// Loads the schema's scripts into the server, and reads the server's time.
    pub(super) async fn load(
        schema: &'a Schema,
        connection: &mut Connection,
    ) -> Result<Self, StoreError> {
        let mut digests = BTreeMap::new();
        for (name, script) in &schema.scripts {
            match connection.ask(&pack(["SCRIPT", "LOAD", &script.text])).await {
                Ok(StepReply::Text(digest)) => {
                    digests.insert(name.as_str(), digest);
                }
                Err(error) if !error.is_permission() => return Err(error),
                // A Redis user who may not load scripts sends the whole script with each call.
                _ => {}
            }
        }
        // Read once: each TIME would cost a round trip, and the clocks' difference does not change
        // within a race.
        let started = Instant::now();
        let started_ms = match connection.ask(&pack(["TIME"])).await {
            Ok(time) => server_ms(&time),
            Err(error) if error.is_permission() => 0,
            Err(error) => return Err(error),
        };
        Ok(Self { schema, digests, started_ms, started })
    }

    /// The server's time in milliseconds since the epoch, which a worker with a correct clock
    /// sends.
    pub(super) fn now_ms(&self) -> u64 {
        self.started_ms.saturating_add(age::millis(self.started.elapsed()))
    }

    /// Packs a call, with the script's digest if the script is loaded.
    ///
    /// A server can forget scripts at any time. It then replies NOSCRIPT and has executed nothing.
    /// The caller may then send the whole script ([`is_no_script`]).
    pub(super) fn pack(&self, call: StepCall<'_>) -> Packed {
        let Action::Script { name, keys, args } = &call.call.action else {
            return pack(call.words());
        };
        let Some(digest) = self.digests.get(name.as_str()) else {
            return pack(call.words());
        };
        let mut words = vec![b"EVALSHA".to_vec(), digest.clone()];
        words.extend(call.inputs.script_arguments(keys, args));
        pack(words)
    }
}

/// A connection sends each call immediately, with the script's text.
impl CallSender for Connection {
    type Error = StoreError;

    async fn send_call(&mut self, call: StepCall<'_>) -> Result<StepReply, StoreError> {
        self.ask(&pack(call.words())).await
    }
}

/// True if the server forgot a script that was called by its digest.
pub(super) fn is_no_script(reply: &StepReply) -> bool {
    matches!(reply, StepReply::Error { code, .. } if code == "NOSCRIPT")
}

/// A reply in words, for people.
pub(super) fn words(reply: &StepReply) -> String {
    match reply {
        StepReply::Nil => "nil".to_owned(),
        StepReply::Integer(number) => number.to_string(),
        StepReply::Text(bytes) => {
            format!("\"{}\"", String::from_utf8_lossy(&bytes[..bytes.len().min(80)]))
        }
        StepReply::Array(items) => {
            let items: Vec<_> = items.iter().map(words).collect();
            format!("{{{}}}", items.join(", "))
        }
        StepReply::Error { code, message } => format!("error {code} {message}"),
    }
}

/// The reply to TIME in milliseconds since the epoch; 0 if the reply is not a time.
pub(super) fn server_ms(reply: &StepReply) -> u64 {
    let StepReply::Array(items) = reply else { return 0 };
    number_at(items, 0) * 1_000 + number_at(items, 1) / 1_000
}

fn number_at(items: &[StepReply], index: usize) -> u64 {
    match items.get(index) {
        Some(StepReply::Text(text)) => String::from_utf8_lossy(text).parse().unwrap_or(0),
        _ => 0,
    }
}

/// The content of a Redis key, read with GET, or with HGETALL if it is not a string.
pub(super) async fn read_content(
    connection: &mut Connection,
    redis_key: &[u8],
) -> Result<Content, StoreError> {
    match connection.ask(&pack([b"GET", redis_key])).await? {
        StepReply::Text(text) => return Ok(Content::text(text)),
        StepReply::Nil => return Ok(Content::Absent),
        // WRONGTYPE: the value is not a string.
        _ => {}
    }
    let StepReply::Array(items) = connection.ask(&pack([b"HGETALL", redis_key])).await? else {
        return Ok(Content::Other("another type".to_owned()));
    };
    let mut words = Vec::new();
    for item in items {
        if let StepReply::Text(text) = item {
            words.push(text);
        }
    }
    Ok(Content::hash(words))
}

/// A Redis key of the steps that no template of the schema names, in words.
pub(super) fn unnamed(redis_key: &str) -> String {
    format!("the Redis key {redis_key}, which `[keys]` does not name")
}

/// The Redis keys of a temporary local Redis beside these. It has few, so that one SCAN reads all.
pub(super) async fn unnamed_keys(
    connection: &mut Connection,
    named: &[Vec<u8>],
) -> Result<Vec<String>, StoreError> {
    let mut unnamed = Vec::new();
    let StepReply::Array(parts) = connection.ask(&pack(["SCAN", "0", "COUNT", "10000"])).await?
    else {
        return Ok(unnamed);
    };
    let Some(StepReply::Array(redis_keys)) = parts.get(1) else { return Ok(unnamed) };
    for redis_key in redis_keys {
        if let StepReply::Text(redis_key) = redis_key
            && !named.contains(redis_key)
        {
            unnamed.push(String::from_utf8_lossy(redis_key).into_owned());
        }
    }
    unnamed.sort();
    Ok(unnamed)
}

/// Sets a Redis key of any type, with a TTL in milliseconds; `None` for a key that never expires.
pub(super) async fn set_content(
    connection: &mut Connection,
    redis_key: &[u8],
    content: &Content,
    ttl_ms: Option<u64>,
) -> Result<(), StoreError> {
    for words in set_words(redis_key, content, ttl_ms) {
        connection.ask(&pack(words)).await?;
    }
    Ok(())
}
