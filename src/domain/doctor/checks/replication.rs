//! The server's role, and whether its replicas keep up.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::{DeploymentFacts, NodeFacts};
use crate::domain::doctor::info::part_of;
use crate::domain::doctor::judgement::{CheckJudgement, of_each_node};
use crate::domain::doctor::refusal::{FactResult, missing};

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "replication",
    group: CheckGroup::Server,
    needs: SampleNeed::Nothing,
    title: "the role, the number of replicas, and their lag",
    consequence: "A failover to a replica that lags loses all locks and results that it has not \
                  received.",
    remedy: "Look for the reason in the replica's log, and at the network between both servers.",
    judge,
};

/// The lag in seconds from which a replica does not count for min-replicas-to-write by default.
const LONGEST_LAG: u64 = 10;

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    of_each_node(facts, judge_node)
}

fn judge_node(node: &NodeFacts) -> FactResult<CheckJudgement> {
    if node.info("role")? == "slave" {
        return as_replica(node);
    }
    let replicas = node.replicas()?;
    if replicas == 0 {
        let is_cluster = node.info("cluster_enabled").is_ok_and(|enabled| enabled == "1");
        let remedy = if is_cluster {
            "Add a replica to each master: redis-cli --cluster add-node NEW EXISTING --cluster-slave."
        } else {
            "Add a replica, and Sentinels for the failover."
        };
        return Ok(CheckJudgement::note("the server has no replica")
            .with_consequence(
                "If this server fails, no other one takes over. Requests fail, or are executed \
                 without a lock, as the service decides.",
            )
            .with_remedy(remedy));
    }
    let mut behind = Vec::new();
    let mut told = 0;
    if let Ok(info) = &node.info {
        for replica in info.numbered("slave") {
            if part_of(replica, "lag").is_some() {
                told += 1;
            }
            behind.extend(trouble(replica));
        }
    }
    if behind.is_empty() && told < replicas {
        return Err(missing("INFO replication", "the lag of each replica"));
    }
    if behind.is_empty() {
        let replicas =
            if replicas == 1 { "1 replica".to_owned() } else { format!("{replicas} replicas") };
        return Ok(CheckJudgement::ok(format!(
            "{replicas} online, acknowledged within {LONGEST_LAG} s"
        )));
    }
    Ok(CheckJudgement::warning(behind.join(", ")))
}

fn as_replica(node: &NodeFacts) -> FactResult<CheckJudgement> {
    if node.info("master_link_status")? != "up" {
        return Ok(CheckJudgement::error(
            "the server is a replica that is cut off from its master",
        )
        .with_consequence("Its data is old, so every answer about a key may be wrong.")
        .with_remedy("Run doctor on the master."));
    }
    Ok(CheckJudgement::warning("the server is a replica")
        .with_consequence("Its settings need not be those of the master that services use.")
        .with_remedy("Run doctor on the master."))
}

/// What is wrong with a replica, from its line in INFO; `None` if nothing is.
fn trouble(replica: &str) -> Option<String> {
    let ip = part_of(replica, "ip").unwrap_or("?");
    let port = part_of(replica, "port").unwrap_or("?");
    let state = part_of(replica, "state").unwrap_or("unknown");
    if state != "online" {
        return Some(format!("replica {ip}:{port} is in state {state}"));
    }
    let lag: u64 = part_of(replica, "lag")?.parse().ok()?;
    if lag <= LONGEST_LAG {
        return None;
    }
    Some(format!("replica {ip}:{port} last acknowledged {lag} s ago"))
}
