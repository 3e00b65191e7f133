//! The words of an exploration: what workers do, what can fail, what must hold, and what was found.

mod accepted;
mod act;
mod answer;
mod assumption;
mod exploration;
mod fault;
pub(crate) mod gist;
mod held;
pub mod invariants;
mod moment;
pub(crate) mod past;
mod program;
mod remedy;
mod token;
pub(crate) mod trace;

pub(crate) use accepted::{Accepted, Difference};
pub use act::Act;
pub use answer::Author;
pub(crate) use answer::Heard;
pub use assumption::{Assumption, Assumptions};
pub use exploration::Covered;
pub(crate) use exploration::{Exploration, Harm, Replay};
pub use fault::{Budget, Fault};
pub use held::{Held, Keys};
pub use invariants::Invariant;
pub(crate) use moment::{Facts, Moment};
pub use past::Reached;
pub(crate) use past::{Past, Way};
pub use program::{Asks, Does, Point, Program, Stage};
pub(crate) use program::{ENDED, MOST_WORKERS};
pub(crate) use remedy::{BEGIN_IN_ONE_SCRIPT, Culprit};
pub(crate) use token::Token;
pub(crate) use trace::Line;
