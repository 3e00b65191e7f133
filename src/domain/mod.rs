//! What idemctl knows about idempotency records, without any I/O: key templates, schemas, decoding,
//! diagnosis, and what the next request gets.

pub mod age;
pub mod bulk;
pub mod by_hand;
pub mod candidates;
pub mod catalog;
pub mod claim;
pub mod contradiction;
pub mod coverage;
pub mod deadline;
pub mod diagnosis;
pub mod duration;
pub mod evidence;
pub mod expectation;
pub mod glob;
pub mod health;
pub mod identity;
pub mod json;
pub mod json_head;
pub mod late_worker;
pub mod next_request;
pub mod observation;
pub mod orphan;
pub mod provenance;
pub mod race;
pub mod rate;
pub mod record;
pub mod rehearsal;
pub mod response;
#[cfg(test)]
pub(crate) mod samples;
pub mod schema;
pub mod selection;
pub mod simulation;
pub mod slot;
pub mod step;
pub mod stranger;
pub mod tally;
pub mod template;
pub mod top;
pub mod unlock;
pub mod unproven;
pub mod value;
pub mod write;
