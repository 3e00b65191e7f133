//! Replies of a step's calls, as data: which of the schema's replies one is.

use crate::domain::record::{Content, Reading, decode};
use crate::domain::schema::{Action, Call, Encoding, First, KeyIs, Reply, ReplyPattern, Schema, Template};

/// A reply of Redis to a step's call, as far as schemas can speak of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepReply {
    Nil,
    Integer(i64),
    /// A string, a status included.
    Text(Vec<u8>),
    Array(Vec<StepReply>),
    Error {
        /// Its first word, e.g. `LOCKED`.
        code: String,
        message: String,
    },
}

impl StepReply {
    /// The stored response that comes with a replay: the text itself, or an array's second element.
    pub fn stored(&self) -> Option<&[u8]> {
        match self {
            Self::Text(text) => Some(text),
            Self::Array(items) => items.get(1).and_then(Self::text),
            _ => None,
        }
    }

    fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The texts in which a form is looked for: the text itself, or those of an array.
    fn texts(&self) -> impl Iterator<Item = &[u8]> {
        let items = match self {
            Self::Array(items) => &items[..],
            _ => &[],
        };
        self.text().into_iter().chain(items.iter().filter_map(Self::text))
    }
}

/// Who hears a reply and decides by what it holds: the client, which knows its own payload.
#[derive(Debug, Clone, Copy)]
pub struct Listener<'a> {
    pub schema: &'a Schema,
    /// The hash of the request's payload; empty where there is none.
    pub fingerprint: &'a str,
    /// The client's time, in milliseconds since the epoch.
    pub now_ms: u64,
}

impl<'a> Listener<'a> {
    /// The schema's entry for a reply; `None` when the schema does not know the reply.
    pub fn recognise<'c>(&self, call: &'c Call, reply: &StepReply) -> Option<&'c Reply> {
        let values = self.values(call, reply);
        call.replies.iter().find(|known| self.knows(known, reply, &values))
    }

    /// The stored response that comes with this reply, which is the schema's `known` one; `None` where none comes along as a text.
    pub fn carried<'r>(&self, known: &Reply, reply: &'r StepReply) -> Option<&'r [u8]> {
        match (known.value, &known.pattern) {
            (Some(format), _) => {
                reply.texts().find(|text| self.has_format(known, format, &Content::text(text.to_vec())))
            }
            (None, ReplyPattern::Text | ReplyPattern::Array(_)) => reply.stored(),
            _ => None,
        }
    }

    fn knows(&self, known: &Reply, reply: &StepReply, values: &[Content]) -> bool {
        if !fits(&known.pattern, reply) {
            return false;
        }
        // Without a value format, a script has compared the payloads.
        let Some(format) = known.value else { return true };
        let value = values.iter().find(|value| self.has_format(known, format, value));
        value.is_some_and(|value| !known.is_for_other_payloads() || self.has_other_payload(format, value))
    }

    /// The values in which a value format is searched for: the texts of a reply, or the hash whose fields the call asks for.
    fn values(&self, call: &Call, reply: &StepReply) -> Vec<Content> {
        let Some(format) = call.replies.iter().find_map(|known| known.value) else { return Vec::new() };
        let is_of_hashes = self.schema.values[format].encoding() == Encoding::Hash;
        match hash_of(&call.action, reply).filter(|_| is_of_hashes) {
            Some(hash) => vec![hash],
            None => reply.texts().map(|text| Content::text(text.to_vec())).collect(),
        }
    }

    /// True for a value of this format; if it has expired by its own time, only for a reply that is for such values.
    fn has_format(&self, known: &Reply, format: usize, value: &Content) -> bool {
        let reading = self.read(format, value);
        match reading.lapsed() {
            None => reading.is(&KeyIs::Value(format)),
            Some(_) => known.is_for_lapsed() && reading.decoded().is_some_and(|value| value.case == format),
        }
    }

    fn has_other_payload(&self, format: usize, value: &Content) -> bool {
        let reading = self.read(format, value);
        let stored = reading.decoded().and_then(|value| value.fingerprint.as_deref());
        stored.is_some_and(|stored| stored != self.fingerprint)
    }

    fn read(&self, format: usize, value: &Content) -> Reading {
        decode::read_at(self.schema, self.schema.values[format].role, value, Some(self.now_ms))
    }
}

