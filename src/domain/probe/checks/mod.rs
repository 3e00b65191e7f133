//! The steps of the checks, and what their results show, by group.

mod concurrency;
mod failures;
mod faults;
mod judging;
mod mismatch;
pub(super) mod registry;
mod replay;
mod stored_record;
