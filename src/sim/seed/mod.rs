//! Believable records for a temporary local server: of every schema, in mixed states, healthy and sick.

mod entries;
mod situation;

pub use entries::entries;
