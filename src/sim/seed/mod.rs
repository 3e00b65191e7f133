//! Believable records for a throw-away server: of every schema, in mixed states, healthy and sick.

mod distribution;
mod entries;
mod operation;
mod situation;

pub use entries::entries;
