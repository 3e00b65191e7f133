//! What became of the Redis keys of a backup, as rows and as JSON.

use serde_json::json;
use unicode_width::UnicodeWidthStr as _;

use crate::domain::record::Expiry;
use crate::render::document::{base64_unless_text, text};
use crate::render::{escape, words};

/// What became of one Redis key; schema and state are those that the backup names.
pub struct RestoredKey<'a> {
    pub outcome: &'static str,
    pub redis_key: &'a [u8],
    pub schema: &'a str,
    pub key: &'a [u8],
    pub state: &'a str,
    /// The state of what comes back, if that is another; `None` if it is the same.
    pub becomes: Option<&'a str>,
    /// What the Redis key has left; `None` where the Redis key does not come back.
    pub left: Option<Expiry>,
}

pub fn heading() -> String {
    columns("OUTCOME", "TTL", "STATE", "SCHEMA", "REDIS KEY")
}

/// One line; the Redis key last, whole. Where the line is longer than the terminal, the Redis key has a line of its own.
pub fn line(row: &RestoredKey<'_>, width: Option<usize>) -> String {
    let ttl = row.left.map_or_else(|| "-".to_owned(), words::expiry);
    let schema = escape::text(row.schema.as_bytes());
    let mut state = escape::text(row.state.as_bytes());
    if let Some(becomes) = row.becomes {
        state = format!("{state} -> {}", escape::text(becomes.as_bytes()));
    }
    let redis_key = escape::text(row.redis_key);
    let line = columns(row.outcome, &ttl, &state, &schema, &redis_key);
    if width.is_none_or(|width| line.trim_end().width() <= width) {
        return line;
    }
    format!("{}\n  {redis_key}\n", columns(row.outcome, &ttl, &state, &schema, "").trim_end())
}

fn columns(outcome: &str, ttl: &str, state: &str, schema: &str, redis_key: &str) -> String {
    format!("{outcome:<13}  {ttl:<7}  {state:<11}  {schema:<16}  {redis_key}\n")
}

pub fn json(row: &RestoredKey<'_>) -> String {
    let mut value = json!({
        "outcome": row.outcome,
        "schema": row.schema,
        "state": row.state,
        "key": text(row.key),
        "redis_key": text(row.redis_key),
        "ttl_ms": row.left.and_then(Expiry::millis),
        "no_expiry": row.left == Some(Expiry::Never),
    });
    for (name, bytes) in [("key_base64", row.key), ("redis_key_base64", row.redis_key)] {
        if let Some(base64) = base64_unless_text(bytes) {
            value[name] = base64.into();
        }
    }
    escape::json(value.to_string())
}
