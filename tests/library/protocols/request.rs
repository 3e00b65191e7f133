//! What a request sends and how it understands a reply: placeholders and reply patterns.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use toml::Table;

use super::format::{Content, field};
use super::protocol::{Call, KEY, Means, Protocol, text_of};

/// The moment at which every exploration begins, in milliseconds.
pub const BEGINNING: i64 = 1_700_000_000_000;

/// A reply of Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    Nil,
    Number(i64),
    Text(String),
    List(Vec<Told>),
    Error(String),
}

/// A request, when it makes a call.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub protocol: &'a Protocol,
    /// From 0; those behind the workers are later requests.
    pub number: u8,
    /// Its handler failed.
    pub fails: bool,
    /// Its payload is another than that of the workers.
    pub is_other: bool,
    pub now_ms: i64,
}

impl Request<'_> {
    pub fn owner(number: u8) -> String {
        format!("owner-{number}")
    }

    fn fingerprint(&self) -> &'static str {
        if self.is_other { "another-payload" } else { "the-payload" }
    }

    /// The body of the response: it names who made it.
    fn body(&self) -> String {
        let what = if self.fails { "failed-by" } else { "paid-by" };
        format!("{what}-{}.", self.number)
    }

    /// The words of a call.
    pub fn words(&self, call: &Call) -> Vec<String> {
        let mut words = call.words[..call.fixed].to_vec();
        for word in &call.words[call.fixed..] {
            match self.fields_of_hash(word) {
                Some(fields) => words.extend(fields),
                None => words.push(self.fill(word)),
            }
        }
        words
    }

    /// The names and values of a hash, where the word is such a value.
    fn fields_of_hash(&self, word: &str) -> Option<Vec<String>> {
        let is_completed = match word {
            "{lock_value}" => false,
            "{result_value}" => true,
            _ => return None,
        };
        let format =
            self.protocol.formats.iter().find(|format| format.is_completed == is_completed);
        if !format.is_some_and(|format| format.is_hash) {
            return None;
        }
        let Ok(Json::Object(object)) = serde_json::from_str(&self.fill(word)) else {
            panic!("{word} of a hash is not an object");
        };
        let mut words = Vec::new();
        for (name, value) in object {
            words.extend([name, value.as_str().expect("a field is text").to_owned()]);
        }
        Some(words)
    }

    /// A template with its placeholders filled in.
    pub fn fill(&self, template: &str) -> String {
        let mut filled = String::new();
        let mut rest = template;
        while let Some(at) = rest.find('{') {
            filled.push_str(&rest[..at]);
            rest = &rest[at..];
            let length = rest[1..].find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(0);
            if length > 0 && rest[1 + length..].starts_with('}') {
                filled.push_str(&self.placeholder(&rest[1..=length]));
                rest = &rest[length + 2..];
            } else {
                filled.push('{');
                rest = &rest[1..];
            }
        }
        filled + rest
    }

    fn placeholder(&self, name: &str) -> String {
        let protocol = self.protocol;
        let written = |field: &str| self.fill(text_of(&protocol.write[field]));
        let result_ttl = protocol.result_ttl;
        match name {
            "key" => KEY.to_owned(),
            "record" | "lock" => protocol.redis_keys[protocol.lock].clone(),
            "result" => protocol.redis_keys[protocol.result].clone(),
            "owner" => Self::owner(self.number),
            "fingerprint" => self.fingerprint().to_owned(),
            "lock_ttl" => (protocol.lock_ttl / 1_000).to_string(),
            "lock_ttl_ms" => protocol.lock_ttl.to_string(),
            "result_ttl" => (result_ttl / 1_000).to_string(),
            "outcome" => if self.fails { "failed" } else { "completed" }.to_owned(),
            "status" => if self.fails { "500" } else { "201" }.to_owned(),
            "headers" => "{}".to_owned(),
            "body" => self.body(),
            "body_text" | "body_json" => Json::from(self.body()).to_string(),
            "error_text" if self.fails => {
                Json::from(format!("broken-by-{}.", self.number)).to_string()
            }
            "error_text" => "null".to_owned(),
            "now" | "now_ms" => self.now_ms.to_string(),
            "now_s" => (self.now_ms / 1_000).to_string(),
            "lock_expires_ms" => (self.now_ms + protocol.lock_ttl).to_string(),
            "lock_expires_s" => ((self.now_ms + protocol.lock_ttl) / 1_000).to_string(),
            "result_expires_ms" => (self.now_ms + result_ttl).to_string(),
            "result_expires_s" => ((self.now_ms + result_ttl) / 1_000).to_string(),
            "lock_value" => written("lock_value"),
            "result_value" if self.fails && protocol.write.contains_key("failed_value") => {
                written("failed_value")
            }
            "result_value" => written("result_value"),
            "response" => written("response"),
            other => panic!("{other} is not a placeholder that this test knows"),
        }
    }

    /// What a reply means, and the text that a replay brings.
    pub fn understand(&self, call: &Call, told: &Told) -> (Option<Means>, Option<String>) {
        for reply in &call.replies {
            let needs_other = reply.when.iter().any(|when| when.contains_key("fingerprint"));
            if self.matches(call, &reply.pattern, told, needs_other) {
                let brings = reply.means == Means::Replay;
                let text = brings.then(|| brought(&reply.pattern, told)).flatten();
                return (Some(reply.means), text);
            }
        }
        (None, None)
    }

    fn matches(&self, call: &Call, pattern: &Table, told: &Told, needs_other: bool) -> bool {
        pattern.iter().all(|(kind, wanted)| match kind.as_str() {
            "word" => matches!(told, Told::Text(text) if *text == self.fill(text_of(wanted))),
            "integer" => {
                matches!(told, Told::Number(number) if Some(*number) == wanted.as_integer())
            }
            "nil" => is_nil(told),
            "text" => matches!(told, Told::Text(_)),
            "error" => is_error(told, text_of(wanted)),
            "array" => match told {
                Told::List(items) => match items.first() {
                    Some(Told::Text(text)) => wanted.as_str() == Some(text),
                    Some(Told::Number(number)) => wanted.as_integer() == Some(*number),
                    _ => false,
                },
                _ => false,
            },
            "value" => self.is_value(call, text_of(wanted), told, needs_other),
            other => panic!("{other} is not a pattern"),
        })
    }

    /// The reply is a value of this format; of one with another fingerprint, where that is asked.
    fn is_value(&self, call: &Call, name: &str, told: &Told, needs_other: bool) -> bool {
        let format = self.protocol.formats.iter().find(|format| format.name == name).unwrap();
        let Some(content) = content_of(call, told) else { return false };
        if !format.fits(&content, self.now_ms) {
            return false;
        }
        let stored = format.fingerprint.as_ref().and_then(|pointer| field(&content, pointer));
        !needs_other || stored.is_some_and(|stored| stored != self.fingerprint())
    }
}

