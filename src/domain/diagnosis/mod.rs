//! Findings: what is wrong with a record, how that affects the next request, and what to do. One
//! file per rule.

pub(crate) mod excess_ttl;
mod finding;
mod foreign_schema;
pub(crate) mod health;
mod input;
mod leftover_lock;
mod no_expiry;
mod overdue;
mod oversized;
mod result_no_expiry;
mod rules;
mod short_lock_ttl;
mod short_result_ttl;
mod unreadable;
mod wrong_type;

pub use finding::FindingCode;
pub(crate) use finding::{Finding, Severity};
pub(crate) use input::OtherSchema;
pub use input::{OVERSIZED_BYTES, Thresholds};
pub(crate) use rules::{add_oversized, findings};
