//! The search: every order of the workers' steps and of the faults, breadth first. The server
//! executes each call only once per state.

mod explore;
mod lag;
mod names;
mod reply_table;
mod retrace;
mod search;
mod states;
mod successors;

pub use self::explore::{ExploredProgram, explore};
pub(crate) use self::retrace::{TracedStep, retrace};
pub use self::search::{FoundViolation, SearchLimits};
pub use self::successors::{Rules, Symmetry};
pub use reply_table::{CallEffect, Callers, StateServer, UnknownReply};
