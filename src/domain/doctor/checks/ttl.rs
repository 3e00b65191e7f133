//! The TTLs of locks and results.

use std::time::Duration;

use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::{CheckJudgement, FactEvidence, Judgements, ModelledFault};
use crate::domain::doctor::refusal::{FactResult, RefusedFact};
use crate::domain::doctor::sample::{MIN_RESULTS, SchemaSample};
use crate::domain::duration;
use crate::domain::record::Evidence;
use crate::domain::record::age::millis;
use crate::domain::schema::{Schema, TtlOf};

/// The share of the sampled results, in percent, that decides whether they contradict a stated TTL.
/// A few results may have another TTL.
const USUAL_PERCENT: usize = 95;

/// The part of the TTL, in percent, that the youngest results have left, even after a quiet night.
const FRESH_PERCENT: u64 = 80;

pub(super) fn endless_locks(facts: &DeploymentFacts) -> Judgements {
    facts.sample()?;
    let locks = facts.locks()?;
    let mut judgements = Vec::new();
    let mut endless = 0;
    let mut schemas = Vec::new();
    for of in locks.schemas.iter().filter(|of| of.endless > 0) {
        endless += of.endless;
        schemas.push(of.schema.name.clone());
    }
    let gap = locks.check_all(false);
    if endless > 0 {
        let least = if gap.is_err() { "at least " } else { "" };
        let verb = if endless == 1 { "lock never expires" } else { "locks never expire" };
        let fact = format!("{least}{endless} {verb} ({})", schemas.join(", "));
        let found = CheckJudgement::error(fact).for_schemas(schemas);
        judgements.push(found.with_fault(ModelledFault::LostTtl));
    }
    if let Err(gap) = gap {
        judgements.push(CheckJudgement::unknown(gap));
    } else if judgements.is_empty() {
        judgements.push(CheckJudgement::fine());
    }
    Ok(judgements)
}

pub(super) fn observed(facts: &DeploymentFacts) -> Judgements {
    let sample = facts.sample()?;
    let locks = facts.locks()?;
    let mut judgements = Vec::new();
    for of in locks.schemas.iter().filter(|of| of.longer > 0) {
        judgements.extend(longer(&of.schema, TtlOf::Lock, "locks", of.longer, of.longest_ms));
    }
    for of in &sample.schemas {
        let name = &of.schema.name;
        let count = of.results.iter().filter(|result| result.is_longer).count() as u64;
        if let Some(longest) = of.times_left().last()
            && count > 0
        {
            judgements.extend(longer(
                &of.schema,
                TtlOf::Result,
                "sampled results",
                count,
                *longest,
            ));
        }
        let endless = of.results.iter().filter(|result| result.left_ms.is_none()).count();
        if endless > 0 && of.schema.ttl(TtlOf::Result).is_some() {
            let all = of.results.len();
            let fact = format!("sampled results of {name} without a TTL: {endless} of {all}");
            judgements.push(CheckJudgement::note(fact).for_schemas(vec![name.clone()]));
        }
    }
    let unread = if sample.unread > 0 { sample.check_read() } else { Ok(()) };
    if let Err(unread) = locks.check_all(true).and(unread) {
        // The records that were not read may have more time left.
        judgements.push(CheckJudgement::unknown(unread));
    } else if judgements.is_empty() {
        judgements.push(CheckJudgement::fine());
    }
    Ok(judgements)
}

/// So many locks or results of a schema outlast their TTL.
fn longer(
    schema: &Schema,
    of: TtlOf,
    what: &str,
    count: u64,
    longest_ms: u64,
) -> Option<CheckJudgement> {
    let is_stated = schema.ttl_evidence(of) == Evidence::Stated;
    let source = if is_stated { "stated" } else { "default" };
    let fact = format!(
        "{what} of {} with more time left than the {source} TTL ({}): {count}, up to {}",
        schema.name,
        duration::short(millis(schema.ttl(of)?)),
        duration::short(longest_ms)
    );
    let found = if is_stated { CheckJudgement::warning(fact) } else { CheckJudgement::note(fact) };
    Some(found.for_schemas(vec![schema.name.clone()]))
}

