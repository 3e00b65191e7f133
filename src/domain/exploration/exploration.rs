//! What an exploration found: the violations with their shortest schedules, and how a record can have come about.

use super::act::Act;
use super::fault::{Assumptions, FaultBudget};
use super::invariants::Invariant;
use super::keys_state::{AbstractState, KeysState};
use super::token::ScheduleToken;
use crate::domain::schema::Schema;

/// One schema, or two that share Redis keys, explored.
#[derive(Debug, Clone)]
pub(crate) struct Exploration {
    /// The schemas whose steps the workers execute.
    pub(crate) schemas: Vec<String>,
    pub(crate) workers: u8,
    /// How often each fault may happen.
    pub(crate) most: FaultBudget,
    pub(crate) assumptions: Assumptions,
    pub(crate) violations: Vec<Violation>,
    /// The invariants that do not apply to the schemas.
    pub(crate) not_asked: Vec<&'static str>,
    pub(crate) covered: SearchCoverage,
    pub(crate) wall_ms: u64,
    /// The schedule that was replayed, if that was asked for instead of an exploration.
    pub(crate) replay: Option<ReplayedSchedule>,
    /// A call that replied differently the second time.
    pub(crate) unsteady: Option<String>,
}

/// A schedule that was replayed.
#[derive(Debug, Clone)]
pub(crate) struct ReplayedSchedule {
    pub(crate) lines: Vec<TraceLine>,
    pub(crate) token: ScheduleToken,
    /// Where the replay went another way than the exploration.
    pub(crate) deviates: Option<String>,
}

/// A violation of an invariant, with a set of faults none of which can be left out.
#[derive(Debug, Clone)]
pub(crate) struct Violation {
    pub(crate) invariant: &'static Invariant,
    pub(crate) faults: FaultBudget,
    /// What to change, as the schedule shows.
    pub(crate) remedy: String,
    /// A shortest schedule, as workers executed it.
    pub(crate) lines: Vec<TraceLine>,
    pub(crate) token: ScheduleToken,
    /// Where the workers went another way than the exploration.
    pub(crate) deviates: Option<String>,
}

/// One step of a schedule that workers executed: the actor, the reply of Redis, what the client saw, and the state after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceLine {
    pub(crate) act: Act,
    pub(crate) actor: String,
    pub(crate) step: String,
    pub(crate) reply: Option<String>,
    /// What the client of the worker sees.
    pub(crate) sees: Option<String>,
    /// The state of the Redis keys afterwards.
    pub(crate) holds: String,
}

/// How far an exploration went.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchCoverage {
    /// False if the limit of states was reached, or somebody asked to stop.
    pub complete: bool,
    pub states: usize,
    pub transitions: usize,
    /// For a complete exploration: how many schedules the states stand for.
    pub schedules: Option<f64>,
    /// All schedules up to so many steps were seen.
    pub depth: usize,
    pub server_calls: usize,
    pub bytes_a_state: usize,
    /// How long the search took without the server's calls, in microseconds.
    pub search_us: u64,
}

impl Exploration {
    /// The schedule that was replayed, or that of each violation, with a title.
    pub(crate) fn schedules(&self) -> Vec<(String, &[TraceLine])> {
        let name = self.name();
        if let Some(replay) = &self.replay {
            return vec![(format!("{name}, {}", self.most), &replay.lines)];
        }
        let mut schedules = Vec::new();
        for violation in &self.violations {
            let title = format!("{name}, {}, {}", violation.invariant.name, violation.faults);
            schedules.push((title, &violation.lines[..]));
        }
        schedules
    }

    /// The names of the schemas.
    pub(crate) fn name(&self) -> String {
        self.schemas.join(" beside ")
    }
}

/// A state of the Redis keys that was reached with a minimal set of faults.
#[derive(Debug, Clone)]
pub struct ReachedState {
    pub keys: KeysState,
    /// The worker that took the held lock is at work.
    pub holder_lives: bool,
    pub faults: FaultBudget,
    /// The position at which each worker begins.
    pub beginning: Vec<u8>,
    /// A shortest schedule.
    pub acts: Vec<Act>,
}

/// The schedules that lead to a record.
#[derive(Debug, Clone)]
pub(crate) struct RecordPast {
    /// How often each fault may happen.
    pub(crate) most: FaultBudget,
    pub(crate) workers: u8,
    /// Each with a set of faults none of which can be left out, the fewest first; empty if no schedule leads there.
    pub(crate) schedules: Vec<PastSchedule>,
}

/// One schedule that leads to a record.
#[derive(Debug, Clone)]
pub(crate) struct PastSchedule {
    pub(crate) holder_lives: bool,
    pub(crate) faults: FaultBudget,
    pub(crate) token: ScheduleToken,
    /// The schedule as workers executed it.
    pub(crate) lines: Vec<TraceLine>,
}

/// The reached states that are the wanted one, without those that take more faults than another.
pub(crate) fn leading_to<'a>(
    schema: &Schema,
    reached: &'a [ReachedState],
    wanted: &AbstractState,
) -> Vec<&'a ReachedState> {
    let mut same = Vec::new();
    for state in reached {
        if AbstractState::from_keys(schema, &state.keys) == *wanted {
            same.push(state);
        }
    }
    let mut minimal: Vec<&ReachedState> = Vec::new();
    for state in &same {
        let is_known = minimal
            .iter()
            .any(|known| known.holder_lives == state.holder_lives && known.faults == state.faults);
        if !is_known && !same.iter().any(|other| is_better(other, state)) {
            minimal.push(state);
        }
    }
    minimal.sort_by_key(|state| (state.faults.total(), state.acts.len()));
    minimal
}

/// True if `other` takes fewer faults than `state`, or a shorter schedule with the same faults.
fn is_better(other: &ReachedState, state: &ReachedState) -> bool {
    if other.holder_lives != state.holder_lives {
        return false;
    }
    if other.faults == state.faults {
        return other.acts.len() < state.acts.len();
    }
    other.faults.is_within(state.faults)
}
