//! `true-replay`: a replay is the response of an effect, or of a failure before any effect.

use super::Invariant;
use crate::domain::exploration::{Author, Culprit, Heard, Moment};
use crate::domain::schema::Meaning;

pub(super) const INVARIANT: Invariant = Invariant {
    name: "true-replay",
    sentence: "a replay is the response of an effect, or of a failure before any effect",
    remedy,
    asked_of: |_| true,
    shown_by: |_| None,
    broken,
};

fn remedy(culprit: &Culprit<'_>) -> String {
    let own = "let only the worker whose lock is there store a response";
    if culprit.stores_failures() {
        return format!("{own}, and let no failure be the last word: another worker may have had the effect");
    }
    own.to_owned()
}

fn broken(moment: &Moment) -> bool {
    let Some(Heard { means: Some(Meaning::Replay), author }) = moment.heard else { return false };
    match author {
        Author::Nobody => true,
        Author::Effect(worker) => moment.effects_before & 1 << worker == 0,
        Author::Failure(_) => moment.effects_before != 0,
        Author::Untold => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::moment;
    use super::*;

    #[test]
    fn it_is_told_when_it_is_broken() {
        for (author, effects_before, broken) in [
            (Author::Nobody, 1, true),
            (Author::Effect(1), 0b01, true),
            (Author::Effect(1), 0b10, false),
            (Author::Failure(0), 0b10, true),
            (Author::Failure(0), 0, false),
            (Author::Untold, 0, false),
        ] {
            let heard = Some(Heard { means: Some(Meaning::Replay), author });
            assert_eq!((INVARIANT.broken)(&Moment { heard, effects_before, ..moment() }), broken, "{author:?}");
        }
    }
}
