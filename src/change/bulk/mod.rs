//! What `purge`, `apply` and `sweep` share. A run scans, rechecks, backs up, compares and changes, and
//! counts the outcome of each record: `ChangeLoop::change_batches` in `bulk_run.rs` does these in
//! order, for one batch after the other.
//!
//! A command brings a [`BulkRule`], which says which records are meant and what is planned for each
//! of them.

mod bulk_run;
mod change_batch;
mod read_ahead;
mod recheck;
mod rule;
mod selected_counts;
mod source;

pub use self::bulk_run::{BulkOptions, BulkRun};
pub use self::rule::{
    BulkRule, Planned, PlannedAction, Scope, check_narrow, not_selected, warn_of_refusal,
};
pub use self::source::Named;
