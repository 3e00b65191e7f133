//! Whether a server accepts writes, and what it loses.

use super::memory::{maxmemory, policy};
use crate::domain::doctor::facts::{DeploymentFacts, NodeFacts};
use crate::domain::doctor::info::part_of;
use crate::domain::doctor::judgement::{CheckJudgement, ModelledFault};
use crate::domain::doctor::refusal::{FactResult, RefusedFact, missing};
use crate::domain::doctor::sent_commands;

/// The lag in seconds from which a replica does not count for min-replicas-to-write by default.
const LONGEST_LAG: u64 = 10;

/// The difference in milliseconds from which clocks count as different.
const TOLERANCE_MS: i64 = 1_000;

/// The fields of INFO that say whether the last write to disk failed.
const STATUSES: [&str; 3] =
    ["rdb_last_bgsave_status", "aof_last_write_status", "aof_last_bgrewrite_status"];

const NO_REPLICA: &str = "the server has no replica";

pub(super) fn writes(node: &NodeFacts, _: &DeploymentFacts) -> FactResult<CheckJudgement> {
    let mut reasons = Vec::new();
    if node.info("role")? == "slave" && node.info("slave_read_only")? == "1" {
        reasons.push("READONLY (a replica)".to_owned());
    }
    // INFO has this field only if a number of replicas is required.
    if let Ok(good) = node.number("min_slaves_good_slaves") {
        let least = node.config("min-replicas-to-write")?;
        if least.parse().is_ok_and(|least: u64| good < least) {
            reasons.push(format!("NOREPLICAS ({good} of {least} replicas)"));
        }
    }
    let has_failed = node.info("rdb_last_bgsave_status")? != "ok";
    if has_failed
        && !node.config("save")?.trim().is_empty()
        && node.config("stop-writes-on-bgsave-error")? != "no"
    {
        reasons.push("MISCONF (the snapshot failed)".to_owned());
    }
    if node.info("aof_last_write_status")? != "ok" {
        reasons.push("MISCONF (AOF write failed)".to_owned());
    }
    if let Some(info) = &node.cluster_info
        && info.clone()?.field("cluster_state")? != "ok"
    {
        reasons.push("CLUSTERDOWN".to_owned());
    }
    let limit = maxmemory(node)?;
    let uncounted = node.number("mem_not_counted_for_evict").unwrap_or(0);
    if limit > 0 && node.number("used_memory")?.saturating_sub(uncounted) > limit {
        if policy(node)? == "noeviction" {
            reasons.push("OOM (memory above maxmemory)".to_owned());
        } else if reasons.is_empty() {
            let why = "memory is above maxmemory, and keys may be evicted or not";
            return Err(RefusedFact::unknown("INFO", why, "Run doctor again."));
        }
    }
    if reasons.is_empty() {
        return Ok(CheckJudgement::fine());
    }
    Ok(CheckJudgement::error(format!("it refuses writes: {}", reasons.join(", "))))
}

pub(super) fn persistence(node: &NodeFacts, _: &DeploymentFacts) -> FactResult<CheckJudgement> {
    for status in STATUSES {
        let value = node.info(status)?;
        if value != "ok" {
            return Ok(CheckJudgement::error(format!("{status} is {value}")));
        }
    }
    let has_aof = match node.info("aof_enabled") {
        Ok(enabled) => enabled == "1",
        Err(_) => node.config("appendonly")? == "yes",
    };
    if has_aof {
        let appendfsync = node.config("appendfsync")?;
        let fact = format!("AOF is on, with appendfsync {appendfsync}");
        return match appendfsync {
            "always" => Ok(CheckJudgement::ok(fact)),
            "everysec" => Ok(CheckJudgement::note(fact).with_fault(ModelledFault::LostWrites)),
            "no" => Ok(CheckJudgement::warning(fact).with_fault(ModelledFault::LostWrites)),
            _ => Err(missing("CONFIG GET", "appendfsync")),
        };
    }
    // An empty list of save points is a value of its own.
    if node.config("save")?.trim().is_empty() {
        let fact = "nothing is written to disk (no AOF, no RDB snapshots)";
        return Ok(CheckJudgement::warning(fact).with_fault(ModelledFault::Restart));
    }
    Ok(CheckJudgement::warning("only RDB snapshots are written to disk")
        .with_fault(ModelledFault::LostWrites))
}

