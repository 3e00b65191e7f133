//! The words of an exploration: what workers do, what can fail, what must hold, and what was found.

mod accepted;
mod act;
mod answer;
mod assumption;
mod exploration;
mod fault;
pub mod invariants;
mod keys;
mod moment;
mod program;
mod token;
pub(crate) mod trace;

pub(crate) use accepted::{Accepted, Difference};
pub(crate) use act::Act;
pub(crate) use answer::{Author, Heard};
pub(crate) use assumption::{Assumption, Assumptions};
pub(crate) use exploration::{Covered, Exploration, Harm};
pub(crate) use fault::{Budget, Fault};
pub(crate) use invariants::Invariant;
pub(crate) use keys::{Held, Keys};
pub(crate) use moment::{Facts, Moment};
pub(crate) use program::{Asks, Does, ENDED, MOST_WORKERS, Point, Program, Stage};
pub(crate) use token::Token;
pub(crate) use trace::Line;
