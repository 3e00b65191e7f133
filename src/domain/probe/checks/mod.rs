//! The checks, one file per group, and what their judgements share.

pub(super) mod concurrency;
pub(super) mod failures;
pub(super) mod faults;
pub(super) mod header;
mod judging;
pub(super) mod mismatch;
pub(super) mod replay;
pub(super) mod stored_record;
