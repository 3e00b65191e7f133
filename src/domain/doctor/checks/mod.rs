//! The checks, one per file.

pub(super) mod clock_local;
pub(super) mod clock_nodes;
pub(super) mod cluster_state;
pub(super) mod commands;
pub(super) mod endless_locks;
pub(super) mod eviction_policy;
pub(super) mod evictions;
pub(super) mod failover_loss;
pub(super) mod keys_in_slots;
pub(super) mod memory_headroom;
pub(super) mod migrating_slots;
pub(super) mod mixed_releases;
pub(super) mod observed_ttls;
pub(super) mod persistence;
pub(super) mod persistence_status;
pub(super) mod replication;
pub(super) mod schema_violations;
pub(super) mod sentinel_down_after;
pub(super) mod sentinels;
pub(super) mod server_version;
pub(super) mod service_rights;
pub(super) mod user_rights;
