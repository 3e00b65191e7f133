//! `owner-only`: only its owner removes a lock.

use super::Invariant;
use crate::domain::exploration::Moment;

pub(super) const INVARIANT: Invariant = Invariant {
    name: "owner-only",
    sentence: "only its owner removes a lock",
    remedy: "store an owner token as the lock, and let complete and release compare it in a script",
    asked_of: |_| true,
    shown_by: |_| None,
    broken,
};

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
