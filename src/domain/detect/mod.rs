//! Identifies the services of an unknown Redis: groups sampled keys by name, and matches each group
//! against every schema.

mod detection;
mod evidence_of;
pub(crate) mod fitting;
mod group;
mod pattern;
mod placing;
mod schema_match;
mod token;

pub use detection::detect;
pub(crate) use group::{Confidence, Guess, KeyGroup};
pub(crate) use pattern::{boundaries, is_separator};
pub use placing::SchemaSet;
