//! The server's clock against this machine's clock.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::{ClockReading, DeploymentFacts, NodeFacts};
use crate::domain::doctor::judgement::{CheckJudgement, of_each_node};
use crate::domain::doctor::refusal::{FactResult, RefusedFact};

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "clock-local",
    group: CheckGroup::Server,
    needs: SampleNeed::Schemas,
    title: "the server's clock against this machine's clock",
    consequence: "A host with this machine's clock takes the times in values for earlier or later \
                  than they are. It may treat a lock as expired while its worker runs.",
    remedy: "Synchronise both clocks (NTP), or run doctor on a host of the service to compare its \
             clock.",
    judge,
};

/// The difference in milliseconds from which clocks count as different.
const TOLERANCE_MS: i64 = 1_000;

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    let mut telling = Vec::new();
    for schema in &facts.schemas {
        if schema.may_contain_time() {
            telling.push(schema.name.clone());
        }
    }
    of_each_node(facts, |node| judge_node(node, &telling))
}

fn judge_node(node: &NodeFacts, telling: &[String]) -> FactResult<CheckJudgement> {
    let (least, most) = bounds(&node.clock.clone()?);
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
        return Ok(CheckJudgement::ok(
            "the server's clock and this machine's differ by less than 1 s",
        ));
    };
    if telling.is_empty() {
        return Ok(CheckJudgement::note(fact)
            .with_consequence("No schema in use writes times into its values."));
    }
    Ok(CheckJudgement::warning(fact).for_schemas(telling.to_vec()))
}

/// The least and the greatest number of milliseconds by which the server's clock is ahead.
fn bounds(clock: &ClockReading) -> (i64, i64) {
    // The server read its clock at some time between both local readings.
    let server = signed(clock.server_ms);
    (server - signed(clock.after_ms), server - signed(clock.before_ms) + 1)
}

fn signed(millis: u64) -> i64 {
    i64::try_from(millis).unwrap_or(i64::MAX)
}
