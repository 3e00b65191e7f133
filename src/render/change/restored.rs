//! What became of the Redis keys of a backup, as rows and as JSON.

use serde_json::json;

use crate::domain::record::Expiry;
use crate::render::document::{base64_unless_text, text};
use crate::render::{escape, words};

/// What became of one Redis key; schema and state are those that the backup names.
pub struct Row<'a> {
    pub outcome: &'static str,
    pub redis_key: &'a [u8],
    pub schema: &'a str,
    pub key: &'a [u8],
    pub state: &'a str,
    /// What the Redis key has left; `None` where the Redis key does not come back.
    pub left: Option<Expiry>,
}

pub fn heading() -> String {
    columns("OUTCOME", "TTL", "STATE", "SCHEMA", "REDIS KEY")
}

/// One line; the Redis key last, whole.
pub fn line(row: &Row<'_>) -> String {
    let ttl = row.left.map_or_else(|| "-".to_owned(), words::expiry);
    let (state, schema) = (escape::text(row.state.as_bytes()), escape::text(row.schema.as_bytes()));
    columns(row.outcome, &ttl, &state, &schema, &escape::text(row.redis_key))
}

fn columns(outcome: &str, ttl: &str, state: &str, schema: &str, redis_key: &str) -> String {
    format!("{outcome:<13}  {ttl:<7}  {state:<11}  {schema:<16}  {redis_key}\n")
}

pub fn json(row: &Row<'_>) -> String {
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
