//! The history of changes: the lines of the audit log, and the operations that they form.

pub mod entry;
pub mod mark;
mod operation;

pub use entry::AuditEntry;
pub(crate) use entry::{LEFT_ALONE, OUTCOME_UNKNOWN, PARTIAL, RECONCILE};
pub use mark::Mark;
pub(crate) use mark::{Begin, EndState, OperationEnd};
pub(crate) use operation::{Operation, OperationState, Operations};
