//! What was changed: the lines of the audit log, and the operations that they tell of.

pub mod entry;
pub mod mark;
mod operation;

pub use entry::Entry;
pub(crate) use entry::{LEFT_ALONE, OUTCOME_UNKNOWN, PARTIAL};
pub use mark::Mark;
pub(crate) use mark::{Begin, End, EndState};
pub(crate) use operation::{Operation, Operations, State};
