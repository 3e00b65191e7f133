//! Each Lua script alone, on a real server: every reply, and the values nobody expects. A module a script, or one for several
//! that answer alike.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says so by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod bench;
mod change_many_if_same;
mod change_other_types;
mod complete;
mod complete_processing;
mod expire_at;
mod headers;
mod idempotency;
mod mark_completed_and_unlock;
mod protocols;
mod read_records;
mod reference;
mod reference_begin;
mod reference_complete;
mod reference_model;
mod reference_owner;
mod reference_renew;
mod restore_many_if_absent;
mod schema_calls;
mod sent;
mod set_completed;
mod take_lock;
mod vector_runners;
mod vectors;
