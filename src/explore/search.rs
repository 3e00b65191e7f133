//! Breadth first over all states: the first schedule to a violation is a shortest one.

use std::collections::HashMap;

use super::reply_table::ReplyTable;
use super::states::{SearchState, StateIndex};
use super::successors::{Rules, Successor, find_successors};
use crate::domain::exploration::{
    Act, FaultBudget, Invariant, Position, ReachedState, Transition, invariants,
};
use crate::explore::reply_table::UnknownReply;

/// States that are expanded between two pauses.
const SLICE: usize = 50_000;

/// How far a search goes.
#[derive(Debug, Clone, Copy)]
pub struct SearchLimits {
    pub most_states: usize,
    /// For tests: nothing that the server did is remembered beyond one state.
    pub forgets: bool,
}

/// A violation with a minimal set of faults that leads to it, and a shortest schedule.
#[derive(Debug, Clone)]
pub struct FoundViolation {
    pub invariant: &'static Invariant,
    pub faults: FaultBudget,
    /// The position at which each worker begins.
    pub beginning: Vec<u8>,
    pub acts: Vec<Act>,
}

/// What the search needs next.
pub(super) enum SearchNeeds {
    Reply(UnknownReply),
    /// Nothing, but it has worked for a while.
    Pause,
    /// It has ended: every state was expanded, or there are too many.
    Nothing,
}

/// The first way to violate an invariant with certain faults.
#[derive(Debug, Clone, Copy)]
struct FirstViolation {
    /// The state before the last step.
    from: u32,
    act: Act,
    /// The request that shows the violation.
    shown_by: Option<Act>,
}

/// From which state and by which act, as a byte, a state was first reached.
type ReachedFrom = (u32, u8);

/// The origin of a state in which schedules begin.
const BEGINNING: u32 = u32::MAX;

pub(super) struct Search {
    rules: Rules,
    pub(super) replies: ReplyTable,
    limits: SearchLimits,
    /// How many states schedules begin in, which are the first ones.
    beginnings: usize,
    states: Vec<SearchState>,
    index: StateIndex,
    origins: Vec<ReachedFrom>,
    /// The successors of all expanded states, one state after another.
    edges: Vec<u32>,
    /// For each expanded state where its successors end in `edges`.
    edge_ends: Vec<u32>,
    /// By invariant and faults.
    violations: Vec<Option<FirstViolation>>,
    /// The successors of the state that is expanded, kept between states to save the allocation.
    successors: Vec<Successor>,
}

impl Search {
    pub(super) fn new(rules: Rules, replies: ReplyTable, limits: SearchLimits) -> Self {
        let mut states = Vec::new();
        let mut index = StateIndex::new();
        for beginning in rules.beginnings() {
            index.number(&mut states, &SearchState::new(&beginning));
        }
        Self {
            beginnings: states.len(),
            origins: vec![(BEGINNING, 0); states.len()],
            violations: vec![None; invariants::ALL.len() * rules.most.count()],
            rules,
            replies,
            limits,
            states,
            index,
            edges: Vec::new(),
            edge_ends: Vec::new(),
            successors: Vec::new(),
        }
    }

    /// Continues until something is needed.
    pub(super) fn advance(&mut self) -> SearchNeeds {
        for _ in 0..SLICE {
            // The limit is one of memory: states are never dropped, because schedules are read back from them.
            if self.is_complete() || self.states.len() >= self.limits.most_states {
                return SearchNeeds::Nothing;
            }
            // The states are expanded in the order in which they were found.
            let number = self.edge_ends.len();
            self.successors.clear();
            let state = &self.states[number];
            if let Err(unknown) =
                find_successors(&self.rules, &mut self.replies, state, &mut self.successors)
            {
                return SearchNeeds::Reply(unknown);
            }
            self.keep_successors(number);
            if self.limits.forgets {
                self.replies.forget();
            }
        }
        SearchNeeds::Pause
    }

    fn keep_successors(&mut self, from: usize) {
        let from = u32::try_from(from).unwrap_or(u32::MAX);
        for successor in &self.successors {
            let (number, is_new) = self.index.number(&mut self.states, &successor.state);
            if is_new {
                self.origins.push((from, successor.act.code()));
            }
            self.edges.push(number);
            let faults = successor.state.faults;
            judge(
                &mut self.violations,
                self.rules.most,
                from,
                successor.act,
                faults,
                &successor.transition,
            );
        }
        self.edge_ends.push(u32::try_from(self.edges.len()).unwrap_or(u32::MAX));
    }

    /// Each violation with the faults that first led to it, beside the number of its invariant.
    pub(super) fn violations(&self) -> Vec<(usize, FoundViolation)> {
        let budgets = self.rules.most.count();
        let mut found = Vec::new();
        for (place, violation) in self.violations.iter().enumerate() {
            let Some(violation) = violation else { continue };
            let number = place / budgets;
            let (beginning, mut acts) = self.schedule_to(violation.from);
            acts.push(violation.act);
            acts.extend(violation.shown_by);
            let faults = self.rules.most.at(place % budgets);
            found.push((
                number,
                FoundViolation { invariant: &invariants::ALL[number], faults, beginning, acts },
            ));
        }
        found
    }

