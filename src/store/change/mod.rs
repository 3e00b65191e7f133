//! Changes records: atomic compare-and-change in batches, a service's step between WATCH and EXEC,
//! restoring and reverting.

pub(crate) mod apply;
pub(crate) mod batch;
mod change;
pub(crate) mod guarded_step;
mod identity_commands;
pub(crate) mod restore;
pub(crate) mod revert;
mod scriptless;
pub(crate) mod send;
mod set_words;
mod transaction;
pub(crate) mod writer;

pub use change::{Change, KeyAction, Outcome};
pub use revert::PriorValue;
pub(crate) use set_words::set_words;
pub use writer::Writer;
