//! The order in which the stories are told: what always happens first, what needs a server of its own last.

use super::{
    client_hangs_up, clock_of_ttl, cluster_slots, concurrent_duplicates, crash_before_complete, crash_between_steps,
    evicted_lock, failover_loses_lock, failure_deletes_result, first_then_retry, foreign_value, handler_fails,
    lock_without_expiry, payload_mismatch, result_not_stored, script_flush, store_down, zombie_completes,
    zombie_overwrites, zombie_releases,
};
use crate::sim::simulate::Scenario;

pub const ALL: [Scenario; 20] = [
    first_then_retry::SCENARIO,
    concurrent_duplicates::SCENARIO,
    crash_before_complete::SCENARIO,
    zombie_completes::SCENARIO,
    zombie_overwrites::SCENARIO,
    zombie_releases::SCENARIO,
    failure_deletes_result::SCENARIO,
    handler_fails::SCENARIO,
    result_not_stored::SCENARIO,
    crash_between_steps::SCENARIO,
    lock_without_expiry::SCENARIO,
    client_hangs_up::SCENARIO,
    payload_mismatch::SCENARIO,
    store_down::SCENARIO,
    script_flush::SCENARIO,
    foreign_value::SCENARIO,
    clock_of_ttl::SCENARIO,
    cluster_slots::SCENARIO,
    evicted_lock::SCENARIO,
    failover_loses_lock::SCENARIO,
];
