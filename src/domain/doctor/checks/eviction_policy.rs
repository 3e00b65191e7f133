//! Whether Redis may delete locks and results to free memory.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck};
use crate::domain::doctor::facts::{DeploymentFacts, NodeFacts};
use crate::domain::doctor::judgement::{CheckJudgement, ModelledFault, of_each_node};
use crate::domain::doctor::refusal::Answer;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "eviction-policy",
    group: CheckGroup::Server,
    title: "whether Redis may delete locks and results to free memory",
    reads: "INFO memory (maxmemory, maxmemory_policy), else CONFIG GET maxmemory-policy",
    rule: "An error if maxmemory is set and maxmemory-policy is not noeviction; a note if maxmemory \
           is 0.",
    source: "https://redis.io/topics/lru-cache",
    consequence: "Redis deletes a lock while its worker runs, or a result before the retry comes. \
                  The next request with the key executes again.",
    remedy: "Set maxmemory-policy noeviction in redis.conf, and now with `CONFIG SET maxmemory-policy \
             noeviction`, or move these keys to a server of their own.",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    of_each_node(facts, judge_node)
}

fn judge_node(node: &NodeFacts) -> Answer<CheckJudgement> {
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
    Ok(CheckJudgement::error(format!("maxmemory-policy is {policy}"))
        .with_fault(ModelledFault::Eviction))
}

/// The eviction policy. Some managed services leave it out of INFO, or empty.
pub(in crate::domain::doctor) fn policy(node: &NodeFacts) -> Answer<&str> {
    match node.info("maxmemory_policy") {
        Ok(policy) => Ok(policy),
        Err(_) => node.config("maxmemory-policy"),
    }
}

/// The memory limit in bytes; 0 for none.
pub(in crate::domain::doctor) fn maxmemory(node: &NodeFacts) -> Answer<u64> {
    if let Ok(bytes) = node.number("maxmemory") {
        return Ok(bytes);
    }
    let text = node.config("maxmemory")?;
    text.parse().map_err(|_| crate::domain::doctor::refusal::missing("CONFIG GET", "maxmemory"))
}
