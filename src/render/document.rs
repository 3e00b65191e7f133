//! JSON for programs, a documented and versioned contract: one document, or one object per line.
//! New versions add fields, and never rename any.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::escape;

/// `{"format":1,NAME:[…],…}` in several lines: the values, then the fields about all of them.
pub fn document(name: &str, values: &[impl Serialize], more: &Map<String, Value>) -> String {
    pretty(&JsonDocument { name, values, more })
}

/// One object in several lines.
pub fn pretty(value: &impl Serialize) -> String {
    escape::json(serde_json::to_string_pretty(value).unwrap_or_default()) + "\n"
}

/// One object in one line.
pub fn line(value: &impl Serialize) -> String {
    escape::json(serde_json::to_string(value).unwrap_or_default()) + "\n"
}

/// A document that prints each value as soon as it is known, one per line.
pub struct Streamed {
    name: &'static str,
    is_open: bool,
}

impl Streamed {
    /// A document with this name for its list of values.
    pub fn new(name: &'static str) -> Self {
        Self { name, is_open: false }
    }

    /// The text before the next value.
    pub fn before_value(&mut self) -> String {
        if std::mem::replace(&mut self.is_open, true) {
            ",\n".to_owned()
        } else {
            self.opening() + "\n"
        }
    }

    /// The end of the document, with the fields about all values.
    pub fn end(&self, of_all: &Map<String, Value>) -> String {
        let open = if self.is_open { "\n".to_owned() } else { self.opening() };
        // The fields go into the object that is still open, so their own opening brace is dropped.
        let fields = line(of_all);
        format!("{open}],{}", fields.strip_prefix('{').unwrap_or(&fields))
    }

    fn opening(&self) -> String {
        format!("{{\"format\":1,\"{}\":[", self.name)
    }
}

struct JsonDocument<'a, T> {
    name: &'a str,
    values: &'a [T],
    more: &'a Map<String, Value>,
}

impl<T: Serialize> Serialize for JsonDocument<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("format", &1)?;
        map.serialize_entry(self.name, self.values)?;
        for (name, value) in self.more {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// The fields of a JSON object, for adding them to another one.
pub fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// The first object with more fields at its end.
pub fn with(first: Value, more: Map<String, Value>) -> Value {
    let mut all = fields(first);
    all.extend(more);
    Value::Object(all)
}

/// UTF-8 unchanged, other bytes escaped. A base64 field next to it holds the exact bytes.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(escape::text(bytes)),
    }
}

/// The value of a base64 field: bytes that are not UTF-8; `None` for bytes that are.
pub(crate) fn base64_unless_text(bytes: &[u8]) -> Option<String> {
    match std::str::from_utf8(bytes) {
        Ok(_) => None,
        Err(_) => Some(STANDARD.encode(bytes)),
    }
}
