//! The rules of idempotency records, without any I/O: key templates, schemas, decoding, diagnosis,
//! and the prediction for the next request.

pub(crate) mod accepted_report;
pub(crate) mod as_str;
pub(crate) mod change;
pub mod command_row;
pub(crate) mod covered;
pub(crate) mod decimal;
pub(crate) mod detect;
pub mod diagnosis;
pub(crate) mod doctor;
pub(crate) mod draft;
pub(crate) mod duplicates;
pub mod duration;
pub mod exchange;
pub mod exploration;
pub mod hash_slot;
pub(crate) mod hex;
pub(crate) mod history;
pub(crate) mod manual_step;
pub(crate) mod probe;
pub(crate) mod race;
pub(crate) mod reconcile;
pub mod record;
pub mod removed;
pub(crate) mod rfc3339;
#[cfg(test)]
pub(crate) mod samples;
pub mod schema;
pub(crate) mod secret;
pub mod select;
pub(crate) mod self_check;
pub(crate) mod simulation;
pub(crate) mod snapshot;
pub(crate) mod stats;
pub mod step;
pub(crate) mod ticks;
