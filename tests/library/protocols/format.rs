//! The `[[value]]` formats of a protocol, and which of them a value fits.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use toml::{Table, Value};

use super::protocol::{table, text_of, texts};

/// What a Redis key holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Content {
    Text(String),
    Hash(BTreeMap<String, String>),
}

/// One `[[value]]`.
pub struct Format {
    pub name: String,
    /// The index of its Redis key.
    pub at: usize,
    pub is_completed: bool,
    pub is_hash: bool,
    equals: Option<String>,
    /// A fixed text that `decode` takes away.
    before: String,
    is_opaque: bool,
    /// Pointers and the values that they must have.
    demands: Vec<(String, Value)>,
    has: Vec<String>,
    /// All fields that a closed format may have; nothing where the format is open.
    closed: Option<Vec<String>>,
    pub owner: Option<String>,
    pub fingerprint: Option<String>,
    /// The pointer to an expiry in the value, and how many milliseconds its unit has.
    expires: Option<(String, i64)>,
}

impl Format {
    pub fn read(value: &Table, lock: usize, result: usize) -> Self {
        let list = |name: &str| value.get(name).map(texts).unwrap_or_default();
        let mut demands = Vec::new();
        if let Some(found) = value.get("where") {
            for (pointer, wanted) in table(found) {
                demands.push((pointer.clone(), wanted.clone()));
            }
        }
        let fields = value.get("fields").map(|fields| table(fields).clone()).unwrap_or_default();
        let field = |name: &str| fields.get(name).map(|pointer| text_of(pointer).to_owned());
        let has: Vec<_> = [list("has"), list("required")].concat();
        let mut closed = None;
        if value.contains_key("required") || value.contains_key("optional") {
            let mut may = [has.clone(), list("optional")].concat();
            may.extend(demands.iter().map(|(pointer, _)| pointer.clone()));
            may.extend(fields.values().map(|pointer| text_of(pointer).to_owned()));
            closed = Some(may);
        }
        Self {
            name: text_of(&value["name"]).to_owned(),
            at: match value.get("at").map(text_of) {
                Some("result") => result,
                _ => lock,
            },
            is_completed: text_of(&value["state"]) == "completed",
            is_hash: value.get("type").is_some_and(|kind| text_of(kind) == "hash"),
            equals: value.get("equals").map(|text| text_of(text).to_owned()),
            before: match value.get("decode") {
                Some(decode) => texts(decode)[0].strip_prefix("prefix=").unwrap().to_owned(),
                None => String::new(),
            },
            is_opaque: value.contains_key("opaque"),
            has,
            closed,
            owner: field("owner"),
            fingerprint: field("fingerprint"),
            expires: value.get("expires_at").map(|expires| {
                let unit = table(expires).get("unit").map_or("ms", text_of);
                let field = text_of(&table(expires)["field"]).to_owned();
                (field, if unit == "s" { 1_000 } else { 1 })
            }),
            demands,
        }
    }

    /// A text of the value without what `decode` takes away.
    pub fn without_prefix(&self, text: String) -> String {
        text.strip_prefix(&self.before).map_or(text.clone(), str::to_owned)
    }

    /// The value has this format and its own expiry, if any, has not passed.
    pub fn fits(&self, content: &Content, now_ms: i64) -> bool {
        self.has_form(content) && self.expires_in(content, now_ms).is_none_or(|left| left > 0)
    }

    /// The same, also if the value's own expiry has passed.
    pub fn has_form(&self, content: &Content) -> bool {
        match content {
            Content::Hash(_) if !self.is_hash => return false,
            Content::Text(_) if self.is_hash => return false,
            Content::Text(text) if self.is_opaque || self.equals.is_some() => {
                let is_equal = self.equals.as_ref().is_none_or(|equals| equals == text);
                return is_equal && text.starts_with(&self.before);
            }
            _ => {}
        }
        let Some(fields) = fields_of(content) else { return false };
        for (pointer, wanted) in &self.demands {
            if !fields.pointer(pointer).is_some_and(|found| is_same(found, wanted)) {
                return false;
            }
        }
        if !self.has.iter().all(|pointer| fields.pointer(pointer).is_some()) {
            return false;
        }
        let Some(may) = &self.closed else { return true };
        fields.as_object().unwrap().keys().all(|name| may.contains(&format!("/{name}")))
    }

    /// How long until the expiry in the value; `None` where it has none.
    pub fn expires_in(&self, content: &Content, now_ms: i64) -> Option<i64> {
        let (pointer, unit) = self.expires.as_ref()?;
        let at: i64 = field(content, pointer)?.parse().ok()?;
        Some(at * unit - now_ms)
    }
}

/// The text at a pointer; `""` is the whole value.
pub fn field(content: &Content, pointer: &str) -> Option<String> {
    if let (Content::Text(text), "") = (content, pointer) {
        return Some(text.clone());
    }
    match fields_of(content)?.pointer(pointer)? {
        Json::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// The fields of a JSON object or of a hash.
fn fields_of(content: &Content) -> Option<Json> {
    let fields: Json = match content {
        Content::Text(text) => serde_json::from_str(text).ok()?,
        Content::Hash(fields) => serde_json::to_value(fields).unwrap(),
    };
    fields.is_object().then_some(fields)
}

/// A field is as `where` says; that of a hash is a text.
fn is_same(found: &Json, wanted: &Value) -> bool {
    match wanted {
        Value::String(wanted) => found.as_str() == Some(wanted),
        Value::Integer(wanted) => {
            found.as_i64() == Some(*wanted) || found.as_str() == Some(&wanted.to_string())
        }
        Value::Boolean(wanted) => {
            found.as_bool() == Some(*wanted) || found.as_str() == Some(&wanted.to_string())
        }
        other => panic!("{other:?} is not compared"),
    }
}
