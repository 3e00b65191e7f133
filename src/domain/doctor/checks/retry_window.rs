//! Results that expire while a retry can still come.

use std::time::Duration;

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::{CheckJudgement, FactEvidence};
use crate::domain::doctor::refusal::RefusedFact;
use crate::domain::doctor::sample::{MIN_RESULTS, SchemaSample};
use crate::domain::duration;
use crate::domain::record::Evidence;
use crate::domain::record::age::millis;
use crate::domain::schema::{Schema, TtlOf};

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "retry-window",
    group: CheckGroup::Ttl,
    needs: SampleNeed::Records,
    title: "whether results outlive the time in which a request can come again",
    consequence: "A retry or a redelivery that comes after the result expired is executed again.",
    remedy: "Use a result TTL that is longer than the time in which the request can come again. When \
             the service uses it, state it: `idemctl context set NAME --result-ttl SCHEMA=DURATION`.",
    judge,
};

/// The share of the sampled results, in percent, that decides whether they contradict a stated TTL.
/// A few results may have another TTL.
const USUAL_PERCENT: usize = 95;

/// The part of the TTL, in percent, that the youngest results have left, even after a quiet night.
const FRESH_PERCENT: u64 = 80;

const STATE_WINDOW: &str = "Find out for how long clients send a request again, and state it, e.g. \
                            `idemctl context set NAME --retry-window 3d`.";

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    if let Some(unseen) = facts.unseen_schemas() {
        return vec![CheckJudgement::unknown(unseen)];
    }
    let mut judgements = Vec::new();
    let mut without = Vec::new();
    for schema in &facts.schemas {
        match facts.retry_windows.get(&schema.name) {
            Some(window) => judgements.push(judge_schema(facts, schema, *window)),
            None => without.push(schema.name.clone()),
        }
    }
    if !without.is_empty() {
        let fact = format!(
            "the retry window of {}, in which a request can come again, is not stated, so the \
             result TTL was not compared with it",
            without.join(", ")
        );
        let note = CheckJudgement::note(fact).with_evidence(FactEvidence::Configured);
        judgements.push(note.with_remedy(STATE_WINDOW).for_schemas(without));
    }
    judgements
}

fn judge_schema(facts: &DeploymentFacts, schema: &Schema, window: Duration) -> CheckJudgement {
    let shown = format!("requests can come again for {}", duration::short(millis(window)));
    let name = &schema.name;
    let judgement = match stated(schema) {
        Some(None) => {
            let fact = format!("results of {name} have no TTL; {shown}");
            CheckJudgement::ok(fact).with_evidence(FactEvidence::Configured)
        }
        Some(Some(ttl)) => match contradiction(facts, name, ttl, window) {
            Some(contradicted) => contradicted,
            None => of_stated(name, ttl, window, &shown),
        },
        None => of_sample(facts, schema, window, &shown),
    };
    judgement.for_schemas(vec![name.clone()])
}

fn of_stated(name: &str, ttl: Duration, window: Duration, shown: &str) -> CheckJudgement {
    let text = duration::short(millis(ttl));
    let fact = format!("the result TTL of {name} is {text}, and {shown}");
    let judgement =
        if ttl < window { CheckJudgement::warning(fact) } else { CheckJudgement::ok(fact) };
    judgement.with_evidence(FactEvidence::Configured)
}

/// The judgement of a stated TTL that is long enough, if almost no sampled result has as much time
/// left as the window: then nothing was stored for days, or the service sets another TTL.
fn contradiction(
    facts: &DeploymentFacts,
    name: &str,
    ttl: Duration,
    window: Duration,
) -> Option<CheckJudgement> {
    let times = times_left(facts, name);
    // A few results with another TTL say nothing of the others.
    let most = *times.get(times.len().saturating_sub(1) * USUAL_PERCENT / 100)?;
    // No result has all of its TTL left, so a window that is as long as the TTL is no measure.
    let expected = millis(window).min(millis(ttl) / 100 * FRESH_PERCENT);
    if ttl < window || times.len() < MIN_RESULTS || most >= expected {
        return None;
    }
    let fact = format!(
        "the stated result TTL of {name} is {}, but {USUAL_PERCENT} % of {} sampled results have at \
         most {} left, and requests can come again for {}",
        duration::short(millis(ttl)),
        times.len(),
        duration::short(most),
        duration::short(millis(window))
    );
    let instead = format!(
        "Find out which TTL the service sets, and correct the stated one: `idemctl context set NAME \
         --result-ttl {name}=DURATION`. If few results were stored lately, run doctor again later."
    );
    Some(unknown_ttl(fact, instead))
}

/// The times left of the sampled results of a schema.
fn times_left(facts: &DeploymentFacts, name: &str) -> Vec<u64> {
    let Ok(sample) = &facts.sample else { return Vec::new() };
    let of = sample.schemas.iter().find(|of| of.schema.name == name);
    of.map(SchemaSample::times_left).unwrap_or_default()
}

fn unknown_ttl(fact: String, instead: String) -> CheckJudgement {
    CheckJudgement::unknown(RefusedFact::unknown("the result TTL", fact, instead))
}

/// Without a stated TTL, the times left of the sampled results show how long some of them are
/// stored at least.
fn of_sample(
    facts: &DeploymentFacts,
    schema: &Schema,
    window: Duration,
    shown: &str,
) -> CheckJudgement {
    let name = &schema.name;
    let times = times_left(facts, name);
    let longer = times.iter().filter(|left| **left >= millis(window)).count();
    let seen = format!("{longer} of {} sampled results of {name} have more left", times.len());
    if longer >= MIN_RESULTS {
        let fact = format!("{shown}, and {seen}");
        return CheckJudgement::ok(fact).with_evidence(FactEvidence::Estimated);
    }
    let default = schema.ttl(TtlOf::Result);
    let by_default = default.map_or("none".to_owned(), |ttl| duration::short(millis(ttl)));
    let fact = format!(
        "{shown}; the result TTL is not stated (the schema's default is {by_default}, and {seen})"
    );
    if default.is_some_and(|ttl| ttl < window) {
        return CheckJudgement::note(fact).with_evidence(FactEvidence::Estimated);
    }
    let instead = format!(
        "State the TTL that the service sets: `idemctl context set NAME --result-ttl {name}=DURATION`."
    );
    unknown_ttl(fact, instead)
}

/// The result TTL that the deployment states; the inner `None` if there is no TTL, and the outer one
/// if it states none.
fn stated(schema: &Schema) -> Option<Option<Duration>> {
    let is_stated = schema.ttl_evidence(TtlOf::Result) == Evidence::Stated;
    is_stated.then(|| schema.ttl(TtlOf::Result))
}
