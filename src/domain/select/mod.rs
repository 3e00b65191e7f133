//! Selects records by pattern, state and age; reports which records were left out, and why.

pub(crate) mod awaited;
pub(crate) mod contradiction;
pub mod coverage;
pub mod glob;
pub(crate) mod named_keys;
pub(crate) mod rate;
pub(crate) mod reservoir;
pub(crate) mod selection;
pub(crate) mod status_class;
pub(crate) mod tally;
pub(crate) mod top_n;
pub(crate) mod unproven;

pub(crate) use coverage::Coverage;
pub(crate) use rate::Rate;
pub(crate) use reservoir::Reservoir;
pub(crate) use selection::{Selected, Selection};
pub(crate) use tally::Tally;
pub(crate) use unproven::Missing;
