//! A moment at which nothing happens.

use crate::domain::exploration::{Facts, Moment};

pub(super) fn moment() -> Moment {
    let facts = Facts { lock: false, result: None, fails: None, stuck: None, mistaken: None };
    Moment {
        caller: None,
        heard: None,
        before: facts,
        after: facts,
        rewritten: false,
        lock_gone: false,
        holder: None,
        effects_before: 0,
        effects: 0,
        quiet: false,
        succeeded: false,
    }
}
