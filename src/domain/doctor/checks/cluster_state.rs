//! Whether every slot of the cluster is served.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::{DeploymentFacts, NodeFacts};
use crate::domain::doctor::judgement::{CheckJudgement, of_each_node};
use crate::domain::doctor::refusal::FactResult;
use crate::domain::hash_slot::SLOTS;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "cluster-state",
    group: CheckGroup::Cluster,
    needs: SampleNeed::Nothing,
    title: "whether every slot of the cluster is served, and stays where it is",
    consequence: "Requests whose keys are in these slots fail, or are executed without a lock.",
    remedy: "Start the nodes that are down, and assign the slots that no node serves \
             (redis-cli --cluster check).",
    judge,
};

/// What happens although the cluster assigns and serves every slot.
const REFUSES: &str = "The server refuses requests with CLUSTERDOWN, so they fail, or are executed \
    without a lock.";

/// What to do about it. A node that joins or starts reports this state for a few seconds.
const ASK_AGAIN: &str = "Run doctor again after a few seconds, because a server that is starting \
    reports this, too. If it stays, look which servers see each other (redis-cli --cluster check).";

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    if !facts.is_cluster {
        return Vec::new();
    }
    of_each_node(facts, judge_node)
}

fn judge_node(node: &NodeFacts) -> FactResult<CheckJudgement> {
    let Some(info) = &node.cluster_info else {
        return Ok(CheckJudgement::ok("not a cluster node"));
    };
    let info = info.clone()?;
    let state = info.field("cluster_state")?;
    let assigned = info.field("cluster_slots_assigned")?;
    let failed = info.field("cluster_slots_fail")?;
    if state == "ok" && assigned == SLOTS.to_string() && failed == "0" {
        return moving(node);
    }
    let fact = format!(
        "cluster_state is {state}, {assigned} of {SLOTS} slots are assigned, {failed} have failed"
    );
    let found = CheckJudgement::error(fact);
    if assigned == SLOTS.to_string() && failed == "0" {
        return Ok(found.with_consequence(REFUSES).with_remedy(ASK_AGAIN));
    }
    Ok(found)
}

/// The slots that are being moved, in the node's own line of CLUSTER NODES.
fn moving(node: &NodeFacts) -> FactResult<CheckJudgement> {
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
        return Ok(CheckJudgement::ok(format!("the cluster serves all {SLOTS} slots")));
    }
    Ok(CheckJudgement::warning(moving.join(", "))
        .with_consequence(
            "Calls with several Redis keys of such a slot get TRYAGAIN until the move ends. An \
             interrupted move keeps this state.",
        )
        .with_remedy("If nobody moves slots now, end it with redis-cli --cluster fix."))
}
