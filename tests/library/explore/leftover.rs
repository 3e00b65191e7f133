//! Behind which locks beside a result a live worker can be: what the steps of a schema say is what can happen.

use super::alike::{explored, rules};
use super::performer::Performer;
use crate::support::BUILT_IN;
use idemctl::domain::step::fencing;
use idemctl::explore::SearchLimits;

/// True when some schedule leads to a lock beside a result, where a worker at work took the lock.
fn can_hide_a_worker(performer: &mut Performer) -> bool {
    let rules = rules(performer, 3, "expiry=2,delay=0,crash=1,lost=1,fail=1".parse().unwrap());
    let explored =
        explored(performer, rules, SearchLimits { max_states: usize::MAX, forgets: false });
    explored
        .reached
        .iter()
        .any(|reached| reached.holder_lives && reached.keys.stored.iter().all(Option::is_some))
}

#[test]
fn a_leftover_lock_is_taken_only_where_no_schedule_hides_a_worker_behind_it() {
    let mut kinds = Vec::new();
    for name in BUILT_IN {
        let mut performer = Performer::of(name, 3);
        if performer.redis_keys.len() < 2 {
            continue;
        }
        let hides = can_hide_a_worker(&mut performer);
        assert_eq!(hides, !fencing::keeps_locks_from_results(performer.schema()), "{name}");
        kinds.push(hides);
    }
    kinds.sort_unstable();
    assert_eq!(kinds, [false, true], "one schema of each kind is built in");
}