pub(super) fn replication(node: &NodeFacts, _: &DeploymentFacts) -> FactResult<CheckJudgement> {
    if node.info("role")? == "slave" {
        let is_linked = node.info("master_link_status")? == "up";
        let found = if is_linked {
            CheckJudgement::warning("the server is a replica")
        } else {
            CheckJudgement::error("the server is a replica that is cut off from its master")
        };
        return Ok(found);
    }
    let replicas = node.replicas()?;
    if replicas == 0 {
        return Ok(CheckJudgement::note(NO_REPLICA));
    }
    let mut behind = Vec::new();
    let mut told = 0;
    for replica in node.info.iter().flat_map(|info| info.numbered("slave")) {
        let lag = part_of(replica, "lag").and_then(|lag| lag.parse().ok());
        told += u64::from(lag.is_some());
        let state = part_of(replica, "state").unwrap_or("unknown");
        if state != "online" || lag.is_some_and(|lag: u64| lag > LONGEST_LAG) {
            behind.push(replica);
        }
    }
    if !behind.is_empty() {
        let fact = format!("replicas that are offline or behind: {}", behind.join("; "));
        return Ok(CheckJudgement::warning(fact));
    }
    if told < replicas {
        return Err(missing("INFO replication", "the lag of each replica"));
    }
    let fact = format!("replicas online that acknowledged within {LONGEST_LAG} s: {replicas}");
    Ok(CheckJudgement::ok(fact))
}

pub(super) fn failover_loss(node: &NodeFacts, _: &DeploymentFacts) -> FactResult<CheckJudgement> {
    if node.info("role")? == "slave" {
        let why = "the server is a replica, and only the settings of its master count";
        return Err(RefusedFact::unknown("INFO replication", why, "Run doctor on the master."));
    }
    if node.replicas()? == 0 {
        return Ok(CheckJudgement::ok(NO_REPLICA));
    }
    let least = node.config("min-replicas-to-write")?;
    if least == "0" {
        let found = CheckJudgement::warning("min-replicas-to-write is 0");
        return Ok(found.with_fault(ModelledFault::LostWrites));
    }
    let lag = node.config("min-replicas-max-lag")?;
    let fact = format!("min-replicas-to-write is {least}, min-replicas-max-lag {lag} s");
    let found = if lag == "0" { CheckJudgement::warning(fact) } else { CheckJudgement::note(fact) };
    Ok(found.with_fault(ModelledFault::LostWrites))
}

pub(super) fn clock_local(node: &NodeFacts, facts: &DeploymentFacts) -> FactResult<CheckJudgement> {
    let clock = node.clock.clone()?;
    // The server read its clock at some time between both local readings.
    let server = signed(clock.server_ms);
    let (least, most) = (server - signed(clock.after_ms), server - signed(clock.before_ms) + 1);
    let fact = if least > TOLERANCE_MS {
        format!("the server's clock is at least {} s ahead of this machine's", least / 1_000)
    } else if most < -TOLERANCE_MS {
        format!("the server's clock is at least {} s behind this machine's", -most / 1_000)
    } else if least < -TOLERANCE_MS || most > TOLERANCE_MS {
        return Err(RefusedFact::unknown(
            "TIME",
            format!("the round trip took {} ms, too long to compare clocks", most - least),
            "Run doctor nearer to the server.",
        ));
    } else {
        return Ok(CheckJudgement::fine());
    };
    let telling = facts.schemas_that(|schema| schema.may_contain_time());
    if telling.is_empty() {
        return Ok(CheckJudgement::note(fact));
    }
    Ok(CheckJudgement::warning(fact).for_schemas(telling))
}

fn signed(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX)
}

pub(super) fn commands(node: &NodeFacts, facts: &DeploymentFacts) -> FactResult<CheckJudgement> {
    let missing = node.missing_commands.clone()?;
    if missing.is_empty() {
        return Ok(CheckJudgement::fine());
    }
    let fact = format!("the server does not have {}", missing.join(", "));
    let schemas = facts.schemas_that(|schema| {
        sent_commands::of_schema(schema).iter().any(|sent| missing.contains(&sent.command))
    });
    if schemas.is_empty() {
        return Ok(CheckJudgement::note(fact));
    }
    Ok(CheckJudgement::error(fact).for_schemas(schemas))
}
