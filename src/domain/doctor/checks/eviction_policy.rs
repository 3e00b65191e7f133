//! Whether Redis may delete locks and results to free memory.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::{DeploymentFacts, NodeFacts};
use crate::domain::doctor::judgement::{CheckJudgement, ModelledFault, of_each_node};
use crate::domain::doctor::refusal::FactResult;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "eviction-policy",
    group: CheckGroup::Server,
    needs: SampleNeed::Schemas,
    title: "whether Redis may delete locks and results to free memory",
    consequence: "Redis deletes a lock while its worker runs, or a result before the retry comes. \
                  The next request with the key executes again.",
    remedy: "Move these keys to a server of their own with maxmemory-policy noeviction. Or set it here: \
             `CONFIG SET maxmemory-policy noeviction`, and in redis.conf. Then Redis refuses all writes \
             when its memory is full, so make sure first that it does not fill.",
    judge,
};

/// The part of maxmemory in use, in percent, from which noeviction would soon refuse writes. The
/// advice is then to make room first.
const FULL: u128 = 70;

/// What to do while the memory is almost full.
const MAKE_ROOM: &str = "Do not set noeviction now: Redis would refuse the writes of all clients as \
    soon as its memory is full. Move these keys to a server of their own with maxmemory-policy \
    noeviction. Or make room first: raise maxmemory, or move other data away.";

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    of_each_node(facts, judge_node)
}

fn judge_node(node: &NodeFacts) -> FactResult<CheckJudgement> {
    let policy = policy(node)?;
    if policy == "noeviction" {
        return Ok(CheckJudgement::ok("maxmemory-policy is noeviction"));
    }
    if maxmemory(node)? == 0 {
        return Ok(CheckJudgement::note(format!(
            "maxmemory-policy is {policy}, but maxmemory is 0, so nothing is evicted now"
        ))
        .with_consequence("As soon as maxmemory is set, Redis deletes locks and results."));
    }
    let found = CheckJudgement::error(format!("maxmemory-policy is {policy}"))
        .with_fault(ModelledFault::Eviction);
    // Whether there is room has to be known.
    let used = node.number("used_memory").map_or(u128::MAX, u128::from);
    let is_full = used.saturating_mul(100) >= u128::from(maxmemory(node)?) * FULL;
    Ok(if is_full { found.with_remedy(MAKE_ROOM) } else { found })
}

/// The eviction policy. Some managed services leave it out of INFO, or empty.
pub(in crate::domain::doctor) fn policy(node: &NodeFacts) -> FactResult<&str> {
    match node.info("maxmemory_policy") {
        Ok(policy) => Ok(policy),
        Err(_) => node.config("maxmemory-policy"),
    }
}

/// The memory limit in bytes; 0 for none.
pub(in crate::domain::doctor) fn maxmemory(node: &NodeFacts) -> FactResult<u64> {
    if let Ok(bytes) = node.number("maxmemory") {
        return Ok(bytes);
    }
    let text = node.config("maxmemory")?;
    text.parse().map_err(|_| crate::domain::doctor::refusal::missing("CONFIG GET", "maxmemory"))
}

/// True if the server certainly deletes keys when its memory is full.
pub(super) fn evicts(node: &NodeFacts) -> bool {
    policy(node).is_ok_and(|policy| policy != "noeviction")
}