    /// A shortest schedule to a state: the positions in which it begins, and what happens then.
    fn schedule_to(&self, to: u32) -> (Vec<u8>, Vec<Act>) {
        let mut at = to;
        let mut acts = Vec::new();
        loop {
            let (before, code) = self.origins[at as usize];
            if before == BEGINNING {
                break;
            }
            acts.extend(Act::from_code(code));
            at = before;
        }
        acts.reverse();
        let beginning = &self.states[at as usize].positions[..usize::from(self.rules.workers)];
        (beginning.to_vec(), acts)
    }

    pub(super) fn is_complete(&self) -> bool {
        self.edge_ends.len() == self.states.len()
    }

    pub(super) fn states(&self) -> usize {
        self.states.len()
    }

    pub(super) fn transitions(&self) -> usize {
        self.edges.len()
    }

    /// The number of steps up to which every schedule was seen.
    pub(super) fn depth(&self) -> usize {
        let last = u32::try_from(self.edge_ends.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let depth = self.schedule_to(last).1.len();
        // The last depth of an incomplete search may be incomplete.
        if self.is_complete() { depth } else { depth.saturating_sub(1) }
    }

    /// The number of schedules that the states represent.
    pub(super) fn count_schedules(&self) -> f64 {
        count_paths(self.beginnings, &self.edge_ends, &self.edges)
    }

    /// Memory per state, all tables counted.
    pub(super) fn bytes_per_state(&self) -> usize {
        let of_states = self.states.capacity() * size_of::<SearchState>();
        let of_origins = self.origins.capacity() * size_of::<ReachedFrom>();
        let of_edges = (self.edges.capacity() + self.edge_ends.capacity()) * size_of::<u32>();
        (of_states + of_origins + of_edges + self.index.bytes()) / self.states.len().max(1)
    }

    /// Every state of the Redis keys that was reached, with the minimal faults and a shortest schedule of each.
    pub(super) fn reached(&self) -> Vec<ReachedState> {
        // The states are in the order of their schedules' length, so that the first one with certain faults has a shortest.
        let mut minimal: HashMap<(u32, bool), Vec<(FaultBudget, u32)>> = HashMap::new();
        for (number, state) in (0u32..).zip(&self.states) {
            let known = minimal.entry((state.keys, self.holder_lives(state))).or_default();
            if !known.iter().any(|(faults, _)| faults.is_within(state.faults)) {
                known.retain(|(faults, _)| !state.faults.is_within(*faults));
                known.push((state.faults, number));
            }
        }
        // The order of a hash map differs from run to run, and the output must not.
        let mut minimal: Vec<_> = minimal.into_iter().collect();
        minimal.sort_unstable_by_key(|(place, _)| *place);
        let mut reached = Vec::new();
        for ((keys, holder_lives), states) in minimal {
            for (faults, number) in states {
                let (beginning, acts) = self.schedule_to(number);
                let keys = self.replies.keys(keys).clone();
                reached.push(ReachedState { keys, holder_lives, faults, beginning, acts });
            }
        }
        reached
    }

    fn holder_lives(&self, state: &SearchState) -> bool {
        let position = state.holder().map(|worker| self.rules.position(state, worker));
        position.is_some_and(Position::is_at_work)
    }
}

/// Keeps the first way to violate each invariant with the faults of a state.
fn judge(
    violations: &mut [Option<FirstViolation>],
    most: FaultBudget,
    from: u32,
    act: Act,
    faults: FaultBudget,
    transition: &Transition,
) {
    for (number, invariant) in invariants::ALL.iter().enumerate() {
        if (invariant.is_violated)(transition) {
            // The search is breadth first: the first schedule with these faults is a shortest one.
            let place = number * most.count() + most.place(faults);
            let shown_by = (invariant.shown_by)(transition);
            violations[place].get_or_insert(FirstViolation { from, act, shown_by });
        }
    }
}

/// How many paths lead from the first `beginnings` states to the states without successors. `edge_ends` has for each state
/// where its successors end in `edges`.
///
/// No path returns to a state, because each step uses up a part of a worker's program or a fault.
fn count_paths(beginnings: usize, edge_ends: &[u32], edges: &[u32]) -> f64 {
    let successors = |state: usize| {
        let start = if state == 0 { 0 } else { edge_ends[state - 1] };
        &edges[start as usize..edge_ends[state] as usize]
    };
    // A state is counted when all states before it are: its number of paths is the sum of theirs.
    let mut uncounted_before = vec![0u32; edge_ends.len()];
    for next in edges {
        uncounted_before[*next as usize] += 1;
    }
    let mut paths = vec![0f64; edge_ends.len()];
    paths[..beginnings].fill(1.0);
    let mut ready: Vec<usize> =
        (0..beginnings).filter(|state| uncounted_before[*state] == 0).collect();
    let mut complete_paths = 0.0;
    while let Some(state) = ready.pop() {
        if successors(state).is_empty() {
            complete_paths += paths[state];
        }
        for next in successors(state) {
            let next = *next as usize;
            paths[next] += paths[state];
            uncounted_before[next] -= 1;
            if uncounted_before[next] == 0 {
                ready.push(next);
            }
        }
    }
    complete_paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_meet_are_counted_each() {
        // 0 leads to 1 and 2, both of which lead to 3; 1 leads to 3 in two ways.
        assert_eq!(count_paths(1, &[2, 4, 5, 5], &[1, 2, 3, 3, 3]), 3.0);
        assert_eq!(count_paths(1, &[0], &[]), 1.0);
    }
}
