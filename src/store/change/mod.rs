//! Changing records: compared and changed atomically, in batches; a step of a service between WATCH and EXEC; putting back.

pub(crate) mod apply;
mod asked;
pub(crate) mod batch;
mod change;
pub(crate) mod guarded_step;
pub(crate) mod put_back;
pub(crate) mod restore;
pub(crate) mod send;
mod set_words;
pub(crate) mod writer;

pub use change::{Action, Change, Outcome};
pub use put_back::Former;
pub(crate) use set_words::set_words;
pub use writer::Writer;
