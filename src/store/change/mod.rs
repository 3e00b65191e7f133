//! Changing records: compared and changed atomically, in batches; a step of a service between WATCH and EXEC; putting back.

pub(crate) mod apply;
pub(crate) mod batch;
#[expect(clippy::module_inception, reason = "the file has the type that the room is about")]
mod change;
pub(crate) mod guarded_step;
pub(crate) mod restore;
pub(crate) mod send;
pub(crate) mod writer;

pub use change::{Action, Change, Outcome};
pub use writer::Writer;
