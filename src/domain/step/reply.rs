//! Replies to a step's calls, and how they are matched with the replies that the schema lists.

use crate::domain::record::{Content, Reading, decode};
use crate::domain::schema::{
    Action, Call, Encoding, First, KeyIs, Meaning, Reply, ReplyPattern, Schema, Template,
};

/// A reply of Redis to a call of a step, as far as schemas can describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepReply {
    Nil,
    Integer(i64),
    /// A string or a status.
    Text(Vec<u8>),
    Array(Vec<StepReply>),
    Error {
        /// The first word of the error, e.g. `LOCKED`.
        code: String,
        message: String,
    },
}

impl StepReply {
    /// The stored response in a replay: the text itself, or the second element of an array.
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

    /// The texts that may have a value format: the text itself, or the texts in an array.
    fn texts(&self) -> impl Iterator<Item = &[u8]> {
        let items = match self {
            Self::Array(items) => &items[..],
            _ => &[],
        };
        self.text().into_iter().chain(items.iter().filter_map(Self::text))
    }
}

/// Matches replies with the entries that a schema lists. It acts as the client, which knows its own
/// payload and time.
#[derive(Debug, Clone, Copy)]
pub struct ReplyMatcher<'a> {
    pub schema: &'a Schema,
    /// The hash of the request's payload; empty if there is none.
    pub fingerprint: &'a str,
    /// The owner ID of the request, for which `{owner}` stands in a word.
    pub owner: &'a [u8],
    /// The client's time, in milliseconds since the epoch.
    pub now_ms: u64,
}

/// A reply that the schema lists, as matched by [`ReplyMatcher`].
#[derive(Debug, Clone, Copy)]
pub struct ReplyMatch<'c> {
    /// The schema's entry that matched.
    pub entry: &'c Reply,
    /// The call that got the reply.
    call: &'c Call,
}

impl ReplyMatch<'_> {
    /// The meaning of the reply for its step.
    pub fn meaning(&self) -> Meaning {
        self.entry.means
    }

    /// True if the reply leaves the decision to the next call of the step.
    pub(crate) fn leaves_it_to_next_call(&self) -> bool {
        self.entry.means == Meaning::Next
    }
}

