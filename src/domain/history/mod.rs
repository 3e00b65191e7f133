//! What was changed: the lines of the audit log, and the operations that they tell of.

pub mod entry;
mod operation;

pub use entry::Entry;
pub(crate) use entry::{LEFT_ALONE, OUTCOME_UNKNOWN, PARTIAL};
pub(crate) use operation::{Operation, Operations};
