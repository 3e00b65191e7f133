//! Whether Redis has evicted keys since it started.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck};
use crate::domain::doctor::facts::{DeploymentFacts, NodeFacts, ObservedRun};
use crate::domain::doctor::judgement::{CheckJudgement, CheckSeverity, of_each_node};
use crate::domain::doctor::refusal::FactResult;
use crate::domain::duration;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "evictions",
    group: CheckGroup::Server,
    title: "keys that Redis has evicted since it started",
    reads: "INFO stats (evicted_keys), with --observe also at the end",
    rule: "A warning if evicted_keys is more than 0; an error if it grew during --observe.",
    source: "https://redis.io/docs/latest/commands/info/",
    consequence: "Locks and results may be among them. Redis does not record which keys it evicted.",
    remedy: "Move these keys to a server of their own with maxmemory-policy noeviction. Do not set it \
             here before there is room: a full server would refuse all writes. Look for operations \
             that were executed twice.",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    let mut judgements = Vec::new();
    match facts.observed() {
        Some(Ok(run)) => {
            for judgement in of_each_node(facts, |node| judge_run(node, run)) {
                if judgement.severity != CheckSeverity::Ok {
                    judgements.push(judgement);
                }
            }
        }
        Some(Err(refusal)) => judgements.push(CheckJudgement::unknown(refusal)),
        None => {}
    }
    judgements.extend(of_each_node(facts, |node| judge_node(node, facts)));
    judgements
}

/// The keys that were evicted during the run.
fn judge_run(node: &NodeFacts, run: &ObservedRun) -> FactResult<CheckJudgement> {
    let before = node.number("evicted_keys")?;
    let evicted = node.number_after(run, "evicted_keys")?.saturating_sub(before);
    let lasted = duration::short(run.lasted_ms);
    Ok(match evicted {
        0 => CheckJudgement::ok(format!("no key was evicted during this run ({lasted})")),
        1 => CheckJudgement::error(format!("1 key was evicted during this run ({lasted})")),
        _ => {
            CheckJudgement::error(format!("{evicted} keys were evicted during this run ({lasted})"))
        }
    })
}

fn judge_node(node: &NodeFacts, facts: &DeploymentFacts) -> FactResult<CheckJudgement> {
    let evicted = match facts.observed() {
        Some(Ok(run)) => node.number_after(run, "evicted_keys")?,
        _ => node.number("evicted_keys")?,
    };
    Ok(match evicted {
        0 => CheckJudgement::ok("no key was evicted since the server started"),
        1 => CheckJudgement::warning("1 key was evicted since the server started"),
        _ => {
            CheckJudgement::warning(format!("{evicted} keys were evicted since the server started"))
        }
    })
}
