//! Steps that an operator does in a worker's place: to which records they may be done, and what comes of them.

mod completion;
mod foretold;
mod given;
mod lost;
mod release;

pub use completion::{Completion, Leave, Refusal, hold, of_record};
pub use foretold::{completed, foretell_begin, foretell_complete, foretell_release, is_overwritten_later};
pub use given::{Given, Misfit, header};
pub use lost::{was_acquired, was_released, was_stored};
pub use release::releasable;
