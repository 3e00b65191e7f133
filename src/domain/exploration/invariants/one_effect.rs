//! `one-effect`: the effect comes about at most once.

use super::Invariant;
use crate::domain::exploration::Moment;

pub(super) const INVARIANT: Invariant = Invariant {
    name: "one-effect",
    sentence: "the effect comes about at most once",
    remedy: "look the result up and take the lock in one script, with a TTL above the longest run; renew the lock while the work goes on, and pass the key on to whatever has the effect",
    asked_of: |_| true,
    shown_by: |_| None,
    broken,
};

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
