//! Slots that are being moved to another node.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck};
use crate::domain::doctor::facts::{DeploymentFacts, NodeFacts};
use crate::domain::doctor::judgement::{CheckJudgement, of_each_node};
use crate::domain::doctor::refusal::FactResult;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "migrating-slots",
    group: CheckGroup::Cluster,
    title: "slots that are being moved to another node",
    reads: "CLUSTER NODES",
    rule: "A warning if a slot is in state migrating or importing.",
    source: "https://redis.io/docs/latest/commands/cluster-setslot/",
    consequence: "Calls with several Redis keys of such a slot get TRYAGAIN until the move ends. An \
                  interrupted move keeps this state.",
    remedy: "If nobody moves slots now, end it with redis-cli --cluster fix.",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    if !facts.is_cluster {
        return Vec::new();
    }
    of_each_node(facts, judge_node)
}

fn judge_node(node: &NodeFacts) -> FactResult<CheckJudgement> {
    let line = match &node.cluster_line {
        Some(line) => line.clone()?,
        None => String::new(),
    };
    let mut moving = Vec::new();
    for word in line.split(' ') {
        // `[77->-ID]` is a slot that leaves the node, `[77-<-ID]` one that arrives.
        let Some(inner) = word.strip_prefix('[') else { continue };
        if let Some((slot, _)) = inner.split_once("->-") {
            moving.push(format!("slot {slot} leaves"));
        } else if let Some((slot, _)) = inner.split_once("-<-") {
            moving.push(format!("slot {slot} arrives"));
        }
    }
    if moving.is_empty() {
        return Ok(CheckJudgement::ok("no slot is being moved"));
    }
    Ok(CheckJudgement::warning(moving.join(", ")))
}
