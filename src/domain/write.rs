//! What a service writes: values and call arguments as templates with named placeholders.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::domain::response::Response;
use crate::domain::schema::{Schema, Slot};

/// A text with placeholders such as `{lock_ttl}`; braces around anything else are literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(Vec<u8>),
    Place(Place),
}

impl Part {
    fn literal(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self::Literal(text.as_bytes().to_vec()))
    }
}

/// What a placeholder stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Key,
    RedisKey(Slot),
    Owner,
    LockTtl,
    ResultTtl,
    LockValue,
    ResultValue,
    Status,
    HeaderLists,
    Headers,
    Body,
    BodyBase64,
    BodyJson,
    BodyText,
}

const IN_CALLS: &[(&str, Place)] = &[
    ("key", Place::Key),
    ("record", Place::RedisKey(Slot::Record)),
    ("lock", Place::RedisKey(Slot::Lock)),
    ("result", Place::RedisKey(Slot::Result)),
    ("owner", Place::Owner),
    ("lock_ttl", Place::LockTtl),
    ("result_ttl", Place::ResultTtl),
    ("lock_value", Place::LockValue),
    ("result_value", Place::ResultValue),
];

const IN_VALUES: &[(&str, Place)] = &[
    ("owner", Place::Owner),
    ("status", Place::Status),
    ("header_lists", Place::HeaderLists),
    ("headers", Place::Headers),
    ("body", Place::Body),
    ("body_base64", Place::BodyBase64),
    ("body_json", Place::BodyJson),
    ("body_text", Place::BodyText),
];

impl Template {
    /// Parses a KEYS, ARGV or command word.
    ///
    /// # Errors
    /// Names the placeholder that is not known there.
    pub fn of_call(text: &str) -> Result<Self, String> {
        Self::parse(text, IN_CALLS)
    }

    /// Parses the text of a value the service stores.
    ///
    /// # Errors
    /// Names the placeholder that is not known there.
    pub fn of_value(text: &str) -> Result<Self, String> {
        Self::parse(text, IN_VALUES)
    }

    fn parse(text: &str, known: &[(&str, Place)]) -> Result<Self, String> {
        let mut parts = Vec::new();
        // What follows the last placeholder, and where in it to look for the next one.
        let (mut rest, mut from) = (text, 0);
        while let Some(open) = rest[from..].find('{').map(|at| from + at) {
            let inside = &rest[open + 1..];
            let name = inside
                .split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'))
                .next()
                .unwrap_or_default();
            if name.is_empty() || !inside[name.len()..].starts_with('}') {
                from = open + 1;
                continue;
            }
            let Some((_, place)) = known.iter().find(|(word, _)| *word == name) else {
                let words: Vec<_> = known.iter().map(|(word, _)| format!("{{{word}}}")).collect();
                return Err(format!("`{{{name}}}` is no placeholder here: {}", words.join(" ")));
            };
            parts.extend(Part::literal(&rest[..open]));
            parts.push(Part::Place(*place));
            (rest, from) = (&inside[name.len() + 1..], 0);
        }
        parts.extend(Part::literal(rest));
        Ok(Self(parts))
    }

    fn fill(&self, place: impl Fn(Place) -> Vec<u8>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in &self.0 {
            match part {
                Part::Literal(literal) => bytes.extend_from_slice(literal),
                Part::Place(of) => bytes.extend_from_slice(&place(*of)),
            }
        }
        bytes
    }

    /// The template as it stands in `schema.toml`.
    pub fn display(&self) -> String {
        let name = |place: &Place| IN_CALLS.iter().chain(IN_VALUES).find(|(_, known)| known == place);
        self.0
            .iter()
            .map(|part| match part {
                Part::Literal(literal) => String::from_utf8_lossy(literal).into_owned(),
                Part::Place(place) => name(place).map_or_else(String::new, |(word, _)| format!("{{{word}}}")),
            })
            .collect()
    }

    /// True when nothing but one placeholder for a Redis key stands in it.
    pub fn is_redis_key(&self) -> bool {
        matches!(self.0.as_slice(), [Part::Place(Place::RedisKey(_))])
    }
}

/// One worker's request on one idempotency key: what the placeholders of a schema's calls stand for.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The schema whose steps are played.
    pub schema: &'a Schema,
    /// The idempotency key.
    pub key: &'a [u8],
    /// The worker's id (the fencing token, where the schema has one).
    pub owner: &'a str,
    /// What the operation answers.
    pub response: &'a Response,
}

