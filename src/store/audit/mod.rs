//! The audit log: a line for each change, written and read.

pub(crate) mod entry;
pub(crate) mod log;
