//! The audit log: a line for each change, written and read.

pub(crate) mod append;
pub(crate) mod log;
