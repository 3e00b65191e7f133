//! Whether the last writes to disk succeeded.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck};
use crate::domain::doctor::facts::{DeploymentFacts, NodeFacts};
use crate::domain::doctor::judgement::{CheckJudgement, of_each_node};
use crate::domain::doctor::refusal::FactResult;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "persistence-status",
    group: CheckGroup::Server,
    title: "whether the last writes to disk succeeded",
    reads: "INFO persistence (rdb_last_bgsave_status, aof_last_write_status, \
            aof_last_bgrewrite_status)",
    rule: "An error if one of them is not ok.",
    source: "https://redis.io/docs/latest/commands/info/",
    consequence: "By default (stop-writes-on-bgsave-error), Redis refuses writes with MISCONF: \
                  begin fails, and a worker that had its effect cannot store its response.",
    remedy: "Look for the reason in the server's log. Usually the disk is full, or the folder is \
             not writable.",
    judge,
};

const STATUSES: [&str; 3] =
    ["rdb_last_bgsave_status", "aof_last_write_status", "aof_last_bgrewrite_status"];

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    of_each_node(facts, judge_node)
}

fn judge_node(node: &NodeFacts) -> FactResult<CheckJudgement> {
    let mut failed = Vec::new();
    for status in STATUSES {
        let value = node.info(status)?;
        if value != "ok" {
            failed.push(format!("{status} is {value}"));
        }
    }
    if failed.is_empty() {
        return Ok(CheckJudgement::ok("no snapshot and no AOF write has failed"));
    }
    Ok(CheckJudgement::error(failed.join(", ")))
}
