//! The results of an exploration: violations with their shortest schedules, and the schedules that
//! lead to a record.

use strum::IntoStaticStr;

use super::act::Act;
use super::fault::{Assumptions, FaultBudget};
use super::invariants::Invariant;
use super::keys_state::{AbstractState, KeysState};
use super::step_coverage::{StepCoverage, UnreachedGoal};
use super::token::ScheduleToken;
use crate::domain::as_str::as_str;
use crate::domain::schema::Schema;

/// The result of exploring one schema, or two that share Redis keys.
#[derive(Debug, Clone)]
pub(crate) struct Exploration {
    /// The schemas whose steps the workers execute.
    pub(crate) schemas: Vec<String>,
    /// The hash of each schema's files.
    pub(crate) hashes: Vec<String>,
    pub(crate) workers: u8,
    /// True if the last worker requests another operation with the same key.
    pub(crate) has_other_payload: bool,
    /// How often each fault may happen.
    pub(crate) most: FaultBudget,
    pub(crate) assumptions: Assumptions,
    /// The second search of the same run, under all assumptions; `None` if there was only one.
    pub(crate) assumed: Option<AssumedSearch>,
    pub(crate) violations: Vec<Violation>,
    /// A warning about the TTLs of the schemas.
    pub(crate) short_results: Option<String>,
    /// The invariants about what the schemas have.
    pub(crate) invariants: Vec<&'static Invariant>,
    /// Those of them that were not checked, or not completely.
    pub(crate) not_asked: Vec<&'static str>,
    pub(crate) covered: SearchCoverage,
    /// What the exploration met of the described steps; `None` if the run replayed a schedule.
    pub(crate) steps: Option<StepCoverage>,
    /// The duration of the whole exploration, in milliseconds.
    pub(crate) wall_ms: u64,
    /// The replayed schedule, if the run replayed one instead of exploring.
    pub(crate) replay: Option<ReplayedSchedule>,
    /// A call that gave another reply or another state when it was executed again.
    pub(crate) unsteady: Option<String>,
}

/// A search under assumptions, beside one without.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AssumedSearch {
    pub(crate) assumptions: Assumptions,
    pub(crate) covered: SearchCoverage,
}

/// Whether other scripts on the same Redis keys could prevent a violation. The first cause that fits
/// counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum ViolationCause {
    /// The violation happens under the assumptions, or a step that claims to check the owner removes
    /// or replaces what another worker owns.
    Schema,
    /// A step that does not claim to check the owner removes or replaces what another worker owns.
    NotFenced,
    /// The violation happens only if an assumption does not hold.
    Environment,
}

as_str!(ViolationCause);

/// A schedule that was replayed.
#[derive(Debug, Clone)]
pub(crate) struct ReplayedSchedule {
    /// The steps, as workers executed them.
    pub(crate) lines: Vec<TraceLine>,
    pub(crate) token: ScheduleToken,
    /// How the replay deviated from the exploration; `None` if it did not.
    pub(crate) deviates: Option<String>,
}

/// A violation of an invariant, with a set of faults that leads to it.
#[derive(Debug, Clone)]
pub(crate) struct Violation {
    pub(crate) invariant: &'static Invariant,
    pub(crate) faults: FaultBudget,
    /// True if none of the faults can be left out. Only a complete search knows that, and a
    /// replayed schedule does not.
    pub(crate) is_minimal: bool,
    /// `None` unless the run explored with and without the assumptions.
    pub(crate) cause: Option<ViolationCause>,
    /// If a step other than begin removes or replaces what another worker owns: whether the step
    /// claims to check the owner.
    pub(crate) is_fenced: Option<bool>,
    /// True if the violation makes the exploration fail.
    pub(crate) counts: bool,
    /// The suggested change, derived from the schedule.
    pub(crate) remedy: &'static str,
    /// A shortest schedule, as workers executed it.
    pub(crate) lines: Vec<TraceLine>,
    pub(crate) token: ScheduleToken,
    /// How the workers deviated from the exploration; `None` if they did not.
    pub(crate) deviates: Option<String>,
}

/// One executed step of a schedule: the actor, the reply of Redis, the reply to the client, and the
/// state after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceLine {
    pub(crate) act: Act,
    /// The name of the worker or the fault.
    pub(crate) actor: String,
    pub(crate) step: String,
    pub(crate) reply: Option<String>,
    /// The reply that the worker's client gets.
    pub(crate) sees: Option<String>,
    /// The state of the Redis keys afterwards.
    pub(crate) holds: String,
}

/// The extent of an exploration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchCoverage {
    /// False if the search reached the limit of states, or the operator interrupted it.
    pub complete: bool,
    pub states: usize,
    pub transitions: usize,
    /// The number of schedules that the states represent; `None` if the exploration is incomplete.
    pub schedules: Option<f64>,
    /// The search covered all schedules with up to this many steps.
    pub depth: usize,
    pub server_calls: usize,
    pub bytes_a_state: usize,
    /// The duration of the search without the server's calls, in microseconds.
    pub search_us: u64,
}

impl Exploration {
    /// The goals that no schedule without a fault reaches.
    pub(crate) fn unreached(&self) -> &[UnreachedGoal] {
        match &self.steps {
            Some(steps) => &steps.unreached,
            None => &[],
        }
    }

    /// True if nothing is wrong: no violation counts, and every goal was reached.
    pub(crate) fn is_sound(&self) -> bool {
        self.unreached().is_empty() && !self.violations.iter().any(|violation| violation.counts)
    }

    /// True if each search covered all schedules.
    pub(crate) fn is_complete(&self) -> bool {
        let assumed_is_complete = self.assumed.is_none_or(|assumed| assumed.covered.complete);
        self.covered.complete && assumed_is_complete
    }

    /// The number of operations that the workers request.
    pub(crate) fn payloads(&self) -> u8 {
        if self.has_other_payload { 2 } else { 1 }
    }

    /// The names of the schemas, as one title.
    pub(crate) fn name(&self) -> String {
        self.schemas.join(" beside ")
    }
}

/// A state of the Redis keys that was reached with a minimal set of faults.
#[derive(Debug, Clone)]
pub struct ReachedState {
    pub keys: KeysState,
    /// True if the worker that took the held lock is still running.
    pub holder_lives: bool,
    pub faults: FaultBudget,
    /// The position in the program at which each worker starts.
    pub beginning: Vec<u8>,
    /// A shortest schedule.
    pub acts: Vec<Act>,
}

/// The schedules that lead to the state of a record.
#[derive(Debug, Clone)]
pub(crate) struct RecordPast {
    /// How often each fault may happen.
    pub(crate) most: FaultBudget,
    pub(crate) workers: u8,
    /// The schedules, each with a minimal set of faults, the fewest first; empty if none leads to
    /// the record.
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

/// The reached states that equal the wanted one, except those that need more faults than another.
/// `expired` states for each Redis key whether the value's contained expiry has passed.
pub(crate) fn leading_to<'a>(
    schema: &Schema,
    reached: &'a [ReachedState],
    wanted: &AbstractState,
    expired: &[bool],
) -> Vec<&'a ReachedState> {
    let mut same = Vec::new();
    for state in reached {
        let is_same_expiry = expired.iter().enumerate().all(|(key_index, is_expired)| {
            state.keys.reading(schema, key_index).past_expiry().is_some() == *is_expired
        });
        if is_same_expiry && AbstractState::from_keys(schema, &state.keys) == *wanted {
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
