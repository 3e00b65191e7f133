//! The audit log: a line for each change, written and read.

pub(crate) mod reader;
pub mod writer;
