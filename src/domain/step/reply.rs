//! Replies to a step's calls, and which of the replies that the schema lists each is.

use crate::domain::record::{Content, Reading, decode};
use crate::domain::schema::{
    Action, Call, Encoding, First, KeyIs, Meaning, Reply, ReplyPattern, Schema, Template,
};

/// A reply of Redis to a step's call, as far as schemas can describe it.
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

    /// The texts in which a value format is searched for: the text itself, or those of an array.
    fn texts(&self) -> impl Iterator<Item = &[u8]> {
        let items = match self {
            Self::Array(items) => &items[..],
            _ => &[],
        };
        self.text().into_iter().chain(items.iter().filter_map(Self::text))
    }
}

/// Finds which of the replies that a schema lists a reply is, as the client would that knows its own payload and time.
#[derive(Debug, Clone, Copy)]
pub struct ReplyMatcher<'a> {
    pub schema: &'a Schema,
    /// The hash of the request's payload; empty where there is none.
    pub fingerprint: &'a str,
    /// The client's time, in milliseconds since the epoch.
    pub now_ms: u64,
}

/// A reply that the schema lists.
#[derive(Debug, Clone, Copy)]
pub struct ReplyMatch<'c> {
    /// The schema's entry for the reply.
    pub entry: &'c Reply,
}

impl ReplyMatch<'_> {
    /// What the reply means for the step.
    pub fn meaning(&self) -> Meaning {
        self.entry.means
    }

    /// True if the reply leaves the decision to the step's next call.
    pub(crate) fn leaves_it_to_next_call(&self) -> bool {
        self.entry.means == Meaning::Next
    }
}

impl ReplyMatcher<'_> {
    /// Finds the schema's entry for a reply to `call`; `None` if the schema does not list the reply.
    pub fn match_reply<'c>(&self, call: &'c Call, reply: &StepReply) -> Option<ReplyMatch<'c>> {
        // Several entries can fit, such as a word and any text: the first one in schema.toml counts.
        let values = self.values_in(call, reply);
        for entry in &call.replies {
            if self.is_entry_for(entry, reply, &values) {
                return Some(ReplyMatch { entry });
            }
        }
        None
    }

    /// The stored response that a matched reply carries; `None` if it carries none as a text.
    pub fn response_in<'r>(
        &self,
        matched: ReplyMatch<'_>,
        reply: &'r StepReply,
    ) -> Option<&'r [u8]> {
        let entry = matched.entry;
        match (entry.value, &entry.pattern) {
            (Some(format), _) => reply
                .texts()
                .find(|text| self.has_format(entry, format, &Content::text(text.to_vec()))),
            (None, ReplyPattern::Text | ReplyPattern::Array(_)) => reply.stored(),
            _ => None,
        }
    }

    fn is_entry_for(&self, entry: &Reply, reply: &StepReply, values: &[Content]) -> bool {
        if !fits(&entry.pattern, reply) {
            return false;
        }
        let Some(format) = entry.value else {
            // Without a value format, a script has compared the payloads.
            return true;
        };
        let Some(value) = values.iter().find(|value| self.has_format(entry, format, value)) else {
            return false;
        };
        !entry.is_for_other_payloads() || self.has_other_payload(format, value)
    }

    /// The values in which a value format is searched for: the texts of a reply, or the hash whose fields the call asks for.
    fn values_in(&self, call: &Call, reply: &StepReply) -> Vec<Content> {
        // Most calls list words and numbers only: the texts of their replies need not be copied. A race depends on it.
        let Some(format) = call.replies.iter().find_map(|entry| entry.value) else {
            return Vec::new();
        };
        if self.schema.values[format].encoding() == Encoding::Hash
            && let Some(hash) = hash_of(&call.action, reply)
        {
            return vec![hash];
        }
        reply.texts().map(|text| Content::text(text.to_vec())).collect()
    }

    /// True for a value of this format. A value whose own expiry has passed is one only if the entry is for such values.
    fn has_format(&self, entry: &Reply, format: usize, value: &Content) -> bool {
        let reading = self.read(format, value);
        match reading.lapsed() {
            None => reading.is(&KeyIs::Value(format)),
            Some(_) => {
                entry.is_for_lapsed() && reading.decoded().is_some_and(|value| value.case == format)
            }
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
    let Action::Command(words) = action else { return None };
    let StepReply::Array(items) = reply else { return None };
    let words: Vec<_> = words.iter().map(Template::display).collect();
    let mut hash = Vec::new();
    match words.first()?.to_ascii_uppercase().as_str() {
        "HGETALL" => {
            for item in items {
                hash.push(item.text()?.to_vec());
            }
        }
        "HMGET" => {
            // The reply has the values in the order of the names; nil is a field that does not exist.
            for (name, item) in words.iter().skip(2).zip(items) {
                if let Some(value) = item.text() {
                    hash.push(name.clone().into_bytes());
                    hash.push(value.to_vec());
                }
            }
        }
        _ => return None,
    }
    Some(Content::hash(hash))
}

fn fits(pattern: &ReplyPattern, reply: &StepReply) -> bool {
    match (pattern, reply) {
        (ReplyPattern::Word(word), StepReply::Text(text)) => word.as_bytes() == text,
        (ReplyPattern::Integer(number), StepReply::Integer(got)) => number == got,
        (ReplyPattern::Nil, StepReply::Nil) | (ReplyPattern::Text, StepReply::Text(_)) => true,
        (ReplyPattern::Nil, StepReply::Array(items)) => {
            items.iter().all(|item| *item == StepReply::Nil)
        }
        (ReplyPattern::Value, StepReply::Text(_) | StepReply::Array(_)) => true,
        (ReplyPattern::Array(first), StepReply::Array(items)) => match (first, items.first()) {
            (First::Integer(number), Some(StepReply::Integer(got))) => number == got,
            (First::Word(word), Some(StepReply::Text(text))) => word.as_bytes() == text,
            _ => false,
        },
        // Redis 6.2 wraps an error raised inside a script: the code is somewhere in its text.
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
        let item =
            |item: &Option<&str>| item.map_or(StepReply::Nil, |text| StepReply::Text(text.into()));
        let reply = StepReply::Array(items.iter().map(item).collect());
        let matcher = ReplyMatcher { schema: &schema, fingerprint: "mine", now_ms: 0 };
        let call = &schema.begin.as_ref().unwrap().calls[0];
        matcher.match_reply(call, &reply).map(|matched| matched.meaning().as_str())
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