fn is_nil(told: &Told) -> bool {
    match told {
        Told::Nil => true,
        Told::List(items) => items.iter().all(is_nil),
        _ => false,
    }
}

/// An error with this code, which Redis 6.2 may wrap.
fn is_error(told: &Told, code: &str) -> bool {
    match told {
        Told::Error(text) => code == "*" || text.split(' ').any(|word| word == code),
        _ => false,
    }
}

/// The value in a reply: a text, or the fields that HGETALL and HMGET give.
fn content_of(call: &Call, told: &Told) -> Option<Content> {
    let items = match told {
        Told::Text(text) => return Some(Content::Text(text.clone())),
        Told::List(items) => items,
        _ => return None,
    };
    let mut names: Vec<String> = Vec::new();
    let mut values = Vec::new();
    if call.words[0] == "HMGET" {
        names.extend_from_slice(&call.words[2..]);
        values.extend(items);
    } else {
        for pair in items.chunks(2) {
            let Told::Text(name) = &pair[0] else { return None };
            names.push(name.clone());
            values.push(&pair[1]);
        }
    }
    let mut fields = BTreeMap::new();
    for (name, value) in names.into_iter().zip(values) {
        if let Told::Text(value) = value {
            fields.insert(name, value.clone());
        }
    }
    Some(Content::Hash(fields))
}

/// The text that a replay brings: none where a word or a number says that the work is done.
fn brought(pattern: &Table, told: &Told) -> Option<String> {
    if pattern.contains_key("word") || pattern.contains_key("integer") {
        return None;
    }
    match told {
        Told::List(items) if pattern.contains_key("array") => items.get(1).map(flat),
        _ => Some(flat(told)),
    }
}

fn flat(told: &Told) -> String {
    match told {
        Told::Nil => "nil".to_owned(),
        Told::Number(number) => number.to_string(),
        Told::Text(text) | Told::Error(text) => text.clone(),
        Told::List(items) => items.iter().map(flat).collect::<Vec<_>>().join("\n"),
    }
}