/// The hash that HGETALL gives, or HMGET of the fields it names; `None` for any other call or reply.
fn hash_of(action: &Action, reply: &StepReply) -> Option<Content> {
    let (Action::Command(words), StepReply::Array(items)) = (action, reply) else { return None };
    let words: Vec<_> = words.iter().map(Template::display).collect();
    let (command, names) = (words.first()?.to_ascii_uppercase(), words.get(2..).unwrap_or_default());
    match command.as_str() {
        "HGETALL" => items.iter().map(|item| item.text().map(<[u8]>::to_vec)).collect::<Option<Vec<_>>>(),
        "HMGET" => {
            let there = names.iter().zip(items).filter_map(|(name, item)| Some((name, item.text()?)));
            Some(there.flat_map(|(name, value)| [name.clone().into_bytes(), value.to_vec()]).collect())
        }
        _ => None,
    }
    .map(Content::hash)
}

fn fits(pattern: &ReplyPattern, reply: &StepReply) -> bool {
    match (pattern, reply) {
        (ReplyPattern::Word(word), StepReply::Text(text)) => word.as_bytes() == text,
        (ReplyPattern::Integer(number), StepReply::Integer(got)) => number == got,
        (ReplyPattern::Nil, StepReply::Nil) | (ReplyPattern::Text, StepReply::Text(_)) => true,
        (ReplyPattern::Nil, StepReply::Array(items)) => items.iter().all(|item| *item == StepReply::Nil),
        (ReplyPattern::Value, StepReply::Text(_) | StepReply::Array(_)) => true,
        (ReplyPattern::Array(first), StepReply::Array(items)) => match (first, items.first()) {
            (First::Integer(number), Some(StepReply::Integer(got))) => number == got,
            (First::Word(word), Some(StepReply::Text(text))) => word.as_bytes() == text,
            _ => false,
        },
        // Redis 6.2 wraps an error raised inside a script: the code stands somewhere in its text.
        (ReplyPattern::Error(wanted), StepReply::Error { code, message }) => {
            wanted == "*"
                || wanted == code
                || message.split_whitespace().any(|word| word.trim_start_matches('-') == wanted)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::samples::from_toml;

    const TOML: &str = r#"
format = 2
name = "orders"
keys = { record = "orders:{key}" }
ttl = { lock = "5m", result = "24h" }

[[value]]
name = "running"
type = "hash"
where = { "/state" = "run" }
state = "in-progress"

[[value]]
name = "done"
type = "hash"
where = { "/state" = "done" }
state = "completed"
fields = { body = "/body", fingerprint = "/of" }

[[begin.call]]
command = ["COMMAND", "{record}", "state", "of"]
replies = [
  { nil = true, means = "acquired", when = { record = "absent" } },
  { value = "running", means = "conflict" },
  { value = "done", means = "mismatch", when = { record = "done", fingerprint = "other" } },
  { value = "done", means = "replay" },
]
"#;

    /// What a reply means to a request whose payload has the hash `mine`.
    fn meaning(command: &str, items: &[Option<&str>]) -> Option<&'static str> {
        let schema = from_toml(&TOML.replace("COMMAND", command));
        let item = |item: &Option<&str>| item.map_or(StepReply::Nil, |text| StepReply::Text(text.into()));
        let reply = StepReply::Array(items.iter().map(item).collect());
        let listener = Listener { schema: &schema, fingerprint: "mine", now_ms: 0 };
        let call = &schema.begin.as_ref().unwrap().calls[0];
        listener.recognise(call, &reply).map(|known| known.means.as_str())
    }

    #[test]
    fn a_hash_is_what_hgetall_gives_or_hmget_of_the_fields_that_it_names() {
        let absent = Some("acquired");
        assert_eq!((meaning("HGETALL", &[]), meaning("HMGET", &[None, None])), (absent, absent));
        let all = [Some("of"), Some("mine"), Some("state"), Some("done")];
        assert_eq!(meaning("HGETALL", &all), Some("replay"));
        assert_eq!(meaning("hmget", &[Some("done"), Some("mine")]), Some("replay"));
        assert_eq!(meaning("HMGET", &[Some("done"), Some("other")]), Some("mismatch"));
        assert_eq!(meaning("HMGET", &[Some("run"), None]), Some("conflict"));
        assert_eq!(meaning("HMGET", &[Some("odd"), None]), None);
        // Of another command nobody knows which fields come.
        assert_eq!(meaning("HVALS", &[Some("done"), Some("mine")]), None);
    }
}
