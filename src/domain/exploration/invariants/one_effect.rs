//! `one-effect`: the effect comes about at most once.

use super::Invariant;
use crate::domain::exploration::{Culprit, Moment};

pub(super) const INVARIANT: Invariant = Invariant {
    name: "one-effect",
    sentence: "the effect comes about at most once",
    remedy,
    asked_of: |_| true,
    shown_by: |_| None,
    broken,
};

fn remedy(culprit: &Culprit<'_>) -> String {
    let lasting = "give the lock a TTL above the longest run, renew it while the work goes on, and pass the key on to \
                   whatever has the effect";
    if culprit.begins_in_one_call() {
        return lasting.to_owned();
    }
    format!("look the record up and take the lock in one script; {lasting}")
}

fn broken(moment: &Moment) -> bool {
    moment.effects.count_ones() > 1 && moment.effects_before.count_ones() < 2
}

#[cfg(test)]
mod tests {
    use super::super::samples::moment;
    use super::*;

    #[test]
    fn it_is_told_when_it_is_broken() {
        for (effects_before, effects, broken) in [(0b01, 0b11, true), (0b00, 0b01, false), (0b11, 0b111, false)] {
            assert_eq!((INVARIANT.broken)(&Moment { effects_before, effects, ..moment() }), broken);
        }
    }
}
