//! The basis and the outcome of a change: which locks are orphans, what the operator expected, and
//! how the change ended.

pub mod account;
pub mod expect;
pub(crate) mod extension;
pub mod orphan;
pub mod provenance;
pub mod unlock;
