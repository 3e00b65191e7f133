//! `lock-ends`: every lock ends by itself.

use super::Invariant;
use crate::domain::exploration::{Act, Moment};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "lock-ends",
    sentence: "every lock ends by itself",
    remedy: |_| {
        "set a lock and its TTL in one command, let begin give a TTL to a lock that has none, and let no retry prolong another's lock".to_owned()
    },
    asked_of: |_| true,
    shown_by: |moment| moment.after.stuck.map(Act::Next),
    broken,
};

fn broken(moment: &Moment) -> bool {
    moment.quiet && moment.after.stuck.is_some()
}

#[cfg(test)]
mod tests {
    use super::super::samples::moment;
    use super::*;
    use crate::domain::exploration::Facts;

    #[test]
    fn it_is_told_when_it_is_broken() {
        let stuck = Moment { quiet: true, after: Facts { stuck: Some(0), ..moment().after }, ..moment() };
        assert!((INVARIANT.broken)(&stuck));
        assert!(!(INVARIANT.broken)(&Moment { quiet: false, ..stuck }), "somebody may still end it");
    }
}
