//! Whether Redis has evicted keys since it started.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::{DeploymentFacts, NodeFacts};
use crate::domain::doctor::judgement::{CheckJudgement, of_each_node};
use crate::domain::doctor::refusal::FactResult;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "evictions",
    group: CheckGroup::Server,
    needs: SampleNeed::Nothing,
    title: "keys that Redis has evicted since it started",
    consequence: "Locks and results may be among them. Redis does not record which keys it evicted.",
    remedy: "Move these keys to a server of their own with maxmemory-policy noeviction. Do not set it \
             here before there is room: a full server would refuse all writes. Look for operations \
             that were executed twice.",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    of_each_node(facts, judge_node)
}

fn judge_node(node: &NodeFacts) -> FactResult<CheckJudgement> {
    Ok(match node.number("evicted_keys")? {
        0 => CheckJudgement::ok("no key was evicted since the server started"),
        1 => CheckJudgement::warning("1 key was evicted since the server started"),
        evicted => {
            CheckJudgement::warning(format!("{evicted} keys were evicted since the server started"))
        }
    })
}
