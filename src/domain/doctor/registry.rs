//! All checks, in the order of the page.

use super::checks::{
    capacity, clock_local, cluster_state, commands, endless_locks, eviction_policy, evictions,
    failover_loss, guessable_keys, hold_times, keys_in_slots, memory_headroom, observed_ttls,
    persistence, quoted_keys, renewed_locks, replication, retry_window, schema_violations,
    sentinel_down_after, sentinels, service_rights, user_rights, writes,
};
use super::doctor_check::DoctorCheck;
use super::facts::DeploymentFacts;
use super::statement::Statement;

/// Every check.
pub(crate) static CHECKS: [DoctorCheck; 24] = [
    writes::CHECK,
    eviction_policy::CHECK,
    memory_headroom::CHECK,
    evictions::CHECK,
    persistence::CHECK,
    replication::CHECK,
    failover_loss::CHECK,
    clock_local::CHECK,
    commands::CHECK,
    user_rights::CHECK,
    service_rights::CHECK,
    cluster_state::CHECK,
    sentinels::CHECK,
    sentinel_down_after::CHECK,
    endless_locks::CHECK,
    observed_ttls::CHECK,
    retry_window::CHECK,
    hold_times::CHECK,
    renewed_locks::CHECK,
    capacity::CHECK,
    keys_in_slots::CHECK,
    schema_violations::CHECK,
    guessable_keys::CHECK,
    quoted_keys::CHECK,
];

/// What the chosen checks say of these facts.
pub(crate) fn judge(
    facts: &DeploymentFacts,
    is_chosen: impl Fn(&DoctorCheck) -> bool,
) -> Vec<Statement> {
    let mut statements = Vec::new();
    for check in &CHECKS {
        if !is_chosen(check) {
            continue;
        }
        for judgement in (check.judge)(facts) {
            statements.push(Statement::new(check, judgement));
        }
    }
    statements
}

/// True if one of the chosen checks judges what `explore` finds in the schemas.
pub(crate) fn explores_schemas(is_chosen: impl Fn(&DoctorCheck) -> bool) -> bool {
    is_chosen(&schema_violations::CHECK)
}
