//! The audit folder: the log with two lines per operation, the details of each operation, and the
//! expiries that operators gave to locks.

pub(crate) mod append;
pub(crate) mod expiries;
pub(crate) mod log;
