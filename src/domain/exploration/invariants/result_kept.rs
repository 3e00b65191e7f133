//! `result-kept`: nobody removes a stored result before its TTL.

use super::Invariant;
use crate::domain::exploration::{Culprit, Moment, Stage};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "result-kept",
    sentence: "nobody removes a stored result before its TTL",
    remedy,
    asked_of: |_| true,
    shown_by: |_| None,
    broken,
};

fn remedy(culprit: &Culprit<'_>) -> String {
    match culprit.stage {
        Some(Stage::Release) => {
            "let release check in a script that the lock is still its owner's: a plain DEL takes a result as well"
                .to_owned()
        }
        Some(Stage::Begin) => "let begin leave a stored result alone".to_owned(),
        _ => format!("let {} check in a script that no result is stored before it writes", culprit.step()),
    }
}

fn broken(moment: &Moment) -> bool {
    moment.caller.is_some() && moment.before.result.is_some() && moment.after.result.is_none()
}

#[cfg(test)]
mod tests {
    use super::super::samples::moment;
    use super::*;
    use crate::domain::exploration::{Author, Facts};

    #[test]
    fn it_is_told_when_it_is_broken() {
        let stands = Facts { result: Some(Author::Untold), ..moment().before };
        let gone = Moment { caller: Some(0), before: stands, ..moment() };
        assert!((INVARIANT.broken)(&gone));
        assert!(!(INVARIANT.broken)(&Moment { caller: None, ..gone }), "its TTL ended");
        assert!(!(INVARIANT.broken)(&Moment { after: stands, ..gone }));
    }
}
