//! The lines of a backup as they are written.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::beside::Beside;
use super::checksum;
use super::maker::Maker;
use super::saved::{About, FORMAT, Saved};
use crate::domain::change::provenance::Provenance;

/// Appends a line that is sealed by its checksum.
pub(super) fn write(text: &mut Vec<u8>, line: &impl Serialize) {
    end(text, text.len(), line);
}

/// Appends fields, with which the line ends that began at `start`.
fn end(text: &mut Vec<u8>, start: usize, fields: &impl Serialize) {
    let brace = text.len();
    // Text written to memory cannot fail.
    let _ = serde_json::to_writer(&mut *text, fields);
    if brace > start {
        text[brace] = b',';
    }
    checksum::seal(text, start);
    text.push(b'\n');
}

/// What brings a Redis key back.
pub(super) struct HeldLine<'a> {
    saved: &'a Saved,
    rest: Rest<'a>,
}

/// What stands in a line behind the DUMP.
#[derive(Serialize)]
struct Rest<'a> {
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

#[derive(Serialize)]
struct BesideFields {
    role: &'static str,
    redis_key_base64: String,
    there: bool,
}

impl<'a> HeldLine<'a> {
    pub(super) fn new(saved: &'a Saved, about: &'a About, beside: Option<&Beside>) -> Self {
        let key = String::from_utf8_lossy(&about.key);
        let rest = Rest {
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
        };
        Self { saved, rest }
    }

    /// Appends the line, sealed. Base64 goes where it belongs as it encodes: a large value is in memory often enough, and
    /// has nothing to escape.
    pub(super) fn write(&self, text: &mut Vec<u8>) {
        let start = text.len();
        text.extend_from_slice(format!("{{\"format\":{FORMAT},\"redis_key_base64\":\"").as_bytes());
        in_base64(text, &self.saved.redis_key);
        text.extend_from_slice(b"\",\"dump_base64\":\"");
        in_base64(text, &self.saved.dump);
        text.push(b'"');
        end(text, start, &self.rest);
    }
}

fn in_base64(text: &mut Vec<u8>, bytes: &[u8]) {
    let at = text.len();
    text.resize(at + bytes.len().div_ceil(3) * 4, 0);
    // The room is as long as it takes.
    let _ = STANDARD.encode_slice(bytes, &mut text[at..]);
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