impl Request<'_> {
    /// A KEYS, ARGV or command word of this request.
    pub fn word(&self, template: &Template) -> Vec<u8> {
        template.fill(|place| match place {
            Place::Key => self.key.to_vec(),
            Place::RedisKey(role) => self.redis_key(role),
            Place::Owner => self.owner.as_bytes().to_vec(),
            Place::LockTtl => whole_seconds(self.schema.lock_ttl),
            Place::ResultTtl => whole_seconds(self.schema.result_ttl),
            Place::LockValue => self.lock_value(),
            Place::ResultValue => self.result_value(),
            _ => Vec::new(),
        })
    }

    /// The lock value this request writes.
    pub fn lock_value(&self) -> Vec<u8> {
        self.value(&self.schema.write.lock_value)
    }

    /// The result value this request writes.
    pub fn result_value(&self) -> Vec<u8> {
        self.value(&self.schema.write.result_value)
    }

    fn redis_key(&self, role: Slot) -> Vec<u8> {
        let slot = self.schema.slot(role).or_else(|| self.schema.slot(Slot::Record));
        slot.map_or_else(Vec::new, |slot| self.schema.slots[slot].template.redis_key(self.key))
    }

    fn value(&self, template: &Template) -> Vec<u8> {
        let response = self.response;
        let json = |value: Value| {
            let text = value.to_string();
            if self.schema.write.escape_html { escape_html(&text).into_bytes() } else { text.into_bytes() }
        };
        template.fill(|place| match place {
            Place::Owner => self.owner.as_bytes().to_vec(),
            Place::Status => response.status.unwrap_or(200).to_string().into_bytes(),
            Place::HeaderLists => json(header_lists(response)),
            Place::Headers => json(headers(response)),
            Place::Body => response.body.clone(),
            Place::BodyBase64 => STANDARD.encode(&response.body).into_bytes(),
            Place::BodyText => json(Value::from(String::from_utf8_lossy(&response.body))),
            Place::BodyJson => match serde_json::from_slice::<Value>(&response.body) {
                Ok(_) => response.body.clone(),
                Err(_) => json(Value::from(String::from_utf8_lossy(&response.body))),
            },
            _ => Vec::new(),
        })
    }
}

/// As Go writes a map: sorted by name, every value of a header in one list.
fn header_lists(response: &Response) -> Value {
    let mut lists: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, text) in &response.headers {
        lists.entry(name).or_default().push(text);
    }
    lists.into_iter().map(|(name, texts)| (name, Value::from(texts))).collect()
}

/// As JavaScript writes an object: in order, an array where a header occurs more than once.
fn headers(response: &Response) -> Value {
    let mut object = Map::new();
    for (name, text) in &response.headers {
        match object.get_mut(name) {
            None => {
                object.insert(name.clone(), Value::from(text.as_str()));
            }
            Some(Value::Array(texts)) => texts.push(Value::from(text.as_str())),
            Some(first) => *first = Value::from(vec![first.take(), Value::from(text.as_str())]),
        }
    }
    Value::Object(object)
}

/// `EX` takes whole seconds: rounded up, so that no lock ends early and none gets 0.
fn whole_seconds(ttl: std::time::Duration) -> Vec<u8> {
    ttl.as_millis().div_ceil(1000).to_string().into_bytes()
}

/// Go's `encoding/json` writes these characters escaped wherever they stand.
fn escape_html(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '<' => text.push_str("\\u003c"),
            '>' => text.push_str("\\u003e"),
            '&' => text.push_str("\\u0026"),
            '\u{2028}' => text.push_str("\\u2028"),
            '\u{2029}' => text.push_str("\\u2029"),
            other => text.push(other),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_of_json_are_literal() {
        let template = Template::of_value(r#"{"status":{status},"b":{"c":1}}"#).unwrap();
        assert_eq!(template.fill(|_| b"201".to_vec()), br#"{"status":201,"b":{"c":1}}"#);
        assert_eq!(template.display(), r#"{"status":{status},"b":{"c":1}}"#);
    }

    #[test]
    fn an_unknown_placeholder_is_named() {
        assert!(Template::of_call("{ttl}").unwrap_err().contains("{ttl}"));
    }

    #[test]
    fn seconds_are_rounded_up() {
        assert_eq!(whole_seconds(std::time::Duration::from_millis(1)), b"1");
        assert_eq!(whole_seconds(std::time::Duration::from_millis(30_000)), b"30");
    }

    #[test]
    fn gos_json_escapes_angle_brackets() {
        assert_eq!(escape_html("<a&b>"), "\\u003ca\\u0026b\\u003e");
    }
}
