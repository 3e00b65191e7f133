//! What a simulation comes to: what happened in each scenario, and the verdict that follows from it.

mod accepted;
mod cell;
mod history;
mod judge;
mod verdict;

pub use accepted::{Accepted, Change, Difference};
pub use cell::{Cell, Story};
pub use history::{Answered, Block, Event, Execution, History, Told};
pub use judge::{Judgement, judge};
pub use verdict::Verdict;
