//! `replays-after-success`: once a result is stored, no later request fails or is turned away for ever.

use super::Invariant;
use crate::domain::exploration::{Act, Moment};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "replays-after-success",
    sentence: "once a result is stored, no later request fails or is turned away for ever",
    remedy: |_| {
        "let begin understand whatever the steps of every release in use can leave at the Redis keys".to_owned()
    },
    asked_of: |_| true,
    shown_by: |moment| moment.after.fails.or(moment.after.stuck).map(Act::Next),
    broken,
};

fn broken(moment: &Moment) -> bool {
    moment.quiet && moment.succeeded && moment.after.fails.or(moment.after.stuck).is_some()
}

#[cfg(test)]
mod tests {
    use super::super::samples::moment;
    use super::*;
    use crate::domain::exploration::Facts;

    #[test]
    fn it_is_told_when_it_is_broken() {
        let fails = Facts { fails: Some(0), ..moment().after };
        let failing = Moment { quiet: true, succeeded: true, after: fails, ..moment() };
        assert!((INVARIANT.broken)(&failing));
        assert!(!(INVARIANT.broken)(&Moment { succeeded: false, ..failing }));
        assert!(!(INVARIANT.broken)(&Moment { after: moment().after, ..failing }));
    }
}
