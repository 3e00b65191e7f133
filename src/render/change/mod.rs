//! The results of changes: as tables, as rows, as JSON.

mod bulk_json;
mod found;
pub mod restored;
mod step_json;

pub use self::bulk_json::{purge_report, sample_record, sweep_report};
pub use self::found::{named_key_table, orphan_table, record_table};
pub use self::step_json::{StepOutcome, StepReport};
