//! Breadth first over all states: the first way to a harm is a shortest one.

use std::collections::HashMap;

use super::here::{self, Step};
use super::index::Index;
use super::perform::{Performed, Question};
use super::places::Table;
use super::rules::Rules;
use super::schedules;
use super::state::State;
use crate::domain::exploration::{Act, Budget, Does, Moment, Reached, invariants};

/// States that are looked at between two questions whether to go on.
const SLICE: usize = 50_000;

/// What the search needs next.
pub(super) enum Needs {
    Answer(Question),
    /// Nothing, but it has worked for a while.
    Breath,
    /// Nothing: everything was seen, or the most states are there.
    End,
}

/// The first way to break an invariant with certain faults.
#[derive(Debug, Clone, Copy)]
struct Broken {
    /// The state before the last step.
    from: u32,
    act: Act,
    /// The request that shows the harm.
    shown_by: Option<Act>,
}

pub(super) struct Search {
    pub(super) rules: Rules,
    pub(super) table: Table,
    roots: usize,
    states: Vec<State>,
    index: Index,
    /// The state and the act that a state was first reached from.
    from: Vec<(u32, u8)>,
    /// The successors of all states, and for each state where its own end.
    edges: Vec<u32>,
    leads: Vec<u32>,
    /// By invariant and faults.
    broken: Vec<Option<Broken>>,
    steps: Vec<Step>,
    most_states: usize,
    /// For tests: nothing that the server did is remembered beyond one state.
    pub(super) forgets: bool,
}

impl Search {
    pub(super) fn new(rules: Rules, table: Table, most_states: usize) -> Self {
        let (mut states, mut index) = (Vec::new(), Index::new());
        for beginning in rules.beginnings() {
            index.number(&mut states, &State::new(&beginning));
        }
        Self {
            roots: states.len(),
            from: vec![(u32::MAX, 0); states.len()],
            broken: vec![None; invariants::ALL.len() * rules.most.count()],
            rules,
            table,
            states,
            index,
            edges: Vec::new(),
            leads: Vec::new(),
            steps: Vec::new(),
            most_states,
            forgets: false,
        }
    }

    /// Goes on until something is needed.
    pub(super) fn advance(&mut self) -> Needs {
        for _ in 0..SLICE {
            if self.is_complete() || self.states.len() >= self.most_states {
                return Needs::End;
            }
            let number = self.leads.len();
            self.steps.clear();
            let mut steps = std::mem::take(&mut self.steps);
            let asked = here::steps(&self.rules, &mut self.table, &self.states[number], &mut steps);
            self.steps = steps;
            if let Err(question) = asked {
                return Needs::Answer(question);
            }
            self.take_in(number);
            if self.forgets {
                self.table.forget();
            }
        }
        Needs::Breath
    }

    pub(super) fn learn(&mut self, question: Question, performed: Performed) {
        self.table.learn(question, performed);
    }

    /// Keeps what follows a state.
    fn take_in(&mut self, here: usize) {
        let here = u32::try_from(here).unwrap_or(u32::MAX);
        for step in &self.steps {
            let (number, is_new) = self.index.number(&mut self.states, &step.state);
            if is_new {
                self.from.push((here, step.act.code()));
            }
            self.edges.push(number);
            judge(&mut self.broken, self.rules.most, here, step.act, step.state.used, &step.moment);
        }
        self.leads.push(u32::try_from(self.edges.len()).unwrap_or(u32::MAX));
    }

    /// Each harm with the faults that led to it first: the invariant's number, the faults, the beginning, the acts.
    pub(super) fn harms(&self) -> impl Iterator<Item = (usize, Budget, Vec<u8>, Vec<Act>)> {
        let most = self.rules.most;
        self.broken.iter().enumerate().filter_map(move |(place, broken)| {
            let broken = broken.as_ref()?;
            let (beginning, mut acts) = self.way(broken.from);
            acts.extend([broken.act].into_iter().chain(broken.shown_by));
            Some((place / most.count(), most.at(place % most.count()), beginning, acts))
        })
    }

    /// A shortest way to a state.
    fn way(&self, to: u32) -> (Vec<u8>, Vec<Act>) {
        let (mut at, mut acts) = (to, Vec::new());
        while let (before, code) = self.from[at as usize]
            && before != u32::MAX
        {
            acts.extend(Act::of_code(code));
            at = before;
        }
        acts.reverse();
        (self.states[at as usize].points[..usize::from(self.rules.workers)].to_vec(), acts)
    }

    pub(super) fn is_complete(&self) -> bool {
        self.leads.len() == self.states.len()
    }

    pub(super) fn states(&self) -> usize {
        self.states.len()
    }

    pub(super) fn transitions(&self) -> usize {
        self.edges.len()
    }

    /// The steps of the longest schedules whose every beginning was seen.
    pub(super) fn depth(&self) -> usize {
        let last = u32::try_from(self.leads.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let depth = self.way(last).1.len();
        if self.is_complete() { depth } else { depth.saturating_sub(1) }
    }

    pub(super) fn schedules(&self) -> f64 {
        schedules::count(self.roots, &self.leads, &self.edges)
    }

    /// Memory that a state takes, all tables counted.
    pub(super) fn bytes_a_state(&self) -> usize {
        let of_states = self.states.capacity() * size_of::<State>() + self.from.capacity() * size_of::<(u32, u8)>();
        let of_edges = (self.edges.capacity() + self.leads.capacity()) * size_of::<u32>();
        (of_states + of_edges + self.index.bytes()) / self.states.len().max(1)
    }

    /// Every state of the Redis keys that was reached, with the minimal faults and a shortest way of each.
    pub(super) fn reached(&self) -> Vec<Reached> {
        let mut minimal: HashMap<(u32, bool), Vec<(Budget, u32)>> = HashMap::new();
        for (number, state) in (0u32..).zip(&self.states) {
            let known = minimal.entry((state.store, self.holder_lives(state))).or_default();
            if !known.iter().any(|(faults, _)| faults.is_within(state.used)) {
                known.retain(|(faults, _)| !state.used.is_within(*faults));
                known.push((state.used, number));
            }
        }
        let mut minimal: Vec<_> = minimal.into_iter().collect();
        minimal.sort_unstable_by_key(|(place, _)| *place);
        let reached = |((store, holder_lives), ways): ((u32, bool), Vec<(Budget, u32)>)| {
            ways.into_iter().map(move |(faults, number)| {
                let (beginning, acts) = self.way(number);
                Reached { keys: self.table.keys(store).clone(), holder_lives, faults, beginning, acts }
            })
        };
        minimal.into_iter().flat_map(reached).collect()
    }

    fn holder_lives(&self, state: &State) -> bool {
        let point = state.holder().map(|worker| self.rules.point(state, worker));
        point.is_some_and(|point| !point.waits && point.does != Does::Nothing)
    }
}

/// Keeps the first way to break each invariant with the faults that a state has seen.
fn judge(broken: &mut [Option<Broken>], most: Budget, from: u32, act: Act, used: Budget, moment: &Moment) {
    for (number, invariant) in invariants::ALL.iter().enumerate() {
        if (invariant.broken)(moment) {
            let place = number * most.count() + most.place(used);
            broken[place].get_or_insert_with(|| Broken { from, act, shown_by: (invariant.shown_by)(moment) });
        }
    }
}
