//! Whether the server accepts writes now.

use super::eviction_policy::{maxmemory, policy};
use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::{DeploymentFacts, NodeFacts};
use crate::domain::doctor::judgement::{CheckJudgement, of_each_node};
use crate::domain::doctor::refusal::{FactResult, RefusedFact};

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "writes",
    group: CheckGroup::Server,
    needs: SampleNeed::Nothing,
    title: "whether the server accepts writes now",
    consequence: "Requests fail, or are executed without a lock. A worker that had its effect cannot \
                  store its response.",
    remedy: "READONLY: use the master. NOREPLICAS: start the replicas. MISCONF: make room on the \
             disk, and look at the server's log. OOM: raise maxmemory, or move other data away. \
             CLUSTERDOWN: start the nodes that are down.",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    of_each_node(facts, judge_node)
}

fn judge_node(node: &NodeFacts) -> FactResult<CheckJudgement> {
    let mut reasons = Vec::new();
    if node.info("role")? == "slave" && node.info("slave_read_only")? == "1" {
        reasons.push("READONLY (a replica)".to_owned());
    }
    // INFO has this field only if a number of replicas is required.
    if let Ok(good) = node.number("min_slaves_good_slaves") {
        let least = node.config("min-replicas-to-write")?;
        if least.parse().is_ok_and(|least: u64| good < least) {
            reasons.push(format!("NOREPLICAS ({good} of {least} replicas)"));
        }
    }
    let has_failed = node.info("rdb_last_bgsave_status")? != "ok";
    if has_failed
        && !node.config("save")?.trim().is_empty()
        && node.config("stop-writes-on-bgsave-error")? != "no"
    {
        reasons.push("MISCONF (the snapshot failed)".to_owned());
    }
    if node.info("aof_last_write_status")? != "ok" {
        reasons.push("MISCONF (AOF write failed)".to_owned());
    }
    if let Some(info) = &node.cluster_info
        && info.clone()?.field("cluster_state")? != "ok"
    {
        reasons.push("CLUSTERDOWN".to_owned());
    }
    let limit = maxmemory(node)?;
    let uncounted = node.number("mem_not_counted_for_evict").unwrap_or(0);
    if limit > 0 && node.number("used_memory")?.saturating_sub(uncounted) > limit {
        if policy(node)? == "noeviction" {
            reasons.push("OOM (memory above maxmemory)".to_owned());
        } else if reasons.is_empty() {
            return Err(RefusedFact::unknown(
                "INFO",
                "memory is above maxmemory, and keys may be evicted or not",
                "Run doctor again.",
            ));
        }
    }
    if reasons.is_empty() {
        return Ok(CheckJudgement::ok(
            "nothing makes the server refuse writes (READONLY, NOREPLICAS, MISCONF, OOM)",
        ));
    }
    Ok(CheckJudgement::error(format!("it refuses writes: {}", reasons.join(", "))))
}
