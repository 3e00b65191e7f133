//! The stories, one a file, in the order they are told.

mod client_hangs_up;
mod clock_of_ttl;
mod cluster_slots;
mod concurrent_duplicates;
mod crash_before_complete;
mod crash_between_steps;
mod evicted_lock;
mod failover_loses_lock;
mod failure_deletes_result;
mod first_then_retry;
mod foreign_value;
mod handler_fails;
mod lock_without_expiry;
mod order;
mod payload_mismatch;
mod result_not_stored;
mod script_flush;
mod store_down;
mod zombie_completes;
mod zombie_overwrites;
mod zombie_releases;

pub use order::ALL;
