//! The input of the invariants: one transition with the states before and after it, and the reply.

use crate::domain::record::{Content, Reading, decode};
use crate::domain::schema::{Meaning, Schema};

/// The author of a replayed response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResponseAuthor {
    /// The reply carries no response, or one that the results of several workers share.
    Untold,
    /// This worker, after its effect.
    Effect(u8),
    /// This worker, whose handler failed.
    Failure(u8),
    /// No worker gave this response.
    Nobody,
}

/// A reply, reduced to what workers and invariants depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct AttributedReply {
    /// `None` for a reply that the schema does not list.
    pub(crate) meaning: Option<Meaning>,
    pub(crate) author: ResponseAuthor,
}

impl AttributedReply {
    /// A reply that the schema does not list.
    pub(crate) const UNLISTED: Self = Self { meaning: None, author: ResponseAuthor::Untold };

    /// Finds the author of the response that a reply carries, among the workers' `responses`.
    pub(crate) fn new(
        schema: &Schema,
        meaning: Option<Meaning>,
        response: Option<&[u8]>,
        responses: &[(Vec<u8>, ResponseAuthor)],
    ) -> Self {
        let author = match response {
            Some(carried) if meaning == Some(Meaning::Replay) => {
                author(|known| is_same_response(schema, known, carried), responses)
            }
            _ => ResponseAuthor::Untold,
        };
        Self { meaning, author }
    }
}

/// True if both are the same response: the same bytes, or values that differ only in their times.
fn is_same_response(schema: &Schema, known: &[u8], carried: &[u8]) -> bool {
    if known == carried {
        return true;
    }
    // Decoding is slow, and only a value that holds a time can differ in it.
    if !schema.write.dates_results() {
        return false;
    }
    let read = |text: &[u8]| {
        decode::decode_value(schema, schema.result_key_index(), &Content::text(text.to_vec()))
    };
    match (read(known), read(carried)) {
        (Reading::Value(known), Reading::Value(carried)) => {
            known.response.is_some()
                && known.response == carried.response
                && known.error == carried.error
        }
        _ => false,
    }
}

fn author(
    is_same: impl Fn(&[u8]) -> bool,
    responses: &[(Vec<u8>, ResponseAuthor)],
) -> ResponseAuthor {
    let mut same = Vec::new();
    for (response, author) in responses {
        if is_same(response) {
            same.push(*author);
        }
    }
    match same[..] {
        [] => ResponseAuthor::Nobody,
        [only] => only,
        // Failed handlers give equal responses, and for the invariants it does not matter which of
        // them failed.
        [first, ..] if same.iter().all(|author| matches!(author, ResponseAuthor::Failure(_))) => {
            first
        }
        _ => ResponseAuthor::Untold,
    }
}

/// The consequences of a state of the Redis keys for requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StateFacts {
    /// True if a lock is held.
    pub(crate) lock: bool,
    /// The worker whose owner ID the lock holds; `None` if no lock is held, or if it names no
    /// worker.
    pub(crate) owner: Option<u8>,
    /// True if a result is stored, whether or not a lock hides it.
    pub(crate) result: bool,
    /// The service whose next request gets a replay; `None` if no request does.
    pub(crate) replays: Option<u8>,
    /// The service whose next request fails; `None` if no request fails.
    pub(crate) fails: Option<u8>,
    /// The service whose requests will always be rejected; `None` if there is none.
    pub(crate) stuck: Option<u8>,
    /// The service that serves a request with another payload as if its payload were the same;
    /// `None` if there is none.
    pub(crate) mistaken: Option<u8>,
}

impl Transition {
    /// The workers that request the same operation as this one, one bit each.
    pub(crate) fn same_payload(&self, worker: u8) -> u8 {
        if self.other_payload & 1 << worker == 0 { !self.other_payload } else { self.other_payload }
    }
}

/// One transition of the exploration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transition {
    /// The worker that sent a call; `None` if no call was sent.
    pub(crate) caller: Option<u8>,
    /// The reply of Redis, whether or not the worker received it.
    pub(crate) reply: Option<AttributedReply>,
    pub(crate) before: StateFacts,
    pub(crate) after: StateFacts,
    /// True if the call gave a Redis key another TTL than the schema states for its value.
    pub(crate) sets_other_ttl: bool,
    /// True if the bytes at the result's Redis key changed.
    pub(crate) result_rewritten: bool,
    /// True if a lock was held before, and its bytes have changed or no longer exist.
    pub(crate) lock_gone: bool,
    /// The worker that took the lock that was held before; `None` if no lock was held.
    pub(crate) holder: Option<u8>,
    /// The workers that had their effect before the transition, one bit each.
    pub(crate) effects_before: u8,
    /// The workers that had their effect after the transition.
    pub(crate) effects: u8,
    /// The workers that request another operation with the same key, one bit each.
    pub(crate) other_payload: u8,
    /// True if no worker is running.
    pub(crate) quiet: bool,
    /// True if a worker has stored the result of its effect.
    pub(crate) succeeded: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_has_one_author_unless_several_workers_gave_it() {
        let responses = [
            (b"a".to_vec(), ResponseAuthor::Effect(0)),
            (b"b".to_vec(), ResponseAuthor::Effect(1)),
            (b"b".to_vec(), ResponseAuthor::Failure(1)),
            (b"f".to_vec(), ResponseAuthor::Failure(0)),
            (b"f".to_vec(), ResponseAuthor::Failure(1)),
        ];
        let author = |carried: &[u8]| author(|response| response == carried, &responses);
        assert_eq!(author(b"a"), ResponseAuthor::Effect(0));
        assert_eq!(author(b"b"), ResponseAuthor::Untold);
        assert_eq!(author(b"f"), ResponseAuthor::Failure(0));
        assert_eq!(author(b"c"), ResponseAuthor::Nobody);
    }
}
