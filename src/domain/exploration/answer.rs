//! What a call is told, as far as the workers and the invariants go by it.

use crate::domain::schema::{Call, Meaning};
use crate::domain::step::{StepReply, reply};

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
    pub(crate) fn read(call: &Call, told: &StepReply, responses: &[(Vec<u8>, Author)]) -> Self {
        let Some(known) = reply::recognise(call, told) else { return Self { means: None, author: Author::Untold } };
        let carries = known.means == Meaning::Replay && reply::carries_response(&known.pattern);
        let author = match told.stored().filter(|_| carries) {
            Some(carried) => author(carried, responses),
            None => Author::Untold,
        };
        Self { means: Some(known.means), author }
    }
}

fn author(carried: &[u8], responses: &[(Vec<u8>, Author)]) -> Author {
    let mut same = responses.iter().filter(|(response, _)| response == carried).map(|(_, author)| *author);
    let Some(first) = same.next() else { return Author::Nobody };
    match (first, same.all(|author| matches!(author, Author::Failure(_)))) {
        // Nothing tells one failure from another.
        (Author::Failure(_), true) => first,
        _ if responses.iter().filter(|(response, _)| response == carried).count() == 1 => first,
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
        assert_eq!(author(b"a", &responses), Author::Effect(0));
        assert_eq!(author(b"b", &responses), Author::Untold);
        assert_eq!(author(b"f", &responses), Author::Failure(0));
        assert_eq!(author(b"c", &responses), Author::Nobody);
    }
}
