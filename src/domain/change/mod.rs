//! The basis and the outcome of a change: which locks are orphans, what the operator expected, and
//! how the change ended.

pub mod expect;
pub(crate) mod extension;
pub mod orphan;
pub mod outcome_counts;
pub mod provenance;
pub(crate) mod purgeable;
pub(crate) mod removal;
pub mod unlock;
