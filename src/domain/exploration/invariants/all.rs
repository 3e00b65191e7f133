//! The invariants in the order in which harms are told.

use super::{
    Invariant, lock_ends, no_false_done, one_effect, owner_only, payloads_apart, replays_after_success, result_kept,
    result_not_replaced, true_replay,
};

pub(crate) const ALL: [Invariant; 9] = [
    one_effect::INVARIANT,
    true_replay::INVARIANT,
    no_false_done::INVARIANT,
    result_kept::INVARIANT,
    result_not_replaced::INVARIANT,
    lock_ends::INVARIANT,
    owner_only::INVARIANT,
    replays_after_success::INVARIANT,
    payloads_apart::INVARIANT,
];
