//! The audit log: one line per change.

pub(crate) mod append;
pub(crate) mod log;
