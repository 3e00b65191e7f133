//! Replies of a step's calls, as data: which of the schema's replies one is.

use crate::domain::schema::{Call, First, Pattern, Reply};

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
            Self::Array(items) => match items.get(1) {
                Some(Self::Text(text)) => Some(text),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The schema's entry for a reply; `None` when the schema does not know it.
pub fn recognise<'a>(call: &'a Call, reply: &StepReply) -> Option<&'a Reply> {
    call.replies.iter().find(|known| fits(&known.pattern, reply))
}

/// True when a replay with this pattern brings the stored response along.
pub(crate) fn carries_response(pattern: &Pattern) -> bool {
    matches!(pattern, Pattern::Text | Pattern::Array(_))
}

fn fits(pattern: &Pattern, reply: &StepReply) -> bool {
    match (pattern, reply) {
        (Pattern::Word(word), StepReply::Text(text)) => word.as_bytes() == text,
        (Pattern::Integer(number), StepReply::Integer(got)) => number == got,
        (Pattern::Nil, StepReply::Nil) | (Pattern::Text, StepReply::Text(_)) => true,
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
