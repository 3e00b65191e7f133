//! Replies of a step's calls, as data: which of the schema's replies one is.

use crate::domain::record::{Content, Reading, decode};
use crate::domain::schema::{Call, First, KeyIs, Pattern, Reply, Schema};

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
        call.replies.iter().find(|known| self.knows(known, reply))
    }

    /// The stored response that comes with this reply, which is the schema's `known` one; `None` where none comes along.
    pub fn carried<'r>(&self, known: &Reply, reply: &'r StepReply) -> Option<&'r [u8]> {
        match (known.form, &known.pattern) {
            (Some(form), _) => self.of_form(known, form, reply),
            (None, Pattern::Text | Pattern::Array(_)) => reply.stored(),
            _ => None,
        }
    }

    fn knows(&self, known: &Reply, reply: &StepReply) -> bool {
        // Without a form a script has compared the payloads.
        let has_form = |form: usize| {
            let text = self.of_form(known, form, reply);
            text.is_some_and(|text| !known.is_for_other_payloads() || self.has_other_payload(form, text))
        };
        fits(&known.pattern, reply) && known.form.is_none_or(has_form)
    }

    /// The text of a reply that has this form, its own moment past where the schema's `known` reply says so.
    fn of_form<'r>(&self, known: &Reply, form: usize, reply: &'r StepReply) -> Option<&'r [u8]> {
        let is_meant = |reading: &Reading| match reading.lapsed() {
            None => reading.is(&KeyIs::Value(form)),
            Some(_) => known.is_for_lapsed() && reading.decoded().is_some_and(|value| value.case == form),
        };
        reply.texts().find(|text| is_meant(&self.read(form, text)))
    }

    fn has_other_payload(&self, form: usize, text: &[u8]) -> bool {
        let reading = self.read(form, text);
        let stored = reading.decoded().and_then(|value| value.fingerprint.as_deref());
        stored.is_some_and(|stored| stored != self.fingerprint)
    }

    fn read(&self, form: usize, text: &[u8]) -> Reading {
        decode::read_at(self.schema, self.schema.values[form].role, &Content::text(text.to_vec()), Some(self.now_ms))
    }
}

fn fits(pattern: &Pattern, reply: &StepReply) -> bool {
    match (pattern, reply) {
        (Pattern::Word(word), StepReply::Text(text)) => word.as_bytes() == text,
        (Pattern::Integer(number), StepReply::Integer(got)) => number == got,
        (Pattern::Nil, StepReply::Nil) | (Pattern::Text, StepReply::Text(_)) => true,
        (Pattern::Form, StepReply::Text(_) | StepReply::Array(_)) => true,
        (Pattern::Array(first), StepReply::Array(items)) => match (first, items.first()) {
            (First::Integer(number), Some(StepReply::Integer(got))) => number == got,
            (First::Word(word), Some(StepReply::Text(text))) => word.as_bytes() == text,
            _ => false,
        },
        // Redis 6.2 wraps an error raised inside a script: the code stands somewhere in its text.
        (Pattern::Error(wanted), StepReply::Error { code, message }) => {
            wanted == "*"
                || wanted == code
                || message.split_whitespace().any(|word| word.trim_start_matches('-') == wanted)
        }
        _ => false,
    }
}
