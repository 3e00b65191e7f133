//! `result-kept`: nobody removes a stored result before its TTL.

use super::Invariant;
use crate::domain::exploration::Moment;

pub(super) const INVARIANT: Invariant = Invariant {
    name: "result-kept",
    sentence: "nobody removes a stored result before its TTL",
    remedy: "let release check in a script that the lock is still its owner's: a plain DEL takes a result as well",
    asked_of: |_| true,
    shown_by: |_| None,
    broken,
};

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