impl ReplyMatcher<'_> {
    /// Finds the schema's entry for a reply to `call`; `None` if the schema does not list the
    /// reply.
    pub fn match_reply<'c>(&self, call: &'c Call, reply: &StepReply) -> Option<ReplyMatch<'c>> {
        // Several entries can match, such as a word and any text. The first one in schema.toml
        // counts.
        let values = self.values_in(call, reply);
        for entry in &call.replies {
            if self.lacks_field_of(call, entry, &values) {
                // The prediction does not say how the service reads such a value, and a later entry
                // for any text is not for a value of this format.
                return None;
            }
            if self.is_entry_for(entry, reply, &values) {
                return Some(ReplyMatch { entry, call });
            }
        }
        None
    }

    /// The stored response in a matched reply; `None` if the reply contains no response as text.
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

    /// The hash whose fields a matched reply contains; `None` if the reply contains no hash.
    pub(super) fn hash_in(&self, matched: ReplyMatch<'_>, reply: &StepReply) -> Option<Content> {
        let format = matched.entry.value?;
        if self.schema.values[format].encoding() != Encoding::Hash {
            return None;
        }
        hash_of(&matched.call.action, reply)
    }

    /// True if the reply has the value format of the entry, and lacks a field.
    fn lacks_field_of(&self, call: &Call, entry: &Reply, values: &[Content]) -> bool {
        let Some(format) = entry.value else { return false };
        match values.iter().find(|value| self.has_format(entry, format, value)) {
            Some(value) => self.lacks_field(call, format, value),
            None => false,
        }
    }

    fn is_entry_for(&self, entry: &Reply, reply: &StepReply, values: &[Content]) -> bool {
        if !fits(&entry.pattern, reply, self.owner) {
            return false;
        }
        let Some(format) = entry.value else {
            // Without a value format, a script has already compared the payloads.
            return true;
        };
        let Some(value) = values.iter().find(|value| self.has_format(entry, format, value)) else {
            return false;
        };
        !entry.is_for_other_payloads() || self.is_other_payload(entry, format, value)
    }

    /// The values that may have a value format: the texts of a reply, or the hash whose fields the
    /// call requested.
    fn values_in(&self, call: &Call, reply: &StepReply) -> Vec<Content> {
        // Most calls list only words and numbers. Not copying the texts of their replies keeps
        // races fast.
        let Some(format) = call.replies.iter().find_map(|entry| entry.value) else {
            return Vec::new();
        };
        if self.schema.values[format].encoding() == Encoding::Hash
            && let Some(hash) = hash_of(&call.action, reply)
        {
            // An empty reply means that the hash does not exist.
            if matches!(&hash, Content::Hash(hash) if hash.count == 0) {
                return Vec::new();
            }
            return vec![hash];
        }
        reply.texts().map(|text| Content::text(text.to_vec())).collect()
    }

    /// True for a value of this format. If the value's contained expiry has passed, the entry must
    /// be for such values.
    fn has_format(&self, entry: &Reply, format: usize, value: &Content) -> bool {
        let reading = self.read(format, value);
        if reading.past_expiry().is_none() {
            return reading.is(&KeyIs::Value(format));
        }
        match reading.decoded() {
            Some(value) => entry.is_for_past_expiry() && value.format == format,
            None => false,
        }
    }

    /// True if the value lacks a field that every value of its format has, or its expiry is not a
    /// time. Fields that the call does not request are not lacking.
    fn lacks_field(&self, call: &Call, format: usize, value: &Content) -> bool {
        let reading = self.read(format, value);
        if reading.lacks_field().is_none() {
            return false;
        }
        let (Some(requested), Content::Hash(hash)) = (requested_fields(&call.action), value) else {
            return true;
        };
        if reading.decoded().is_some_and(|value| value.unclear_expiry.is_some()) {
            return true;
        }
        let Some(closed) = &self.schema.values[format].closed else { return false };
        closed.levels()[0].members.iter().any(|member| {
            member.is_required
                && requested.contains(&member.name)
                && !hash.fields.iter().any(|field| field.name == member.name.as_bytes())
        })
    }

    /// True if the client takes the request for one with another payload than the value's.
    fn is_other_payload(&self, entry: &Reply, format: usize, value: &Content) -> bool {
        let reading = self.read(format, value);
        let Some(value) = reading.decoded() else { return false };
        let stored = value.fingerprint.as_deref();
        if entry.is_for_no_fingerprint() && stored.is_none_or(str::is_empty) {
            return true;
        }
        // Without a stored hash, the client has nothing to compare.
        stored.is_some_and(|stored| stored != self.fingerprint)
    }

    fn read(&self, format: usize, value: &Content) -> Reading {
        decode::decode_at(
            self.schema,
            self.schema.values[format].key_index,
            value,
            Some(self.now_ms),
        )
    }
}

/// The fields that HMGET names; `None` for any other call.
fn requested_fields(action: &Action) -> Option<Vec<String>> {
    let Action::Command(words) = action else { return None };
    let words: Vec<_> = words.iter().map(Template::display).collect();
    if !words.first()?.eq_ignore_ascii_case("HMGET") {
        return None;
    }
    Some(words.into_iter().skip(2).collect())
}

/// The hash that HGETALL returns, or HMGET with the fields that it names; `None` for any other call
/// or reply.
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
            // HMGET returns the values in the order of the names, and nil for a field that does not
            // exist.
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

/// True if a word of the schema, in which `{owner}` stands for the owner ID of the request, is this
/// text.
fn is_word(word: &str, text: &[u8], owner: &[u8]) -> bool {
    match word.split_once("{owner}") {
        Some((before, after)) => [before.as_bytes(), owner, after.as_bytes()].concat() == text,
        None => word.as_bytes() == text,
    }
}

