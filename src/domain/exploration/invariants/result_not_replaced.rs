//! `result-not-replaced`: nobody replaces a stored result.

use super::Invariant;
use crate::domain::exploration::Moment;

pub(super) const INVARIANT: Invariant = Invariant {
    name: "result-not-replaced",
    sentence: "nobody replaces a stored result",
    remedy: "let complete store only where its own lock stands: SET takes whatever is there",
    asked_of: |_| true,
    shown_by: |_| None,
    broken,
};

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
