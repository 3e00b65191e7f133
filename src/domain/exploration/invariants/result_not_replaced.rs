//! `result-not-replaced`: nobody replaces a stored result.

use super::Invariant;
use crate::domain::exploration::{Culprit, Moment, Stage};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "result-not-replaced",
    sentence: "nobody replaces a stored result",
    remedy,
    asked_of: |_| true,
    shown_by: |_| None,
    broken,
};

fn remedy(culprit: &Culprit<'_>) -> String {
    match culprit.stage {
        Some(Stage::Begin) => "let begin leave a stored result alone".to_owned(),
        Some(Stage::StoreFailure) => {
            "store a failure only if the worker's own lock is still there: SET takes whatever is there".to_owned()
        }
        _ => format!("let {} store only if its own lock is still there: SET takes whatever is there", culprit.step()),
    }
}

fn broken(moment: &Moment) -> bool {
    let stands = moment.before.result.is_some() && moment.after.result.is_some();
    moment.caller.is_some() && stands && moment.rewritten
}

#[cfg(test)]
mod tests {
    use super::super::samples::moment;
    use super::*;
    use crate::domain::exploration::{Author, Facts};

    #[test]
    fn it_is_told_when_it_is_broken() {
        let stands = Facts { result: Some(Author::Untold), ..moment().before };
        let replaced = Moment { caller: Some(0), before: stands, after: stands, rewritten: true, ..moment() };
        assert!((INVARIANT.broken)(&replaced));
        assert!(!(INVARIANT.broken)(&Moment { rewritten: false, ..replaced }));
        assert!(!(INVARIANT.broken)(&Moment { before: moment().before, ..replaced }), "it is the first");
    }
}
