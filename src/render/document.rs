//! JSON for programs, the documented and versioned contract: one document, or one object a line. Fields are added, never
//! renamed.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::escape;

/// `{"format":1,NAME:[…],…}` in several lines: the values, and behind them what is said of them all.
pub fn document(name: &str, values: &[impl Serialize], more: &Map<String, Value>) -> String {
    pretty(&JsonDocument { name, values, more })
}

/// One object in several lines.
pub fn pretty(value: &impl Serialize) -> String {
    escape::json(serde_json::to_string_pretty(value).unwrap_or_default()) + "\n"
}

pub fn line(value: &impl Serialize) -> String {
    escape::json(serde_json::to_string(value).unwrap_or_default()) + "\n"
}

/// A document whose values go out as they come, each in a line.
pub struct Streamed {
    name: &'static str,
    is_open: bool,
}

impl Streamed {
    pub fn new(name: &'static str) -> Self {
        Self { name, is_open: false }
    }

    /// What stands before the next value.
    pub fn before_value(&mut self) -> String {
        if std::mem::replace(&mut self.is_open, true) {
            ",\n".to_owned()
        } else {
            self.opening() + "\n"
        }
    }

    /// The end of the document, with what is said of all values.
    pub fn end(&self, of_all: &Map<String, Value>) -> String {
        let open = if self.is_open { "\n".to_owned() } else { self.opening() };
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

/// The fields of a JSON object, for another one to take in.
pub fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

pub fn with(first: Value, more: Map<String, Value>) -> Value {
    let mut all = fields(first);
    all.extend(more);
    Value::Object(all)
}

/// UTF-8 as it is; other bytes escaped, to be read by people beside a base64 field.
pub(super) fn text(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| Cow::Owned(escape::text(bytes)), Cow::Borrowed)
}

/// The value of a base64 field: bytes that are not UTF-8, without loss; `None` for those that are.
pub(super) fn base64_unless_text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).is_err().then(|| STANDARD.encode(bytes))
}
