//! Choosing among records: by pattern, state and age; what was left out, and why.

pub mod contradiction;
pub mod coverage;
pub mod glob;
pub mod rate;
pub mod selection;
pub(crate) mod status_class;
pub mod tally;
pub mod top_n;
pub mod unproven;
