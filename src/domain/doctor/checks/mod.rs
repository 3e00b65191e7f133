//! The checks, one per file.

pub(super) mod capacity;
pub(super) mod clock_local;
pub(super) mod cluster_state;
pub(super) mod commands;
pub(super) mod endless_locks;
pub(super) mod eviction_policy;
pub(super) mod evictions;
pub(super) mod failover_loss;
pub(super) mod guessable_keys;
pub(super) mod hold_times;
pub(super) mod keys_in_slots;
pub(super) mod memory_headroom;
pub(super) mod observed_ttls;
pub(super) mod persistence;
pub(super) mod quoted_keys;
pub(super) mod renewed_locks;
pub(super) mod replication;
pub(super) mod retry_window;
pub(super) mod schema_violations;
pub(super) mod sentinel_down_after;
pub(super) mod sentinels;
pub(super) mod service_rights;
pub(super) mod user_rights;
pub(super) mod writes;
