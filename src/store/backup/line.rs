//! The lines of a backup as they are written.

use std::borrow::Cow;

use base64::Engine as _;
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};

use super::beside::Beside;
use super::checksum;
use super::maker::Maker;
use super::saved::{About, FORMAT, Saved};
use crate::domain::change::provenance::Provenance;

/// Appends a line that is sealed by its checksum.
pub(super) fn write(text: &mut Vec<u8>, line: &impl Serialize) {
    let start = text.len();
    // Text written to memory cannot fail.
    let _ = serde_json::to_writer(&mut *text, line);
    checksum::seal(text, start);
    text.push(b'\n');
}

/// What brings a Redis key back.
#[derive(Serialize)]
pub(super) struct HeldLine<'a> {
    format: u64,
    redis_key_base64: String,
    #[serde(serialize_with = "in_base64")]
    dump_base64: &'a [u8],
    ttl_ms: Option<u64>,
    expires_at_ms: Option<u64>,
    schema: &'a str,
    key: Cow<'a, str>,
    state: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<BesideFields>,
}

/// Writes as it encodes: a large value is in memory often enough.
fn in_base64<S: Serializer>(bytes: &&[u8], to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&Base64Display::new(bytes, &STANDARD))
}

#[derive(Serialize)]
struct BesideFields {
    role: &'static str,
    redis_key_base64: String,
    there: bool,
}

impl<'a> HeldLine<'a> {
    pub(super) fn new(saved: &'a Saved, about: &'a About, beside: Option<&Beside>) -> Self {
        let key = String::from_utf8_lossy(&about.key);
        Self {
            format: FORMAT,
            redis_key_base64: STANDARD.encode(&saved.redis_key),
            dump_base64: &saved.dump,
            ttl_ms: saved.ttl_ms,
            expires_at_ms: saved.expires_at_ms,
            schema: &about.schema,
            // Text that is not borrowed is not what the bytes say.
            key_base64: matches!(key, Cow::Owned(_)).then(|| STANDARD.encode(&about.key)),
            key,
            state: about.state,
            beside: beside.map(|beside| BesideFields {
                role: beside.role.as_str(),
                redis_key_base64: STANDARD.encode(&beside.redis_key),
                there: beside.there,
            }),
        }
    }
}

/// Takes Redis keys back: for each the last line before does not count.
#[derive(Serialize)]
pub(super) struct VoidLine {
    format: u64,
    void: Vec<String>,
}

impl VoidLine {
    pub(super) fn new(redis_keys: &[&[u8]]) -> Self {
        Self { format: FORMAT, void: redis_keys.iter().map(|redis_key| STANDARD.encode(redis_key)).collect() }
    }
}

/// Says where the lines behind were taken from. An idemctl that does not know of places takes this for a line that takes
/// nothing back.
#[derive(Serialize)]
pub(super) struct FromLine<'a> {
    format: u64,
    void: [String; 0],
    from: &'a Provenance,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a Maker>,
}

impl<'a> FromLine<'a> {
    pub(super) fn new(from: &'a Provenance, by: Option<&'a Maker>) -> Self {
        Self { format: FORMAT, void: [], from, by }
    }
}
