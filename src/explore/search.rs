//! The breadth-first search over all states: the first schedule to a violation is a shortest one.

use std::collections::{BTreeMap, HashMap};

use super::names::Names;
use super::reply_table::ReplyTable;
use super::states::{SearchState, StateIndex};
use super::successors::{Rules, Successor, find_successors};
use crate::domain::exploration::{Act, FaultBudget, Invariant, ReachedGoals, ReachedState};
use crate::domain::schema::Meaning;
use crate::explore::reply_table::UnknownReply;

/// The number of states that are expanded between two pauses. A pause lets the operator interrupt
/// the search. At about a million states a second, the next pause is never far away.
const SLICE: usize = 50_000;

/// The limits of a search.
#[derive(Debug, Clone, Copy)]
pub struct SearchLimits {
    /// The most states that are kept in memory.
    pub max_states: usize,
    /// For tests: forget the effects of calls after each state.
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

/// The next thing that the search needs.
pub(super) enum SearchNeeds {
    /// The effect of a call.
    Reply(UnknownReply),
    /// A chance for the operator to interrupt it.
    Pause,
    /// Nothing: every state was expanded, or there are too many.
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

/// The origin of a state in which schedules start.
const BEGINNING: u32 = u32::MAX;

/// The state and the act from which each state was first reached, and the names of its workers then.
/// Three lists, because a struct of these numbers would fill two bytes more.
#[derive(Default)]
struct Origins {
    /// Never decreases after the beginnings, because states are numbered in the order in which they
    /// are found.
    states: Vec<u32>,
    acts: Vec<u16>,
    names: Vec<Names>,
}

impl Origins {
    fn push(&mut self, from: u32, act: u16, names: Names) {
        self.states.push(from);
        self.acts.push(act);
        self.names.push(names);
    }

    /// The memory of all lists in bytes.
    fn bytes(&self) -> usize {
        self.states.len() * (size_of::<u32>() + size_of::<u16>() + size_of::<Names>())
    }
}

/// The state of the search.
pub(super) struct Search {
    rules: Rules,
    pub(super) replies: ReplyTable,
    limits: SearchLimits,
    /// The number of states in which schedules start; they are the first ones.
    beginnings: usize,
    states: Vec<SearchState>,
    index: StateIndex,
    origins: Origins,
    /// The successors of all expanded states that were known before, one state after another. The
    /// others are those whose origin is the state.
    edges: Vec<u32>,
    /// For each expanded state, the number of its successors in `edges`. A state has fewer than a
    /// thousand: a worker has at most seven, and a Redis key four.
    edge_counts: Vec<u16>,
    /// By the number of the invariant, and the faults. Only few of all possible sets of faults
    /// occur here.
    violations: BTreeMap<(usize, FaultBudget), FirstViolation>,
    /// The goals that schedules without a fault reached.
    pub(super) goals: ReachedGoals,
    /// The successors of the state that is being expanded. The list is reused to avoid allocations.
    successors: Vec<Successor>,
}

impl Search {
    /// A search that has expanded nothing yet.
    pub(super) fn new(rules: Rules, replies: ReplyTable, limits: SearchLimits) -> Self {
        let mut states = Vec::new();
        let mut index = StateIndex::new();
        let mut origins = Origins::default();
        for beginning in rules.beginnings() {
            index.number(&mut states, &SearchState::new(&beginning));
            origins.push(BEGINNING, 0, Names::IN_ORDER);
        }
        Self {
            beginnings: states.len(),
            origins,
            violations: BTreeMap::new(),
            goals: ReachedGoals::default(),
            rules,
            replies,
            limits,
            states,
            index,
            edges: Vec::new(),
            edge_counts: Vec::new(),
            successors: Vec::new(),
        }
    }

    /// Continues until the search needs something.
    pub(super) fn advance(&mut self) -> SearchNeeds {
        for _ in 0..SLICE {
            // The limit bounds memory: states are never dropped, because schedules are read back
            // from them.
            if self.is_complete() || self.is_at_limit() {
                return SearchNeeds::Nothing;
            }
            // States are expanded in the order in which they were found, which makes the search
            // breadth first.
            let number = self.edge_counts.len();
            self.successors.clear();
            let (state, names) = (self.states[number], self.origins.names[number]);
            if let Err(unknown) =
                find_successors(&self.rules, &mut self.replies, state, names, &mut self.successors)
            {
                return SearchNeeds::Reply(unknown);
            }
            // Successors are stored only when all are known, so a retry after a missing reply adds
            // none twice.
            self.keep_successors(number);
            if self.limits.forgets {
                self.replies.forget();
            }
        }
        SearchNeeds::Pause
    }

