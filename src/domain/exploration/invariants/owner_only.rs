//! `owner-only`: only its owner removes a lock.

use super::Invariant;
use crate::domain::exploration::{Culprit, Moment, Stage};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "owner-only",
    sentence: "only its owner removes a lock",
    remedy,
    asked_of: |_| true,
    shown_by: |_| None,
    broken,
};

fn remedy(culprit: &Culprit<'_>) -> String {
    match culprit.stage {
        Some(Stage::Begin) => "let begin leave a lock alone that it finds there".to_owned(),
        _ if culprit.stores_owners() => {
            format!("let {} compare the lock's owner token in a script before it changes the lock", culprit.step())
        }
        _ => format!("store an owner token as the lock, and let {} compare it in a script", culprit.ending_steps()),
    }
}

fn broken(moment: &Moment) -> bool {
    let is_anothers = moment.holder.is_some_and(|holder| moment.caller.is_some_and(|caller| caller != holder));
    is_anothers && moment.lock_gone
}

#[cfg(test)]
mod tests {
    use super::super::samples::moment;
    use super::*;

    #[test]
    fn it_is_told_when_it_is_broken() {
        let taken = Moment { caller: Some(0), holder: Some(1), lock_gone: true, ..moment() };
        assert!((INVARIANT.broken)(&taken));
        assert!(!(INVARIANT.broken)(&Moment { holder: Some(0), ..taken }), "it is its own");
        assert!(!(INVARIANT.broken)(&Moment { caller: None, ..taken }), "its TTL ended");
        assert!(!(INVARIANT.broken)(&Moment { lock_gone: false, ..taken }));
    }
}
