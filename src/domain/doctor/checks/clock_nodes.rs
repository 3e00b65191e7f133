//! The clocks of a cluster's masters against each other.

use super::clock_local::{TOLERANCE_MS, bounds};
use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::CheckJudgement;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "clock-nodes",
    group: CheckGroup::Server,
    title: "the clocks of a cluster's masters against each other",
    reads: "TIME of each master",
    rule: "A warning if two clocks are proven to differ by more than 1 s, the round trips taken off.",
    source: "https://redis.io/docs/latest/commands/expire/",
    consequence: "Redis compares deadlines with the clock of the node that holds the key. A replica \
                  or node with another clock ends locks earlier or later.",
    remedy: "Synchronise the clocks of all nodes (NTP).",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    if facts.nodes.len() < 2 {
        return Vec::new();
    }
    let mut earliest: Option<(i64, &str)> = None;
    let mut latest: Option<(i64, &str)> = None;
    for node in &facts.nodes {
        let clock = match &node.clock {
            Ok(clock) => clock,
            Err(refusal) => {
                let mut unknown = CheckJudgement::unknown(refusal.clone());
                unknown.nodes.push(node.name.clone());
                return vec![unknown];
            }
        };
        let (least, most) = bounds(clock);
        if earliest.is_none_or(|(known, _)| most < known) {
            earliest = Some((most, &node.name));
        }
        if latest.is_none_or(|(known, _)| least > known) {
            latest = Some((least, &node.name));
        }
    }
    let (Some((behind, slow)), Some((ahead, fast))) = (earliest, latest) else {
        return Vec::new();
    };
    if ahead - behind <= TOLERANCE_MS {
        return vec![CheckJudgement::ok(
            "the masters' clocks agree to 1 s, as far as the round trips show",
        )];
    }
    let seconds = (ahead - behind) / 1_000;
    vec![CheckJudgement::warning(format!(
        "the clock of {fast} is at least {seconds} s ahead of that of {slow}"
    ))]
}
