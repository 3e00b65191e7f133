//! Redis keys that exist without a record: as a sentence and as JSON.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::domain::record::{Content, UnclaimedKey};
use crate::domain::schema::Exclusion;
use crate::render::document::{base64_unless_text, text};
use crate::render::{escape, words};

/// How to change an unclaimed key all the same.
pub const HINT: &str = "to treat it as a record all the same, pass --schema with its schema alone";

/// The value at the Redis key and the nearest schema, as a sentence.
pub fn line(there: &UnclaimedKey) -> String {
    let kind = match &there.seen.content {
        Content::Text { length: Some(length), .. } => {
            format!("a string of {}", words::bytes(*length))
        }
        _ => format!("a {}", kind(there)),
    };
    let mut line = format!(
        "{} exists ({kind}, TTL {}), unrecognised: ",
        escape::text(&there.seen.redis_key),
        words::time_left(there.seen.time_left),
    );
    line += &match &there.nearest {
        Some((schema, why)) => format!(
            "not a value of {} ({})",
            escape::text(schema.as_bytes()),
            escape::text(why.as_bytes())
        ),
        None => "not a record of the checked schemas".to_owned(),
    };
    if !there.fits.is_empty() {
        line += &format!("; it fits {}", words::list(&there.fits, "and"));
    }
    for (schema, word) in &there.left_out_by {
        let by = match word {
            Exclusion::Key => "with its `key` pattern",
            Exclusion::Ignore => "with `ignore`",
        };
        line += &format!("; {} excludes this key {by}", escape::text(schema.as_bytes()));
    }
    line
}

/// The names of the schemas that exclude one of these Redis keys, each once.
pub fn leaving_out(there: &[UnclaimedKey]) -> BTreeSet<String> {
    // A set, because one schema may exclude several of the keys.
    let mut names = BTreeSet::new();
    for key in there {
        for (schema, _) in &key.left_out_by {
            names.insert(escape::text(schema.as_bytes()));
        }
    }
    names
}

/// The value at the Redis key and the nearest schema, as JSON.
pub fn value(there: &UnclaimedKey) -> Value {
    let length = match &there.seen.content {
        Content::Text { length, .. } => *length,
        _ => None,
    };
    let mut nearest = None;
    if let Some((schema, why)) = &there.nearest {
        nearest = Some(json!({ "schema": schema, "why": why }));
    }
    let mut left_out_by = Vec::new();
    for (schema, word) in &there.left_out_by {
        left_out_by.push(json!({ "schema": schema, "word": word.as_str() }));
    }
    let mut value = json!({
        "redis_key": text(&there.seen.redis_key),
        "type": kind(there),
        "size_bytes": length,
        "ttl_ms": there.seen.time_left.millis(),
        "nearest": nearest,
        "fits": there.fits,
        "left_out_by": left_out_by,
    });
    if let Some(base64) = base64_unless_text(&there.seen.redis_key) {
        value["redis_key_base64"] = base64.into();
    }
    value
}

fn kind(there: &UnclaimedKey) -> &str {
    there.seen.content.other_type().unwrap_or("string")
}
