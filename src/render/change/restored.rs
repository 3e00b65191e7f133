//! What became of the Redis keys of a backup, as rows and as JSON.

use serde_json::json;

use crate::domain::duration;
use crate::render::escape;
use crate::render::json::{base64_unless_text, text};

/// What is shown of one Redis key.
#[derive(Debug)]
pub struct Row<'a> {
    /// What became of it.
    pub outcome: &'static str,
    /// The Redis key.
    pub redis_key: &'a [u8],
    /// The schema's name, as the backup has it.
    pub schema: &'a str,
    /// The idempotency key.
    pub key: &'a [u8],
    /// The record's state, as the backup has it.
    pub state: &'a str,
    /// Milliseconds it has left, `Some(None)` for ever; `None` when it is not brought back.
    pub left: Option<Option<u64>>,
}

/// The heading line.
pub fn heading() -> String {
    columns("OUTCOME", "TTL", "STATE", "SCHEMA", "REDIS KEY")
}

/// One line; the Redis key last, whole.
pub fn line(row: &Row<'_>) -> String {
    let ttl = match row.left {
        None => "-".to_owned(),
        Some(None) => "never".to_owned(),
        Some(Some(left)) => duration::short(left),
    };
    let (state, schema) = (escape::text(row.state.as_bytes()), escape::text(row.schema.as_bytes()));
    columns(row.outcome, &ttl, &state, &schema, &escape::text(row.redis_key))
}

fn columns(outcome: &str, ttl: &str, state: &str, schema: &str, redis_key: &str) -> String {
    format!("{outcome:<13}  {ttl:<7}  {state:<11}  {schema:<16}  {redis_key}\n")
}

/// One JSON object.
pub fn json(row: &Row<'_>) -> String {
    let mut value = json!({
        "outcome": row.outcome,
        "schema": row.schema,
        "state": row.state,
        "key": text(row.key),
        "redis_key": text(row.redis_key),
        "ttl_ms": row.left.flatten(),
        "no_expiry": row.left == Some(None),
    });
    for (name, bytes) in [("key_base64", row.key), ("redis_key_base64", row.redis_key)] {
        if let Some(base64) = base64_unless_text(bytes) {
            value[name] = base64.into();
        }
    }
    escape::json(value.to_string())
}
