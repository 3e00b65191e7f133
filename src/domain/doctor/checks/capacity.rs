//! Whether the memory suffices for the results that keep arriving.

use super::eviction_policy::maxmemory;
use super::memory_headroom::{self, shown, when_full};
use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::{DeploymentFacts, NodeFacts};
use crate::domain::doctor::info::part_of;
use crate::domain::doctor::judgement::{CheckJudgement, FactEvidence, of_each_node};
use crate::domain::doctor::refusal::{FactResult, RefusedFact};
use crate::domain::doctor::sample::{MIN_RESULTS, RecordSample, SchemaSample};
use crate::domain::duration;
use crate::domain::record::Evidence;
use crate::domain::record::age::millis;
use crate::domain::schema::TtlOf;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "capacity",
    group: CheckGroup::Capacity,
    needs: SampleNeed::Records,
    title: "the memory that results will need, against maxmemory",
    consequence: memory_headroom::CHECK.consequence,
    remedy: memory_headroom::CHECK.remedy,
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    let sample = match &facts.sample {
        Ok(sample) => sample,
        Err(refusal) => return vec![CheckJudgement::unknown(refusal.clone())],
    };
    if let Some(unread) = sample.unread_because() {
        return vec![CheckJudgement::unknown(unread)];
    }
    let has_results = sample.schemas.iter().any(|of| !of.results.is_empty());
    let is_limited = facts.nodes.iter().any(|node| maxmemory(node) != Ok(0));
    if !has_results || !is_limited {
        return Vec::new();
    }
    of_each_node(facts, |node| judge_node(sample, node))
}

fn judge_node(sample: &RecordSample, node: &NodeFacts) -> FactResult<CheckJudgement> {
    let limit = maxmemory(node)?;
    let used = node.number("used_memory")? as f64;
    let keys = node.info(&format!("db{}", sample.db)).ok().and_then(|list| part_of(list, "keys"));
    let keys: u64 = keys.and_then(|keys| keys.parse().ok()).unwrap_or(0);
    // Each sampled key stands for so many keys of the server.
    let scale = keys as f64 / sample.keys.max(1) as f64;
    let mut needed = 0.0;
    let mut held = 0.0;
    let mut inflows = Vec::new();
    for of in &sample.schemas {
        let Some((ttl_ms, age_ms)) = ttl_and_age(of) else { continue };
        let mut number = 0.0;
        let mut bytes = 0.0;
        for result in of.results.iter().filter(|result| result.left_ms.is_some()) {
            number += result.weight * scale;
            bytes += result.bytes.ok_or_else(no_memory_usage)? as f64 * result.weight * scale;
        }
        let per_second = number / (age_ms as f64 / 1_000.0);
        needed += bytes * ttl_ms as f64 / age_ms as f64;
        held += bytes;
        inflows.push(format!(
            "{} of {}, stored for {} with {} each",
            arrivals(per_second),
            of.schema.name,
            duration::short(ttl_ms),
            shown((bytes / number) as u64)
        ));
    }
    if inflows.is_empty() {
        let why = format!(
            "the rate of new results is unknown, because fewer than {MIN_RESULTS} are in the sample, \
             or all came at about the same time"
        );
        let instead = "Run doctor again when more results came.";
        return Err(RefusedFact::unknown("the sample", why, instead));
    }
    let other = (used - held).max(0.0);
    let fact = format!(
        "{}, need {}, beside {} of other data; maxmemory is {}",
        inflows.join(", and "),
        shown(needed as u64),
        shown(other as u64),
        shown(limit)
    );
    let found = if limit > 0 && needed + other >= limit as f64 {
        CheckJudgement::warning(fact).with_consequence(when_full(node))
    } else {
        CheckJudgement::ok(fact)
    };
    Ok(found.with_evidence(FactEvidence::Estimated))
}

