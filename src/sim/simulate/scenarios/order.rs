//! The order in which scenarios are reported: everyday events first, scenarios that need their own
//! server last.

use super::{crashes, late_workers, redis_faults, requests};
use crate::sim::simulate::Scenario;

/// All scenarios, in this order.
pub const ALL: [Scenario; 21] = [
    requests::FIRST_THEN_RETRY,
    requests::CONCURRENT_DUPLICATES,
    crashes::CRASH_BEFORE_COMPLETE,
    late_workers::ZOMBIE_COMPLETES,
    late_workers::ZOMBIE_OVERWRITES,
    late_workers::ZOMBIE_AFTER_RENEWAL,
    late_workers::ZOMBIE_RELEASES,
    late_workers::FAILURE_DELETES_RESULT,
    requests::HANDLER_FAILS,
    crashes::RESULT_NOT_STORED,
    crashes::CRASH_BETWEEN_STEPS,
    crashes::LOCK_WITHOUT_EXPIRY,
    requests::CLIENT_HANGS_UP,
    requests::PAYLOAD_MISMATCH,
    redis_faults::STORE_DOWN,
    redis_faults::SCRIPT_FLUSH,
    late_workers::FOREIGN_VALUE,
    late_workers::CLOCK_OF_TTL,
    redis_faults::CLUSTER_SLOTS,
    redis_faults::EVICTED_LOCK,
    redis_faults::FAILOVER_LOSES_LOCK,
];
