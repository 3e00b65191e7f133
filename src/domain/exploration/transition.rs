//! What the invariants judge: one transition, the state before it, the reply, and the state after it.

use crate::domain::record::{Content, Reading, decode};
use crate::domain::schema::{Meaning, Schema};

/// Whose response a replay brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Author {
    /// The reply brings no response, or one that several workers' results have in common.
    Untold,
    /// That of this worker's effect.
    Effect(u8),
    /// That of this worker's failed handler.
    Failure(u8),
    /// No worker's.
    Nobody,
}

/// A reply, as far as the workers and the invariants depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct AttributedReply {
    /// `None` for a reply that the schema does not list.
    pub(crate) meaning: Option<Meaning>,
    pub(crate) author: Author,
}

impl AttributedReply {
    /// A reply that the schema does not list.
    pub(crate) const UNRECOGNISED: Self = Self { meaning: None, author: Author::Untold };

    /// Finds the author of the response that a reply carries, among the `responses` that the workers give.
    pub(crate) fn new(
        schema: &Schema,
        meaning: Option<Meaning>,
        response: Option<&[u8]>,
        responses: &[(Vec<u8>, Author)],
    ) -> Self {
        let author = match response {
            Some(carried) if meaning == Some(Meaning::Replay) => {
                author(|known| is_same_response(schema, known, carried), responses)
            }
            _ => Author::Untold,
        };
        Self { meaning, author }
    }
}

/// True if both are one response: the same bytes, or values that differ in nothing but the times they hold.
fn is_same_response(schema: &Schema, known: &[u8], carried: &[u8]) -> bool {
    if known == carried {
        return true;
    }
    if !schema.write.dates_results() {
        return false;
    }
    let known = decode::read(schema, schema.result_role(), &Content::text(known.to_vec()));
    let carried = decode::read(schema, schema.result_role(), &Content::text(carried.to_vec()));
    match (known, carried) {
        (Reading::Value(known), Reading::Value(carried)) => {
            known.response.is_some()
                && known.response == carried.response
                && known.error == carried.error
        }
        _ => false,
    }
}

fn author(is_same: impl Fn(&[u8]) -> bool, responses: &[(Vec<u8>, Author)]) -> Author {
    let mut same = Vec::new();
    for (response, author) in responses {
        if is_same(response) {
            same.push(*author);
        }
    }
    match same[..] {
        [] => Author::Nobody,
        [only] => only,
        // One failure cannot be told from another, which does not matter.
        [first, ..] if same.iter().all(|author| matches!(author, Author::Failure(_))) => first,
        _ => Author::Untold,
    }
}

/// What a state of the Redis keys means for requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StateFacts {
    /// A lock is held.
    pub(crate) lock: bool,
    /// A request gets a replay, and whose response.
    pub(crate) result: Option<Author>,
    /// A request of this service fails.
    pub(crate) fails: Option<u8>,
    /// A request of this service is rejected, and each later one will be.
    pub(crate) stuck: Option<u8>,
    /// A request of this service with another payload is served as if the payload were the same.
    pub(crate) mistaken: Option<u8>,
}

/// One transition of the exploration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transition {
    /// Who sent a call; `None` if nobody did.
    pub(crate) caller: Option<u8>,
    /// The reply of Redis, whether or not the worker received it.
    pub(crate) reply: Option<AttributedReply>,
    pub(crate) before: StateFacts,
    pub(crate) after: StateFacts,
    /// The bytes at the result's Redis key are not those of before.
    pub(crate) result_rewritten: bool,
    /// A lock was held before, and its bytes have changed or are gone.
    pub(crate) lock_gone: bool,
    /// Who took the lock that was held before; `None` if none was.
    pub(crate) holder: Option<u8>,
    /// The workers that had their effect before, and now: a bit each.
    pub(crate) effects_before: u8,
    pub(crate) effects: u8,
    /// No worker is at work.
    pub(crate) quiet: bool,
    /// A worker has stored the result of its effect.
    pub(crate) succeeded: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_its_authors_unless_several_have_it() {
        let responses = [
            (b"a".to_vec(), Author::Effect(0)),
            (b"b".to_vec(), Author::Effect(1)),
            (b"b".to_vec(), Author::Failure(1)),
            (b"f".to_vec(), Author::Failure(0)),
            (b"f".to_vec(), Author::Failure(1)),
        ];
        let author = |carried: &[u8]| author(|response| response == carried, &responses);
        assert_eq!(author(b"a"), Author::Effect(0));
        assert_eq!(author(b"b"), Author::Untold);
        assert_eq!(author(b"f"), Author::Failure(0));
        assert_eq!(author(b"c"), Author::Nobody);
    }
}
