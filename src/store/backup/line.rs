//! Writes the lines of a backup.

use std::borrow::Cow;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::entry::{BackupEntry, FORMAT, Maker, RecordLabel};
use super::integrity::{self, Count};
use crate::domain::change::provenance::Provenance;

/// Appends a line with its checksum.
pub(super) fn write(text: &mut Vec<u8>, line: &impl Serialize) {
    end(text, text.len(), line);
}

/// Appends the last fields of a line that began at `start`, and its checksum.
fn end(text: &mut Vec<u8>, start: usize, fields: &impl Serialize) {
    let brace = text.len();
    // Text written to memory cannot fail.
    let _ = serde_json::to_writer(&mut *text, fields);
    if brace > start {
        text[brace] = b',';
    }
    integrity::seal(text, start);
    text.push(b'\n');
}

/// The line with a record's entry.
pub(super) struct EntryLine<'a> {
    entry: &'a BackupEntry<'a>,
}

/// The fields of a line after its Redis keys.
#[derive(Serialize)]
struct Rest<'a> {
    schema: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix: Option<&'a str>,
    key: Cow<'a, str>,
    state: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_base64: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    beside: Vec<BesideFields>,
}

/// The fields of a Redis key after its DUMP.
#[derive(Serialize)]
struct KeyRest {
    ttl_ms: Option<u64>,
    expires_at_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
}

#[derive(Serialize)]
struct BesideFields {
    role: &'static str,
    redis_key_base64: String,
    there: bool,
}

impl<'a> EntryLine<'a> {
    pub(super) fn new(entry: &'a BackupEntry<'a>) -> Self {
        Self { entry }
    }

    /// Appends the line with its checksum. Base64 is encoded directly into the line, because it
    /// needs no escaping, and a large value should not be copied once more.
    pub(super) fn write(&self, text: &mut Vec<u8>) {
        let start = text.len();
        // Text written to memory cannot fail.
        let _ = write!(text, "{{\"format\":{FORMAT},\"keys\":[");
        for (index, (role, saved)) in self.entry.keys.iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            text.extend_from_slice(b"{\"redis_key_base64\":\"");
            in_base64(text, &saved.redis_key);
            text.extend_from_slice(b"\",\"dump_base64\":\"");
            in_base64(text, &saved.dump);
            text.push(b'"');
            let brace = text.len();
            let rest = KeyRest {
                ttl_ms: saved.ttl_ms,
                expires_at_ms: saved.expires_at_ms,
                role: role.map(|role| role.as_str()),
            };
            // Text written to memory cannot fail.
            let _ = serde_json::to_writer(&mut *text, &rest);
            text[brace] = b',';
        }
        text.push(b']');
        end(text, start, &self.rest());
    }

    fn rest(&self) -> Rest<'_> {
        let RecordLabel { name, state, .. } = self.entry.label;
        let key = String::from_utf8_lossy(&name.key);
        let mut fields = Vec::with_capacity(self.entry.beside.len());
        for beside in &self.entry.beside {
            fields.push(BesideFields {
                role: beside.role.as_str(),
                redis_key_base64: STANDARD.encode(&beside.redis_key),
                there: beside.there,
            });
        }
        // An owned text means that the bytes are not valid UTF-8.
        let key_base64 = match key {
            Cow::Owned(_) => Some(STANDARD.encode(&name.key)),
            Cow::Borrowed(_) => None,
        };
        let prefix = name.prefix.as_deref();
        Rest { schema: &name.schema, prefix, key_base64, key, state, beside: fields }
    }
}

fn in_base64(text: &mut Vec<u8>, bytes: &[u8]) {
    let at = text.len();
    text.resize(at + bytes.len().div_ceil(3) * 4, 0);
    // The buffer has exactly the length of the encoded bytes.
    let _ = STANDARD.encode_slice(bytes, &mut text[at..]);
}

/// Withdraws entries: for each of these Redis keys, the last entry before this line is void.
#[derive(Serialize)]
pub(super) struct VoidLine {
    format: u64,
    void: Vec<String>,
}

impl VoidLine {
    pub(super) fn new(redis_keys: &[&[u8]]) -> Self {
        Self {
            format: FORMAT,
            void: redis_keys.iter().map(|redis_key| STANDARD.encode(redis_key)).collect(),
        }
    }
}

/// States where the entries below were backed up, and by which operation.
#[derive(Serialize)]
pub(super) struct FromLine<'a> {
    format: u64,
    from: &'a Provenance,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a Maker>,
}

impl<'a> FromLine<'a> {
    pub(super) fn new(from: &'a Provenance, by: Option<&'a Maker>) -> Self {
        Self { format: FORMAT, from, by }
    }
}

/// The closing line, with the counts of the lines above.
#[derive(Serialize)]
pub(super) struct ClosingLine {
    format: u64,
    end: Count,
}

impl ClosingLine {
    pub(super) fn new(end: Count) -> Self {
        Self { format: FORMAT, end }
    }
}
