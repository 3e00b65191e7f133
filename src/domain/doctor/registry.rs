//! All checks, in the order of the page.

use super::checks::{
    capacity, card_numbers, clock_local, clock_nodes, cluster_state, commands, endless_locks,
    eviction_policy, evictions, failover_loss, guessable_keys, hold_times, keys_in_slots,
    memory_headroom, migrating_slots, mixed_releases, observed_ttls, persistence,
    persistence_status, personal_data, quoted_keys, renewed_locks, replication, retry_window,
    schema_violations, sentinel_down_after, sentinels, server_version, service_rights, shared_keys,
    stored_secrets, tenant_in_keys, user_rights, writes,
};
use super::doctor_check::DoctorCheck;
use super::facts::DeploymentFacts;
use super::statement::Statement;

/// Every check.
pub(crate) static CHECKS: [DoctorCheck; 34] = [
    writes::CHECK,
    server_version::CHECK,
    eviction_policy::CHECK,
    memory_headroom::CHECK,
    evictions::CHECK,
    persistence::CHECK,
    persistence_status::CHECK,
    replication::CHECK,
    failover_loss::CHECK,
    clock_local::CHECK,
    clock_nodes::CHECK,
    commands::CHECK,
    user_rights::CHECK,
    service_rights::CHECK,
    keys_in_slots::CHECK,
    migrating_slots::CHECK,
    cluster_state::CHECK,
    sentinels::CHECK,
    sentinel_down_after::CHECK,
    endless_locks::CHECK,
    observed_ttls::CHECK,
    retry_window::CHECK,
    hold_times::CHECK,
    renewed_locks::CHECK,
    capacity::CHECK,
    schema_violations::CHECK,
    mixed_releases::CHECK,
    card_numbers::CHECK,
    stored_secrets::CHECK,
    personal_data::CHECK,
    tenant_in_keys::CHECK,
    guessable_keys::CHECK,
    shared_keys::CHECK,
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
