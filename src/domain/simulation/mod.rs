//! The result of a simulation: the events of each scenario, and the verdict that follows from them.

mod accepted;
mod cell;
mod history;
mod judge;
mod verdict;

pub use accepted::MatrixDifference;
pub(crate) use accepted::{AcceptedMatrix, FilesChange};
pub use cell::{Cell, Story};
pub(crate) use history::{Block, ClientAnswer, Execution, History, HistoryEvent};
#[cfg(test)]
pub(crate) use judge::Judgement;
pub(crate) use verdict::{Excuse, ScenarioVerdict};
