//! What a crash or a restart of the server loses.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::{DeploymentFacts, NodeFacts};
use crate::domain::doctor::judgement::{CheckJudgement, ModelledFault, of_each_node};
use crate::domain::doctor::refusal::{FactResult, missing};

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "persistence",
    group: CheckGroup::Server,
    needs: SampleNeed::Schemas,
    title: "what a crash or a restart of the server loses",
    consequence: "A crash of the server loses the locks and results of the last writes. The next \
                  request with such a key executes again.",
    remedy: "Do not edit redis.conf first: a restart with a new, empty AOF loses all data. On the \
             running server, `CONFIG SET appendfsync everysec` (or always, to lose nothing), then \
             `CONFIG SET appendonly yes`. Wait until INFO persistence shows aof_rewrite_in_progress:0 \
             and aof_last_bgrewrite_status:ok. Then write both settings into redis.conf.",
    judge,
};

/// What to do if the AOF is on already.
const SYNC: &str = "`CONFIG SET appendfsync everysec` (or always, to lose nothing), and the same in \
    redis.conf.";

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    of_each_node(facts, judge_node)
}

const STATUSES: [&str; 3] =
    ["rdb_last_bgsave_status", "aof_last_write_status", "aof_last_bgrewrite_status"];

fn judge_node(node: &NodeFacts) -> FactResult<CheckJudgement> {
    for status in STATUSES {
        let value = node.info(status)?;
        if value != "ok" {
            return Ok(CheckJudgement::error(format!("{status} is {value}")).with_remedy(
                "Look for the reason in the server's log. Usually the disk is full, or the folder is \
                 not writable.",
            ));
        }
    }
    if has_aof(node)? {
        return with_aof(node);
    }
    // An empty list of save points is a value of its own.
    if node.config("save")?.trim().is_empty() {
        return Ok(CheckJudgement::warning(
            "nothing is written to disk (no AOF, no RDB snapshots)",
        )
        .with_consequence(
            "A restart of the server loses all locks and results. Every retry executes again.",
        )
        .with_fault(ModelledFault::Restart));
    }
    Ok(CheckJudgement::warning("only RDB snapshots are written to disk")
        .with_consequence(
            "A crash of the server loses all locks and results that were written after the last \
             snapshot. The next request with such a key executes again.",
        )
        .with_fault(ModelledFault::LostWrites))
}

/// True if the server writes an append-only file.
fn has_aof(node: &NodeFacts) -> FactResult<bool> {
    match node.info("aof_enabled") {
        Ok(enabled) => Ok(enabled == "1"),
        Err(_) => Ok(node.config("appendonly")? == "yes"),
    }
}

fn with_aof(node: &NodeFacts) -> FactResult<CheckJudgement> {
    match node.config("appendfsync")? {
        "always" => Ok(CheckJudgement::ok("AOF is on, with appendfsync always")),
        "everysec" => Ok(CheckJudgement::note("AOF is on, with appendfsync everysec")
            .with_consequence("A crash of the machine loses the writes of about one second.")
            .with_remedy("If that is too much, set appendfsync always in redis.conf, and measure its cost first.")
            .with_fault(ModelledFault::LostWrites)),
        "no" => Ok(CheckJudgement::warning("AOF is on, with appendfsync no")
            .with_consequence(
                "A crash of the machine loses what the system has not written yet, on Linux \
                 usually up to 30 seconds.",
            )
            .with_remedy(SYNC)
            .with_fault(ModelledFault::LostWrites)),
        _ => Err(missing("CONFIG GET", "appendfsync")),
    }
}