fn fits(pattern: &ReplyPattern, reply: &StepReply, owner: &[u8]) -> bool {
    match (pattern, reply) {
        (ReplyPattern::Word(word), StepReply::Text(text)) => is_word(word, text, owner),
        (ReplyPattern::Integer(number), StepReply::Integer(got)) => number == got,
        (ReplyPattern::Nil, StepReply::Nil) | (ReplyPattern::Text, StepReply::Text(_)) => true,
        // For a hash that does not exist, HMGET returns an array of nils, and HGETALL an empty
        // array.
        (ReplyPattern::Nil, StepReply::Array(items)) => {
            items.iter().all(|item| *item == StepReply::Nil)
        }
        (ReplyPattern::Value, StepReply::Text(_) | StepReply::Array(_)) => true,
        (ReplyPattern::Array(first), StepReply::Array(items)) => match (first, items.first()) {
            (First::Integer(number), Some(StepReply::Integer(got))) => number == got,
            (First::Word(word), Some(StepReply::Text(text))) => word.as_bytes() == text,
            _ => false,
        },
        // Redis 6.2 wraps an error that a script raises, so that the code may be anywhere in the
        // text.
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

    /// The meaning of a reply for a request whose payload has the hash `mine`.
    fn meaning(command: &str, items: &[Option<&str>]) -> Option<&'static str> {
        meaning_in(&TOML.replace("COMMAND", command), items)
    }

    fn meaning_in(toml: &str, items: &[Option<&str>]) -> Option<&'static str> {
        let schema = from_toml(toml);
        let item =
            |item: &Option<&str>| item.map_or(StepReply::Nil, |text| StepReply::Text(text.into()));
        let reply = StepReply::Array(items.iter().map(item).collect());
        let matcher = ReplyMatcher { schema: &schema, fingerprint: "mine", owner: b"", now_ms: 0 };
        let call = &schema.begin.as_ref().unwrap().calls[0];
        matcher.match_reply(call, &reply).map(|matched| matched.meaning().as_str())
    }

    #[test]
    fn hgetall_and_hmget_return_a_hash() {
        let absent = Some("acquired");
        assert_eq!((meaning("HGETALL", &[]), meaning("HMGET", &[None, None])), (absent, absent));
        let all = [Some("of"), Some("mine"), Some("state"), Some("done")];
        assert_eq!(meaning("HGETALL", &all), Some("replay"));
        assert_eq!(meaning("hmget", &[Some("done"), Some("mine")]), Some("replay"));
        assert_eq!(meaning("HMGET", &[Some("done"), Some("other")]), Some("mismatch"));
        assert_eq!(meaning("HMGET", &[Some("run"), None]), Some("conflict"));
        assert_eq!(meaning("HMGET", &[Some("odd"), None]), None);
        // A value without a required field is none that the service writes.
        let required =
            TOML.replace("where = { \"/state\" = \"run\" }", "required = [\"/state\", \"/by\"]");
        let of = |command: &str, items: &[Option<&str>]| {
            meaning_in(&required.replace("COMMAND", command), items)
        };
        assert_eq!(of("HGETALL", &[Some("a"), Some("b")]), None);
        assert_eq!(of("HGETALL", &[Some("state"), Some("run")]), None);
        let held = [Some("state"), Some("run"), Some("by"), Some("w")];
        assert_eq!(of("HGETALL", &held), Some("conflict"));
        // This call does not request `by`.
        assert_eq!(of("HMGET", &[Some("run"), None]), Some("conflict"));
        assert_eq!(of("HMGET", &[None, Some("x")]), None);
        // For any other command, idemctl does not know which fields the values belong to.
        assert_eq!(meaning("HVALS", &[Some("done"), Some("mine")]), None);
    }
}
