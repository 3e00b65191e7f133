//! Whether a failover can lose acknowledged writes.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::{DeploymentFacts, NodeFacts};
use crate::domain::doctor::judgement::{CheckJudgement, ModelledFault, of_each_node};
use crate::domain::doctor::refusal::{FactResult, RefusedFact};

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "failover-loss",
    group: CheckGroup::Server,
    needs: SampleNeed::Schemas,
    title: "whether a failover can lose acknowledged locks and results",
    consequence: "The replica that takes over may lack the last locks and results, although their \
                  writers got OK. The next request with such a key executes again.",
    remedy: "Set min-replicas-to-write 1 in redis.conf, which bounds the time in which an isolated master accepts \
             writes. With a single replica, the master then refuses writes while that replica is \
             away, so add a second one first. Let the service send WAIT 1 after it has taken the lock, and let the system that has the \
             effect reject a second one with the same key.",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    of_each_node(facts, judge_node)
}

fn judge_node(node: &NodeFacts) -> FactResult<CheckJudgement> {
    if node.info("role")? == "slave" {
        return Err(RefusedFact::unknown(
            "INFO replication",
            "the server is a replica, and only the settings of its master count",
            "Run doctor on the master.",
        ));
    }
    if node.replicas()? == 0 {
        return Ok(CheckJudgement::ok("no replica can take over, so no failover loses writes"));
    }
    let least = node.config("min-replicas-to-write")?;
    if least == "0" {
        return Ok(CheckJudgement::warning("min-replicas-to-write is 0")
            .with_fault(ModelledFault::LostWrites));
    }
    let lag = node.config("min-replicas-max-lag")?;
    if lag == "0" {
        return Ok(CheckJudgement::warning(
            "min-replicas-max-lag is 0, so min-replicas-to-write has no effect",
        )
        .with_remedy(
            "Set min-replicas-max-lag in redis.conf to a few seconds, and let the system that has the effect \
             reject a second one with the same key.",
        )
        .with_fault(ModelledFault::LostWrites));
    }
    Ok(CheckJudgement::note(format!(
        "min-replicas-to-write is {least}, min-replicas-max-lag {lag} s"
    ))
    .with_consequence(format!(
        "A failover can lose the writes that no replica has received yet, and those of up to \
             {lag} s of an isolated master."
    ))
    .with_remedy(
        "Let the service send WAIT 1 after it has taken the lock, and let the system that has the effect \
             reject a second one with the same key.",
    )
    .with_fault(ModelledFault::LostWrites))
}