pub(super) fn retry_window(facts: &DeploymentFacts) -> Judgements {
    facts.check_schemas()?;
    let mut judgements = Vec::new();
    for schema in &facts.schemas {
        if let Some(window) = facts.retry_windows.get(&schema.name) {
            let judged = within_window(facts, schema, *window);
            let judged = judged.unwrap_or_else(CheckJudgement::unknown);
            judgements.push(judged.for_schemas(vec![schema.name.clone()]));
        }
    }
    let without = facts.schemas_that(|schema| !facts.retry_windows.contains_key(&schema.name));
    if !without.is_empty() {
        let fact = format!(
            "the retry window of {} (--retry-window of a context) is not stated",
            without.join(", ")
        );
        let note = CheckJudgement::note(fact).with_evidence(FactEvidence::Configured);
        judgements.push(note.for_schemas(without));
    }
    Ok(judgements)
}

/// Whether the results of a schema are stored for as long as requests can come again.
fn within_window(
    facts: &DeploymentFacts,
    schema: &Schema,
    window: Duration,
) -> FactResult<CheckJudgement> {
    let name = &schema.name;
    let sample = facts.sample.as_ref().ok();
    let of = sample.and_then(|sample| sample.schemas.iter().find(|of| of.schema.name == *name));
    let times = of.map(SchemaSample::times_left).unwrap_or_default();
    let ttl = schema.ttl(TtlOf::Result);
    let shown = ttl.map_or("none".to_owned(), |ttl| duration::short(millis(ttl)));
    let can_come = format!("requests can come again for {}", duration::short(millis(window)));
    let is_longer = ttl.is_none_or(|ttl| ttl >= window);
    if schema.ttl_evidence(TtlOf::Result) == Evidence::Stated {
        if let Some(ttl) = ttl.filter(|_| is_longer)
            && let Some(most) = contradicting(&times, ttl, window)
        {
            let why = format!(
                "the stated result TTL of {name} is {shown}, but {USUAL_PERCENT} % of {} sampled \
                 results have at most {} left, and {can_come}",
                times.len(),
                duration::short(most)
            );
            return Err(unknown_ttl(name, why));
        }
        let fact = format!("the result TTL of {name} is {shown}, and {can_come}");
        let found =
            if is_longer { CheckJudgement::ok(fact) } else { CheckJudgement::warning(fact) };
        return Ok(found.with_evidence(FactEvidence::Configured));
    }
    // Without a stated TTL, the times left show how long some results are stored at least.
    let longer = times.iter().filter(|left| **left >= millis(window)).count();
    let fact = format!(
        "{can_come}; the result TTL of {name} is not stated, its default is {shown}, and {longer} of \
         {} sampled results have more left",
        times.len()
    );
    if longer < MIN_RESULTS && is_longer {
        return Err(unknown_ttl(name, fact));
    }
    let is_seen = longer >= MIN_RESULTS;
    let found = if is_seen { CheckJudgement::ok(fact) } else { CheckJudgement::note(fact) };
    Ok(found.with_evidence(FactEvidence::Estimated))
}

/// The time that almost all results have left at most, if it contradicts a stated TTL: then nothing
/// was stored for days, or the service sets another TTL.
fn contradicting(times: &[u64], ttl: Duration, window: Duration) -> Option<u64> {
    // A few results with another TTL say nothing of the others.
    let most = *times.get(times.len().saturating_sub(1) * USUAL_PERCENT / 100)?;
    // No result has all of its TTL left, so a window that is as long as the TTL is no measure.
    let expected = millis(window).min(millis(ttl) / 100 * FRESH_PERCENT);
    (times.len() >= MIN_RESULTS && most < expected).then_some(most)
}

fn unknown_ttl(name: &str, why: String) -> RefusedFact {
    let instead = format!(
        "State the TTL that the service sets: `idemctl context set NAME --result-ttl {name}=DURATION`."
    );
    RefusedFact::unknown("the result TTL", why, instead)
}
