//! What a call is told, as far as the workers and the invariants go by it.

use crate::domain::record::{Content, Reading, decode};
use crate::domain::schema::{Call, Meaning, Schema};
use crate::domain::step::{Listener, StepReply};

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

/// What a call is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Heard {
    /// `None` for a reply that the schema does not know.
    pub(crate) means: Option<Meaning>,
    pub(crate) author: Author,
}

impl Heard {
    /// Reads a reply, where `responses` are those that the workers give.
    pub(crate) fn read(listener: Listener<'_>, call: &Call, told: &StepReply, responses: &[(Vec<u8>, Author)]) -> Self {
        let Some(known) = listener.recognise(call, told) else { return Self { means: None, author: Author::Untold } };
        let carried = listener.carried(known, told).filter(|_| known.means == Meaning::Replay);
        let author = match carried {
            Some(carried) => author(|response| says_the_same(listener.schema, response, carried), responses),
            None => Author::Untold,
        };
        Self { means: Some(known.means), author }
    }
}

/// True when both are one response: the same bytes, or values that differ in nothing but the times they hold.
fn says_the_same(schema: &Schema, response: &[u8], carried: &[u8]) -> bool {
    if response == carried || !schema.write.dates_results() {
        return response == carried;
    }
    let read = |text: &[u8]| decode::read(schema, schema.result_role(), &Content::text(text.to_vec()));
    let (one, other) = (read(response), read(carried));
    let said = |reading: &Reading| reading.decoded().map(|value| (value.response.clone(), value.error.clone()));
    said(&one).is_some_and(|(response, _)| response.is_some()) && said(&one) == said(&other)
}

fn author(is_same: impl Fn(&[u8]) -> bool, responses: &[(Vec<u8>, Author)]) -> Author {
    let mut same = responses.iter().filter(|(response, _)| is_same(response)).map(|(_, author)| *author);
    let Some(first) = same.next() else { return Author::Nobody };
    match (first, same.all(|author| matches!(author, Author::Failure(_)))) {
        // Nothing tells one failure from another.
        (Author::Failure(_), true) => first,
        _ if responses.iter().filter(|(response, _)| is_same(response)).count() == 1 => first,
        _ => Author::Untold,
    }
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