    /// True if the search may not keep more.
    fn is_at_limit(&self) -> bool {
        self.states.len() >= self.limits.max_states
    }

    /// The memory that the search uses for states and transitions, in bytes. The unused half of a
    /// list that has just grown does not count, because its pages are not in memory.
    fn used_bytes(&self) -> usize {
        let of_states = self.states.len() * size_of::<SearchState>();
        let of_edges =
            self.edges.len() * size_of::<u32>() + self.edge_counts.len() * size_of::<u16>();
        of_states + self.origins.bytes() + of_edges + self.index.bytes()
    }

    fn keep_successors(&mut self, from: usize) {
        let from = u32::try_from(from).unwrap_or(u32::MAX);
        let edges_before = self.edges.len();
        for successor in &self.successors {
            let (number, is_new) = self.index.number(&mut self.states, &successor.state);
            if is_new {
                self.origins.push(from, successor.act.code(), successor.names);
            } else {
                self.edges.push(number);
            }
            let faults = successor.state.faults();
            if faults == FaultBudget::default() {
                note_goals(&mut self.goals, successor);
            }
            judge(&mut self.violations, from, faults, successor, &self.rules.program.invariants);
        }
        let count = self.edges.len() - edges_before;
        self.edge_counts.push(u16::try_from(count).unwrap_or(u16::MAX));
    }

    /// Each violation with the faults that first led to it, and the number of its invariant.
    pub(super) fn violations(&self) -> Vec<(usize, FoundViolation)> {
        let mut found = Vec::new();
        for ((number, faults), violation) in &self.violations {
            let (number, faults) = (*number, *faults);
            let (beginning, mut acts) = self.schedule_to(violation.from);
            acts.push(violation.act);
            acts.extend(violation.shown_by);
            found.push((
                number,
                FoundViolation {
                    invariant: self.rules.program.invariants[number],
                    faults,
                    beginning,
                    acts,
                },
            ));
        }
        found
    }

    /// A shortest schedule to a state: the workers' first positions, and the acts.
    fn schedule_to(&self, to: u32) -> (Vec<u8>, Vec<Act>) {
        let mut at = to;
        let mut acts = Vec::new();
        loop {
            let before = self.origins.states[at as usize];
            if before == BEGINNING {
                break;
            }
            acts.extend(Act::from_code(self.origins.acts[at as usize]));
            at = before;
        }
        acts.reverse();
        let beginning = &self.states[at as usize].positions[..usize::from(self.rules.workers)];
        (beginning.to_vec(), acts)
    }

    /// True if every state was expanded.
    pub(super) fn is_complete(&self) -> bool {
        self.edge_counts.len() == self.states.len()
    }

    /// The number of states.
    pub(super) fn states(&self) -> usize {
        self.states.len()
    }

    /// The number of transitions.
    pub(super) fn transitions(&self) -> usize {
        self.edges.len() + self.states.len() - self.beginnings
    }

