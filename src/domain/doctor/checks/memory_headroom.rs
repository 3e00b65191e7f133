//! How much memory is left before Redis evicts keys or refuses writes.

use super::eviction_policy::{evicts, maxmemory};
use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::{DeploymentFacts, NodeFacts};
use crate::domain::doctor::judgement::{CheckJudgement, of_each_node};
use crate::domain::doctor::refusal::FactResult;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "memory-headroom",
    group: CheckGroup::Server,
    needs: SampleNeed::Nothing,
    title: "memory in use, against maxmemory",
    consequence: "When memory is full, Redis evicts keys, or refuses SET and scripts with OOM. A \
                  worker that had its effect then cannot store its response.",
    remedy: "Raise maxmemory, shorten the result TTL, store smaller responses, or move other data to \
             another server.",
    judge,
};

/// What can happen without maxmemory.
pub(super) const WITHOUT_LIMIT: &str = "If the host runs out of memory, the system may kill Redis. \
    Locks and results that are not on disk are lost.";

/// What to do without maxmemory.
pub(super) const SET_LIMIT: &str = "Set a limit: first `CONFIG SET maxmemory-policy noeviction`, \
    because Redis evicts locks with another policy, then `CONFIG SET maxmemory BYTES`, and both in \
    redis.conf. Choose it well above the memory in use, because Redis refuses writes at that limit. \
    Choose it well below the memory of the host, because a snapshot needs memory as well.";

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    of_each_node(facts, judge_node)
}

fn judge_node(node: &NodeFacts) -> FactResult<CheckJudgement> {
    let limit = maxmemory(node)?;
    if limit == 0 {
        return Ok(CheckJudgement::note("maxmemory is 0, so Redis has no memory limit")
            .with_consequence(WITHOUT_LIMIT)
            .with_remedy(SET_LIMIT));
    }
    let used = node.number("used_memory")?;
    let percent = u128::from(used) * 100 / u128::from(limit);
    // Exact numbers would differ from node to node, and in every run.
    let fact = format!("memory in use is {percent} % of maxmemory ({})", shown(limit));
    Ok(match percent {
        0..90 => CheckJudgement::ok(fact),
        90..100 => CheckJudgement::warning(fact).with_consequence(when_full(node)),
        _ => CheckJudgement::error(fact).with_consequence(when_full(node)),
    })
}

/// What happens when the memory of this server is full.
pub(super) fn when_full(node: &NodeFacts) -> &'static str {
    if evicts(node) {
        "When memory is full, Redis evicts keys: a lock while its worker runs, or a result before the \
         retry comes. The next request with the key executes again."
    } else {
        CHECK.consequence
    }
}

/// A limit of memory in the largest unit in which it is not less than 1.
pub(in crate::domain::doctor) fn shown(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    for (unit, size) in UNITS {
        if bytes >= size {
            let tenths = u128::from(bytes) * 10 / u128::from(size);
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    format!("{bytes} B")
}
