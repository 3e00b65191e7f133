//! What a simulation comes to: what happened in each scenario, and the verdict that follows from it.

mod accepted;
mod cell;
mod history;
mod judge;
mod verdict;

pub use accepted::Difference;
pub(crate) use accepted::{Accepted, Change};
pub use cell::{Cell, Story};
pub(crate) use history::{Block, Event, Execution, History, Told};
#[cfg(test)]
pub(crate) use judge::Judgement;
pub(crate) use verdict::Verdict;
