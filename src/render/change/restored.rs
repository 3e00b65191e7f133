//! The results of a restore for each Redis key of a backup, as rows and as JSON.

use serde_json::json;
use unicode_width::UnicodeWidthStr as _;

use crate::domain::record::TimeLeft;
use crate::render::document::{base64_unless_text, text};
use crate::render::table::shortened;
use crate::render::{escape, words};

/// The result for one Redis key. Schema and state come from the backup.
pub struct RestoredKey<'a> {
    pub outcome: &'static str,
    pub redis_key: &'a [u8],
    pub schema: &'a str,
    pub key: &'a [u8],
    pub state: &'a str,
    /// The state of the restored record, if it differs from `state`; `None` if it is the same.
    pub becomes: Option<&'a str>,
    /// The remaining time of the restored value; `None` if the Redis key is not restored.
    pub left: Option<TimeLeft>,
}

/// The heading of the rows. A restore shows the states in the backup, and an undo those of the
/// records after it.
pub fn heading(is_undo: bool) -> String {
    let state = if is_undo { "STATE AFTER" } else { "SAVED STATE" };
    columns("OUTCOME", "TTL", state, "SCHEMA", "REDIS KEY")
}

/// One row with this state. A terminal of this width shows both ends of a long Redis key.
pub fn line(row: &RestoredKey<'_>, state: &str, width: Option<usize>) -> String {
    let ttl = match row.left {
        Some(left) => words::time_left(left),
        None => "-".to_owned(),
    };
    let schema = escape::text(row.schema.as_bytes());
    let state = escape::text(state.as_bytes());
    let before = columns(row.outcome, &ttl, &state, &schema, "");
    let mut redis_key = escape::text(row.redis_key);
    if let Some(width) = width {
        // The line break has a width of 1, too.
        redis_key = shortened(&redis_key, (width + 1).saturating_sub(before.width()).max(20));
    }
    columns(row.outcome, &ttl, &state, &schema, &redis_key)
}

fn columns(outcome: &str, ttl: &str, state: &str, schema: &str, redis_key: &str) -> String {
    format!("{outcome:<9}  {ttl:<7}  {state:<11}  {schema:<16}  {redis_key}\n")
}

/// One row as a JSON object.
pub fn json(row: &RestoredKey<'_>) -> String {
    let mut value = json!({
        "outcome": row.outcome,
        "schema": row.schema,
        "state": row.state,
        "key": text(row.key),
        "redis_key": text(row.redis_key),
        "ttl_ms": row.left.and_then(TimeLeft::millis),
        "no_expiry": row.left == Some(TimeLeft::NoExpiry),
    });
    for (name, bytes) in [("key_base64", row.key), ("redis_key_base64", row.redis_key)] {
        if let Some(base64) = base64_unless_text(bytes) {
            value[name] = base64.into();
        }
    }
    escape::json(value.to_string())
}
