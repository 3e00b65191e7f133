//! `no-false-done`: nobody is told that an operation is done that was not done.

use super::Invariant;
use crate::domain::exploration::{Author, Heard, Moment};
use crate::domain::schema::Meaning;

pub(super) const INVARIANT: Invariant = Invariant {
    name: "no-false-done",
    sentence: "nobody is told that an operation is done that was not done",
    remedy: |_| "let begin replay nothing but a stored result".to_owned(),
    asked_of: |_| true,
    shown_by: |_| None,
    broken,
};

fn broken(moment: &Moment) -> bool {
    let Some(Heard { means: Some(Meaning::Replay), author }) = moment.heard else { return false };
    // The response of a failure says that the operation was not done.
    moment.effects_before == 0 && !matches!(author, Author::Failure(_))
}

#[cfg(test)]
mod tests {
    use super::super::samples::moment;
    use super::*;

    #[test]
    fn it_is_told_when_it_is_broken() {
        for (author, effects_before, broken) in
            [(Author::Untold, 0, true), (Author::Untold, 1, false), (Author::Failure(0), 0, false)]
        {
            let heard = Some(Heard { means: Some(Meaning::Replay), author });
            assert_eq!((INVARIANT.broken)(&Moment { heard, effects_before, ..moment() }), broken, "{author:?}");
        }
    }
}