    /// The number of steps up to which the search covered every schedule.
    pub(super) fn depth(&self) -> usize {
        let last = u32::try_from(self.edge_counts.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let depth = self.schedule_to(last).1.len();
        // The last depth of an incomplete search may be incomplete.
        if self.is_complete() { depth } else { depth.saturating_sub(1) }
    }

    /// The number of schedules that the states represent.
    pub(super) fn count_schedules(&self) -> f64 {
        count_paths(self.beginnings, &self.origins.states, &self.edge_counts, &self.edges)
    }

    /// The memory per state in bytes, including all tables.
    pub(super) fn bytes_per_state(&self) -> usize {
        self.used_bytes() / self.states.len().max(1)
    }

    /// Every reached state of the Redis keys, with its minimal sets of faults and a shortest
    /// schedule for each set.
    pub(super) fn reached(&self) -> Vec<ReachedState> {
        // States are sorted by the length of their schedules, so the first one with given faults
        // has a shortest schedule.
        let mut minimal: HashMap<(u32, bool), Vec<(FaultBudget, u32)>> = HashMap::new();
        for (number, state) in (0u32..).zip(&self.states) {
            let known = minimal.entry((state.keys, self.holder_lives(state))).or_default();
            if !known.iter().any(|(faults, _)| faults.is_within(state.faults())) {
                known.retain(|(faults, _)| !state.faults().is_within(*faults));
                known.push((state.faults(), number));
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
        let Some(worker) = state.holder() else { return false };
        self.rules.position(state, worker).is_at_work()
    }
}

/// Stores which goals a transition without a fault reaches.
fn note_goals(goals: &mut ReachedGoals, successor: &Successor) {
    let transition = &successor.transition;
    let meaning = transition.reply.and_then(|reply| reply.meaning);
    goals.effect |= matches!(successor.act, Act::Effect(_));
    goals.released_lock |= meaning == Some(Meaning::Released);
    goals.stored_result |= meaning == Some(Meaning::Stored);
    // A single worker gets no replay, but the request after it does.
    goals.replay |= meaning == Some(Meaning::Replay) || transition.after.replays.is_some();
}

/// Stores the first violation of each invariant with the faults of a state.
fn judge(
    violations: &mut BTreeMap<(usize, FaultBudget), FirstViolation>,
    from: u32,
    faults: FaultBudget,
    successor: &Successor,
    invariants: &[&'static Invariant],
) {
    let Successor { act, transition, .. } = successor;
    for (number, invariant) in invariants.iter().enumerate() {
        if (invariant.is_violated)(transition) {
            // The search is breadth first: the first schedule with these faults is a shortest one.
            let shown_by = (invariant.shown_by)(transition);
            violations.entry((number, faults)).or_insert(FirstViolation {
                from,
                act: *act,
                shown_by,
            });
        }
    }
}

/// The number of paths from the first `beginnings` states to states without successors. `origins`
/// has for each other state the predecessor from which it was found, and `edge_counts` for each
/// state the number of its other successors in `edges`.
///
/// No path returns to a state, because each step uses up a part of a worker's program or a fault.
/// The result is a float because the number of paths may exceed 64 bits.
fn count_paths(beginnings: usize, origins: &[u32], edge_counts: &[u16], edges: &[u32]) -> f64 {
    let states = edge_counts.len();
    // The states that were found from one state have consecutive numbers.
    let mut found_ends = Vec::with_capacity(states);
    let mut edge_ends = Vec::with_capacity(states);
    let mut found = beginnings;
    let mut edge_end = 0;
    for (from, count) in edge_counts.iter().enumerate() {
        edge_end += usize::from(*count);
        edge_ends.push(edge_end);
        while found < states && origins[found] as usize == from {
            found += 1;
        }
        found_ends.push(found);
    }
    // A state is ready when all its predecessors are counted, because its number of paths is the
    // sum of theirs.
    let mut uncounted_before = vec![1u32; states];
    uncounted_before[..beginnings].fill(0);
    for next in edges {
        uncounted_before[*next as usize] += 1;
    }
    let mut paths = vec![0f64; states];
    paths[..beginnings].fill(1.0);
    let mut ready: Vec<usize> =
        (0..beginnings).filter(|state| uncounted_before[*state] == 0).collect();
    let mut complete_paths = 0.0;
    while let Some(state) = ready.pop() {
        // The successors of a state begin where those of the state before it end.
        let (found_start, start) = match state {
            0 => (beginnings, 0),
            _ => (found_ends[state - 1], edge_ends[state - 1]),
        };
        let found = found_start..found_ends[state];
        let known = &edges[start..edge_ends[state]];
        if found.is_empty() && known.is_empty() {
            complete_paths += paths[state];
        }
        for next in found.chain(known.iter().map(|next| *next as usize)) {
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
    fn paths_that_meet_are_counted_separately() {
        // 0 leads to 1 and 2, both of which lead to 3; 1 leads to 3 in two ways.
        let origins = [BEGINNING, 0, 0, 1];
        assert_eq!(count_paths(1, &origins, &[0, 1, 1, 0], &[3, 3]), 3.0);
        assert_eq!(count_paths(1, &[BEGINNING], &[0], &[]), 1.0);
    }
}
