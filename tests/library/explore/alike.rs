//! What the search leaves out changes nothing: steps that were performed before, workers that differ in name alone.

use std::path::Path;

use super::performer::Performer;
use crate::support::{BUILT_IN, at_once};
use idemctl::domain::exploration::{Assumptions, FaultBudget};
use idemctl::domain::schema::Schema;
use idemctl::explore::{ExploredProgram, Rules, SearchLimits, Symmetry, explore};
use idemctl::schemas::{self, Deployment};

const ALL: SearchLimits = SearchLimits { max_states: usize::MAX, forgets: false };

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
        symmetry: Symmetry::Full,
        has_other_payload: performer.has_other_payload,
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
#[ignore = "long: explores without symmetry"]
fn the_order_in_which_workers_begin_changes_no_frontier() {
    for faults in [
        "expiry=2,delay=0,resend=0,late-fail=0",
        "expiry=1,delay=0,resend=0,late-fail=0,evict=1,failover=1,persist=1",
        "expiry=1,delay=1,crash=0,lost=0,resend=1,fail=1,late-fail=1,restart=1",
    ] {
        for name in BUILT_IN {
            let mut performer = Performer::of(name, 3);
            let in_order = rules(&performer, 3, faults.parse().unwrap());
            let in_any = Rules { symmetry: Symmetry::Unused, ..in_order.clone() };
            let (in_order, in_any) =
                (explored(&mut performer, in_order, ALL), explored(&mut performer, in_any, ALL));
            assert_eq!(frontier(&in_order), frontier(&in_any), "{name}, {faults}");
            assert!(in_order.covered.states < in_any.covered.states, "{name}, {faults}");
        }
    }
}

/// The bounds within which names must make no difference: the workers, the faults, and whether the last worker requests
/// another operation.
const BOUNDS: [(u8, &str, bool); 5] = [
    (2, "expiry=1,lost=1,resend=1,fail=1,crash=1,give-up=1,late-fail=1", false),
    (
        2,
        "expiry=1,evict=1,failover=1,restart=1,delay=1,lost=0,resend=0,crash=0,late-fail=0,give-up=0",
        false,
    ),
    (3, "expiry=1,failover=1,lost=0,resend=0,crash=0,fail=0,late-fail=0,give-up=0", false),
    (3, "expiry=1,lost=0,resend=1,crash=0,fail=1,late-fail=0,give-up=0", true),
    (4, "expiry=1,lost=0,resend=0,crash=0,fail=0,late-fail=0,give-up=0", false),
];

/// The violations with their histories, the number of schedules, and the replies and goals that an exploration found. The
/// states that it lists, and how far away the last one is, depend on the names.
fn findings(explored: &ExploredProgram) -> String {
    let ExploredProgram { found, covered, met, goals, .. } = explored;
    let mut words = Vec::new();
    for found in found {
        let acts: Vec<_> = found.acts.iter().map(|act| act.word()).collect();
        words.push(format!("{}, {}: {acts:?}", found.invariant.name, found.faults));
    }
    format!("{words:#?} {:?} schedules, {met:?} {goals:?}", covered.schedules)
}

/// The differences for one schema between the search that merges states and the one that does not, and how many states
/// both have.
fn compared(schema: &Schema) -> (Vec<String>, [usize; 2]) {
    let mut different = Vec::new();
    let mut states = [0, 0];
    for (workers, faults, has_other_payload) in BOUNDS {
        let mut performer = Performer::with(schema.clone(), workers);
        performer.ticks = true;
        performer.has_other_payload = has_other_payload;
        let merging = rules(&performer, workers, faults.parse().unwrap());
        let apart = Rules { symmetry: Symmetry::InOrder, ..merging.clone() };
        let merging = explored(&mut performer, merging, ALL);
        let apart = explored(&mut performer, apart, ALL);
        states[0] += merging.covered.states;
        states[1] += apart.covered.states;
        let (merging, apart) = (findings(&merging), findings(&apart));
        if merging != apart {
            let name = &schema.name;
            different.push(format!("{name}, {workers}, {faults}: {merging}\nbut {apart}"));
        }
    }
    (different, states)
}

/// Rule: a search that counts states as one if they differ only by the names of workers finds the same violations by the
/// same histories, replies, goals and number of schedules as a search that does not.
#[test]
#[ignore = "long: explores without symmetry"]
fn states_that_differ_by_names_alone_lead_to_the_same_findings() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/protocols");
    let schemas = schemas::load(Some(&folder), |_| Deployment::default()).unwrap().schemas;
    assert!(schemas.len() > 50, "{}", schemas.len());
    let mut shares = vec![Vec::new(); 2];
    for (number, schema) in schemas.into_iter().enumerate() {
        shares[number % 2].push(schema);
    }
    let found = at_once(shares, |schemas| {
        schemas.iter().map(|schema| (schema.name.clone(), compared(schema))).collect::<Vec<_>>()
    });
    let mut different = Vec::new();
    for (name, (lines, [merging, apart])) in found.into_iter().flatten() {
        different.extend(lines);
        assert!(merging < apart, "{name}: {merging} of {apart} states");
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
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
    let part = explored(&mut performer, rules, SearchLimits { max_states: 100, forgets: false });
    assert!(!part.covered.complete && part.covered.schedules.is_none());
    assert!(
        (1..12).contains(&part.covered.depth) && part.covered.states >= 100,
        "{:?}",
        part.covered
    );
}
