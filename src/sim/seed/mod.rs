//! Realistic records for a temporary local Redis: records of every schema, in various states, with
//! and without findings.

mod entries;
mod situation;

pub use entries::entries;
