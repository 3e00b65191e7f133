//! Which server it is, and the sourced bugs of its version that lose writes or break scripts.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck};
use crate::domain::doctor::facts::{DeploymentFacts, NodeFacts};
use crate::domain::doctor::judgement::{CheckJudgement, of_each_node};
use crate::domain::doctor::refusal::FactResult;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "server-version",
    group: CheckGroup::Server,
    title: "the version, and its known bugs that lose writes or break scripts",
    reads: "INFO server, CONFIG GET appendfsync, CONFIG GET min-replicas-to-write",
    rule: "A warning for Redis 7.0.0 to 7.0.4 with AOF (#11004), Redis 7.0.0 to 7.0.2 with \
           min-replicas-to-write (#10855), and Redis before 7.0 with appendfsync always (#9678).",
    source: "https://github.com/redis/redis/blob/7.0/00-RELEASENOTES",
    consequence: "Acknowledged locks and results can be lost, so that a retry executes again.",
    remedy: "Upgrade to the newest release of this version. Distributions that backport fixes may \
             have fixed it already.",
    judge,
};

/// The first version that idemctl is tested with.
const OLDEST: (u64, u64, u64) = (6, 2, 0);

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    of_each_node(facts, judge_node)
}

fn judge_node(node: &NodeFacts) -> FactResult<CheckJudgement> {
    // Valkey and other forks report the Redis version that they are compatible with.
    if let Ok(server) = node.info("server_name") {
        let own = node.info(&format!("{server}_version"));
        let shown = own.or_else(|_| node.info("redis_version"))?;
        return Ok(CheckJudgement::ok(format!("the server is {server} {shown}")));
    }
    let text = node.info("redis_version")?;
    let fact = format!("the server is Redis {text}");
    let Some(version) = parsed(text) else { return Ok(CheckJudgement::ok(fact)) };
    if version < OLDEST {
        let remedy = "Upgrade to Redis 6.2 or later.";
        return Ok(CheckJudgement::warning(format!("{fact}, older than idemctl supports (6.2)"))
            .with_consequence("idemctl has not been tested with it, and some commands fail.")
            .with_remedy(remedy));
    }
    let bug = match bug(node, version)? {
        Some(bug) => bug,
        None => return Ok(CheckJudgement::ok(fact)),
    };
    Ok(CheckJudgement::warning(format!("{fact}: {bug}")))
}

/// The bug of this version that applies with this configuration.
///
/// # Errors
/// The version has a bug, and the setting that decides is unknown.
fn bug(node: &NodeFacts, version: (u64, u64, u64)) -> FactResult<Option<&'static str>> {
    let has_aof = node.info("aof_enabled") == Ok("1");
    if version < (7, 0, 0) && has_aof && node.config("appendfsync")? == "always" {
        let bug = "appendfsync always can acknowledge a write before it is on disk (#9678, fixed \
                   in 7.0.0)";
        return Ok(Some(bug));
    }
    let is_first_7_0 = ((7, 0, 0)..(7, 0, 5)).contains(&version);
    if is_first_7_0 && has_aof {
        let bug = "an AOF rewrite does not sync the old file, so a crash then loses writes \
                   (#11004, fixed in 7.0.5)";
        return Ok(Some(bug));
    }
    let breaks_scripts = ((7, 0, 0)..(7, 0, 3)).contains(&version);
    if breaks_scripts && node.config("min-replicas-to-write")? != "0" {
        let bug = "a script that has already written can fail with NOREPLICAS and leave half of \
                   its changes (#10855, fixed in 7.0.3)";
        return Ok(Some(bug));
    }
    Ok(None)
}

/// `7.0.15` as numbers; `None` for a version in another format.
fn parsed(text: &str) -> Option<(u64, u64, u64)> {
    let mut parts = text.split('.');
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next()?.parse().ok()?;
    let patch = parts.next().unwrap_or("0").parse().ok()?;
    Some((major, minor, patch))
}
