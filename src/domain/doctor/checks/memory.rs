//! Whether Redis deletes keys, or runs out of memory.

use crate::domain::doctor::facts::{DeploymentFacts, NodeFacts};
use crate::domain::doctor::info::part_of;
use crate::domain::doctor::judgement::{
    CheckJudgement, FactEvidence, Judgements, ModelledFault, of_each_node,
};
use crate::domain::doctor::refusal::{FactResult, RefusedFact, missing};
use crate::domain::doctor::sample::{MIN_RESULTS, RecordSample, SchemaSample};
use crate::domain::duration;
use crate::domain::record::Evidence;
use crate::domain::record::age::millis;
use crate::domain::schema::TtlOf;

pub(super) fn eviction_policy(node: &NodeFacts, _: &DeploymentFacts) -> FactResult<CheckJudgement> {
    let policy = policy(node)?;
    if policy == "noeviction" {
        return Ok(CheckJudgement::ok("maxmemory-policy is noeviction"));
    }
    let limit = maxmemory(node)?;
    if limit == 0 {
        let fact = format!("maxmemory-policy is {policy}, but maxmemory is 0");
        return Ok(CheckJudgement::note(fact));
    }
    Ok(CheckJudgement::error(format!("maxmemory-policy is {policy}"))
        .with_fault(ModelledFault::Eviction))
}

/// The eviction policy. Some managed services leave it out of INFO, or empty.
pub(super) fn policy(node: &NodeFacts) -> FactResult<&str> {
    node.info("maxmemory_policy").or_else(|_| node.config("maxmemory-policy"))
}

/// The memory limit in bytes; 0 for none.
pub(super) fn maxmemory(node: &NodeFacts) -> FactResult<u64> {
    if let Ok(bytes) = node.number("maxmemory") {
        return Ok(bytes);
    }
    node.config("maxmemory")?.parse().map_err(|_| missing("CONFIG GET", "maxmemory"))
}

pub(super) fn headroom(node: &NodeFacts, _: &DeploymentFacts) -> FactResult<CheckJudgement> {
    let limit = maxmemory(node)?;
    if limit == 0 {
        return Ok(CheckJudgement::note("maxmemory is 0, so Redis has no memory limit"));
    }
    let percent = u128::from(node.number("used_memory")?) * 100 / u128::from(limit);
    // Exact numbers would differ from node to node, and in every run.
    let fact = format!("memory in use is {percent} % of maxmemory ({})", shown(limit));
    Ok(match percent {
        0..90 => CheckJudgement::ok(fact),
        90..100 => CheckJudgement::warning(fact),
        _ => CheckJudgement::error(fact),
    })
}

/// A limit of memory in the largest unit in which it is not less than 1.
fn shown(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    for (unit, size) in UNITS {
        if bytes >= size {
            let tenths = u128::from(bytes) * 10 / u128::from(size);
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    format!("{bytes} B")
}

pub(super) fn evictions(node: &NodeFacts, _: &DeploymentFacts) -> FactResult<CheckJudgement> {
    let evicted = node.number("evicted_keys")?;
    let fact = format!("keys evicted since the server started: {evicted}");
    Ok(if evicted == 0 { CheckJudgement::ok(fact) } else { CheckJudgement::warning(fact) })
}

pub(super) fn capacity(facts: &DeploymentFacts) -> Judgements {
    let sample = facts.sample()?;
    sample.check_read()?;
    let has_results = sample.schemas.iter().any(|of| !of.results.is_empty());
    let is_limited = facts.nodes.iter().any(|node| maxmemory(node) != Ok(0));
    if !has_results || !is_limited {
        return Ok(Vec::new());
    }
    Ok(of_each_node(facts, |node| capacity_of(sample, node)))
}

fn capacity_of(sample: &RecordSample, node: &NodeFacts) -> FactResult<CheckJudgement> {
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
            let unknown = || RefusedFact {
                rule: Some("+memory|usage +eval".to_owned()),
                ..RefusedFact::unusable("MEMORY USAGE", "the memory of the records is unknown")
            };
            number += result.weight * scale;
            bytes += result.bytes.ok_or_else(unknown)? as f64 * result.weight * scale;
        }
        needed += bytes * ttl_ms as f64 / age_ms as f64;
        held += bytes;
        let per_hour = number / (age_ms as f64 / 3_600_000.0);
        let ttl = duration::short(ttl_ms);
        inflows.push(format!("{per_hour:.0} new results/h of {}, kept for {ttl}", of.schema.name));
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
        CheckJudgement::warning(fact)
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
