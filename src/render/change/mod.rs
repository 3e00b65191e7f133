//! The results of changes: as tables, as rows, as JSON.

mod bulk_json;
mod found;
pub mod restored;
mod step_json;

pub use self::bulk_json::{purge, sample, sweep};
pub use self::found::{named, orphans, records};
pub use self::step_json::{StepOutcome, StepReport};
