//! The history of changes: the operations of the audit log, and the lines of their details.

pub mod entry;
pub mod mark;
mod operation;
mod totals;

pub use entry::AuditEntry;
pub(crate) use entry::{
    EXPIRED, EXTENDED, LEFT_ALONE, OUTCOME_UNKNOWN, PARTIAL, RECONCILE, gives_expiry,
};
pub(crate) use mark::{Begin, OperationEnd};
pub use mark::{Mark, OperationState};
pub(crate) use operation::{Operation, Operations};
pub use totals::Totals;
