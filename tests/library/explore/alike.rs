//! What the search leaves out changes nothing: steps that were performed before, workers that differ in name alone.

use super::performer::Performer;
use crate::support::BUILT_IN;
use idemctl::domain::exploration::{Assumptions, FaultBudget};
use idemctl::explore::{ExploredProgram, Rules, SearchLimits, explore};

const ALL: SearchLimits =
    SearchLimits { most_states: usize::MAX, most_bytes: usize::MAX, forgets: false };

pub fn explored(performer: &mut Performer, rules: Rules, limits: SearchLimits) -> ExploredProgram {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let callers = performer.callers();
    let Ok(explored) = runtime.block_on(explore(rules, callers, limits, performer));
    assert_eq!(explored.unsteady, None);
    explored
}

pub fn rules(performer: &Performer, workers: u8, most: FaultBudget) -> Rules {
    let program = std::rc::Rc::clone(&performer.program);
    Rules {
        program,
        workers,
        most,
        assumptions: Assumptions::default(),
        in_order: true,
        has_other_payload: false,
    }
}

/// Which faults lead to which harm, in how many steps.
fn frontier(explored: &ExploredProgram) -> Vec<(&'static str, String, usize)> {
    let way = |found: &idemctl::explore::FoundViolation| {
        (found.invariant.name, found.faults.to_string(), found.acts.len())
    };
    explored.found.iter().map(way).collect()
}

#[test]
fn what_is_remembered_is_what_happens() {
    let most = "expiry=1,delay=0,crash=0,lost=1,resend=0,fail=1,late-fail=0".parse().unwrap();
    for name in BUILT_IN {
        let mut performer = Performer::of(name, 2);
        let rules = rules(&performer, 2, most);
        let remembering = explored(&mut performer, rules.clone(), ALL);
        let forgetting = explored(&mut performer, rules, SearchLimits { forgets: true, ..ALL });
        assert_eq!(remembering.covered.states, forgetting.covered.states, "{name}");
        assert_eq!(remembering.covered.schedules, forgetting.covered.schedules, "{name}");
        assert_eq!(frontier(&remembering), frontier(&forgetting), "{name}");
        assert!(remembering.covered.server_calls * 4 < forgetting.covered.server_calls, "{name}");
    }
}

#[test]
fn the_order_in_which_workers_begin_changes_no_frontier() {
    for faults in [
        "expiry=2,delay=0,resend=0,late-fail=0",
        "expiry=1,delay=0,resend=0,late-fail=0,evict=1,failover=1,persist=1",
        "expiry=1,delay=1,crash=0,lost=0,resend=1,fail=1,late-fail=1,restart=1",
    ] {
        for name in BUILT_IN {
            let mut performer = Performer::of(name, 3);
            let in_order = rules(&performer, 3, faults.parse().unwrap());
            let in_any = Rules { in_order: false, ..in_order.clone() };
            let (in_order, in_any) =
                (explored(&mut performer, in_order, ALL), explored(&mut performer, in_any, ALL));
            assert_eq!(frontier(&in_order), frontier(&in_any), "{name}, {faults}");
            assert!(in_order.covered.states < in_any.covered.states, "{name}, {faults}");
        }
    }
}

/// Rule: what two schedules have in common is explored once, and yet each schedule is counted. Without faults two workers of
/// a service whose begin is one script can begin, and then the first one has its effect and completes, whatever the
/// second one is told: five places for the second one's only call, the first of which is left out by the order.
#[test]
fn schedules_are_counted_one_by_one() {
    let mut performer = Performer::of("express", 2);
    let none = rules(&performer, 2, FaultBudget::default());
    let explored = explored(&mut performer, none, ALL);
    assert_eq!(explored.covered.schedules, Some(3.0));
}

#[test]
fn an_exploration_that_reaches_its_bounds_says_how_far_it_got() {
    let mut performer = Performer::of("express", 3);
    let rules = rules(&performer, 3, FaultBudget::USUAL);
    let part = explored(
        &mut performer,
        rules,
        SearchLimits { most_states: 100, most_bytes: usize::MAX, forgets: false },
    );
    assert!(!part.covered.complete && part.covered.schedules.is_none());
    assert!(
        (1..12).contains(&part.covered.depth) && part.covered.states >= 100,
        "{:?}",
        part.covered
    );
}
