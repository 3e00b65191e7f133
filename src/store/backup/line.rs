//! Writes the lines of a backup.

use std::borrow::Cow;
use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Value, json};

use super::entry::{BackupEntry, BesideFields, FORMAT, RecordLabel};
use super::integrity;

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

impl BackupEntry<'_> {
    /// Appends the line of the entry with its checksum. Base64 is encoded directly into the line,
    /// because it needs no escaping, and a large value should not be copied once more.
    pub(super) fn write_line(&self, text: &mut Vec<u8>) {
        let start = text.len();
        // Text written to memory cannot fail.
        let _ = write!(text, "{{\"format\":{FORMAT},\"keys\":[");
        for (index, (role, saved)) in self.keys.iter().enumerate() {
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
        let RecordLabel { name, state, .. } = self.label;
        let key = String::from_utf8_lossy(&name.key);
        let mut fields = Vec::with_capacity(self.beside.len());
        for beside in &self.beside {
            fields.push(BesideFields {
                role: beside.role.as_str().to_owned(),
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

/// The line that withdraws entries: for each of these Redis keys, the last entry before it is void.
pub(super) fn void(redis_keys: &[&[u8]]) -> Value {
    let void: Vec<_> = redis_keys.iter().map(|redis_key| STANDARD.encode(redis_key)).collect();
    json!({ "format": FORMAT, "void": void })
}
