//! What purge and sweep share: records are selected by a rule, counted, rechecked right before the change, changed as
//! long as they are what was seen, and accounted for.

mod ahead;
mod bulk_run;
mod flow;
mod narrowing;
mod place;
mod recheck;
mod removal;
mod rule;
mod selected;

pub use self::bulk_run::{BulkOptions, BulkRun};
pub use self::narrowing::Narrowing;
pub use self::rule::{BulkRule, Planned, PlannedAction, Scope};
