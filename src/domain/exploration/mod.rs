//! The vocabulary of an exploration: the workers' programs, the faults, the invariants and the
//! results.

mod accepted;
mod act;
mod exploration;
mod fault;
pub mod invariants;
mod keys_state;
mod program;
mod stated_ttl;
mod step_coverage;
mod token;
mod transition;
mod two_frontiers;

pub(crate) use accepted::{AcceptedFrontiers, ExplorationBounds, FrontierDifference};
pub use act::Act;
pub(crate) use act::MAX_LOST_WRITES;
pub(crate) use exploration::{
    AssumedSearch, Exploration, PastSchedule, RecordPast, ReplayedSchedule, TraceLine, Violation,
    ViolationCause, leading_to,
};
pub use exploration::{ReachedState, SearchCoverage};
pub use fault::{Assumption, Assumptions, Fault, FaultBudget};
pub use invariants::Invariant;
pub(crate) use keys_state::{AbstractState, has_result, held_at, holds};
pub use keys_state::{KeysState, StoredKey};
pub(crate) use program::{ENDED, MAX_WORKERS};
pub use program::{NextAction, Position, ProgramCall, WorkerProgram};
pub(crate) use stated_ttl::ExecutedCall;
pub(crate) use step_coverage::{CoveredCall, StepCoverage, UnreachedGoal};
pub use step_coverage::{Goal, MetReplies, ReachedGoals};
pub(crate) use token::ScheduleToken;
pub use transition::ResponseAuthor;
pub(crate) use transition::{AttributedReply, StateFacts, Transition};
