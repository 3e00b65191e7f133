//! What a change goes by: which locks are orphans, what was expected, what became of it.

pub mod expect;
pub(crate) mod extension;
pub mod orphan;
pub mod outcome;
pub mod provenance;
pub mod unlock;
