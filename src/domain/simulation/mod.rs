//! The result of a simulation: the events of each scenario, and the verdict that follows from them.

mod accepted;
mod cell;
mod history;
mod judge;
mod scenario;
mod verdict;

pub(crate) use accepted::AcceptedMatrix;
pub use accepted::MatrixDifference;
pub use cell::Cell;
pub(crate) use history::{Block, ClientAnswer, Execution, History, HistoryEvent};
#[cfg(test)]
pub(crate) use judge::Judgement;
pub(crate) use scenario::{ActKind, Each, Place, ScenarioAct, Take};
pub use scenario::{SCENARIOS, Scenario};
pub(crate) use verdict::{Excuse, ScenarioVerdict};
