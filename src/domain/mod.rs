//! What idemctl knows about idempotency records, without any I/O: key templates, schemas, decoding,
//! diagnosis, and what the next request gets.

pub(crate) mod as_str;
pub mod change;
pub mod diagnosis;
pub mod duration;
pub mod hash_slot;
pub mod manual;
pub mod race;
pub mod record;
#[cfg(test)]
pub(crate) mod samples;
pub mod schema;
pub mod secret;
pub mod select;
pub mod simulation;
pub(crate) mod stats;
pub mod step;