/// The TTL of a schema's results and the age of the oldest one in the sample, in milliseconds. `None`
/// if they are too few, or came at about the same time: then they count as other data.
fn ttl_and_age(of: &SchemaSample) -> Option<(u64, u64)> {
    let times = of.times_left();
    let is_stated = of.schema.ttl_evidence(TtlOf::Result) == Evidence::Stated;
    let stated = of.schema.ttl(TtlOf::Result).filter(|_| is_stated).map_or(0, millis);
    // Without a stated TTL, the youngest result shows it.
    let ttl_ms = stated.max(*times.last()?);
    let age_ms = ttl_ms - times.first()?;
    let is_known = times.len() >= MIN_RESULTS && age_ms >= 1_000 && age_ms >= ttl_ms / 100;
    is_known.then_some((ttl_ms, age_ms))
}

fn arrivals(per_second: f64) -> String {
    if per_second >= 1.0 {
        return format!("{per_second:.0} new results/s");
    }
    format!("{:.0} new results/h", per_second * 3_600.0)
}

fn no_memory_usage() -> RefusedFact {
    RefusedFact {
        command: "MEMORY USAGE".to_owned(),
        rule: Some("+memory|usage +eval".to_owned()),
        why: "the memory of the sampled records is unknown".to_owned(),
        instead: None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::doctor::judgement::CheckSeverity::{self, Ok as Fine, Unknown, Warning};
    use crate::domain::doctor::sample::SampledResult;
    use crate::domain::doctor::tests::{deployment, with};
    use crate::domain::samples::schema;

    const HOUR: u64 = 3_600_000;

    /// A server with this limit and a million keys, and a sample of 1,000 results of 1 KiB that came
    /// evenly in so many hours, and are stored for 24 h.
    fn filled(limit: &str, hours: u64) -> DeploymentFacts {
        let lines = [limit, "used_memory:1100000000", "db0:keys=1000000,expires=9"];
        let mut sample = RecordSample { keys: 1_000, ..RecordSample::default() };
        let of = sample.of_schema(&Arc::new(schema("express")));
        for number in 0..1_000 {
            let left_ms = Some(24 * HOUR - number * hours * HOUR / 1_000);
            of.results.push(SampledResult {
                left_ms,
                is_longer: false,
                bytes: Some(1_024),
                weight: 1.0,
            });
        }
        DeploymentFacts { sample: Ok(sample), ..deployment(vec![with(&lines)]) }
    }

    fn severities(facts: &DeploymentFacts) -> Vec<CheckSeverity> {
        judge(facts).iter().map(|judgement| judgement.severity).collect()
    }

    #[test]
    fn what_arrives_is_compared_with_the_limit() {
        let even = judge(&filled("maxmemory:2147483648", 24)).swap_remove(0);
        assert_eq!(
            even.fact,
            "12 new results/s of express, stored for 1d with 1.0 KiB each, need 977.5 MiB, beside \
             72.4 MiB of other data; maxmemory is 2.0 GiB"
        );
        assert_eq!(even.severity, Fine);
        // The service began two hours ago, and will need twelve times as much.
        assert_eq!(severities(&filled("maxmemory:2147483648", 2)), [Warning]);
        assert_eq!(severities(&filled("maxmemory:1073741824", 24)), [Warning]);
        assert!(severities(&filled("maxmemory:0", 24)).is_empty());
    }

    #[test]
    fn few_results_a_load_and_hidden_memory_show_no_rate() {
        let of = |change: &dyn Fn(&mut Vec<SampledResult>)| {
            let mut facts = filled("maxmemory:2147483648", 24);
            change(&mut facts.sample.as_mut().unwrap().schemas[0].results);
            severities(&facts)
        };
        assert_eq!(of(&|results| results.truncate(19)), [Unknown]);
        assert_eq!(severities(&filled("maxmemory:2147483648", 0)), [Unknown]);
        assert_eq!(of(&|results| results[0].bytes = None), [Unknown]);
        assert_eq!(of(&|results| results[0].left_ms = None), [Fine]);
    }
}
