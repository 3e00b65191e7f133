//! The TTLs that the context states, against those of the records.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::CheckJudgement;
use crate::domain::doctor::sample::SchemaSample;
use crate::domain::duration;
use crate::domain::record::Evidence;
use crate::domain::record::age::millis;
use crate::domain::schema::{Schema, TtlOf};

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "observed-ttls",
    group: CheckGroup::Ttl,
    needs: SampleNeed::AllKeys,
    title: "the stated TTLs, against the times left of all locks and of sampled results",
    consequence: "Either the TTL is not the one that the service sets, so that ages and selections by \
                  age are wrong, or some records have a wrong TTL. A lock with a result's TTL \
                  rejects retries for that long if its worker dies.",
    remedy: "List these locks with `idemctl list --finding excess-ttl`. If the service sets another \
             TTL, state it: `idemctl context set NAME --lock-ttl SCHEMA=DURATION`.",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    let (sample, locks) = match (&facts.sample, &facts.locks) {
        (Ok(sample), Ok(locks)) => (sample, locks),
        (Err(refusal), _) | (_, Err(refusal)) => {
            return vec![CheckJudgement::unknown(refusal.clone())];
        }
    };
    let mut judgements = Vec::new();
    for of in &locks.schemas {
        if of.longer > 0 {
            let longest = Some(of.longest_ms);
            judgements.extend(longer(&of.schema, TtlOf::Lock, of.longer, "locks", longest));
        }
    }
    for of in &sample.schemas {
        let count = of.results.iter().filter(|result| result.is_longer).count() as u64;
        if count > 0 {
            let longest = of.times_left().last().copied();
            let found = longer(&of.schema, TtlOf::Result, count, "sampled results", longest);
            // The finding excess-ttl is about locks.
            judgements.extend(found.map(|found| found.with_remedy(OF_RESULTS)));
        }
        judgements.extend(endless_results(of));
    }
    let unread = if sample.unread > 0 { sample.unread_because() } else { None };
    if let Some(unread) = locks.gap(true).or(unread) {
        // The records that were not read may have more time left.
        judgements.push(CheckJudgement::unknown(unread));
    } else if judgements.is_empty() {
        let fact = "no lock and no sampled result has more time left than its TTL";
        judgements.push(CheckJudgement::ok(fact));
    }
    judgements
}

/// The remedy for results, which have no finding of their own.
const OF_RESULTS: &str = "If the service sets another TTL, state it: `idemctl context set NAME \
                          --result-ttl SCHEMA=DURATION`.";

/// So many locks or results of a schema outlast their TTL.
fn longer(
    schema: &Schema,
    of: TtlOf,
    count: u64,
    what: &str,
    longest_ms: Option<u64>,
) -> Option<CheckJudgement> {
    let is_stated = schema.ttl_evidence(of) == Evidence::Stated;
    let source = if is_stated { "stated" } else { "default" };
    let fact = format!(
        "{what} of {} with more time left than the {source} TTL ({}): {count}, up to {}",
        schema.name,
        duration::short(millis(schema.ttl(of)?)),
        duration::short(longest_ms?)
    );
    let found = if is_stated { CheckJudgement::warning(fact) } else { CheckJudgement::note(fact) };
    Some(found.for_schemas(vec![schema.name.clone()]))
}

/// Results without a TTL, although the schema has one.
fn endless_results(of: &SchemaSample) -> Option<CheckJudgement> {
    let all = of.results.len();
    let endless = of.results.iter().filter(|result| result.left_ms.is_none()).count();
    let name = &of.schema.name;
    if endless == 0 || of.schema.ttl(TtlOf::Result).is_none() {
        return None;
    }
    let fact = format!("sampled results of {name} without a TTL: {endless} of {all}");
    let note = CheckJudgement::note(fact)
        .with_consequence("Such a result never expires, so its memory is never free again.")
        .with_remedy(
            "Find out which code stores results without a TTL. If that is intended, state it: \
             `idemctl context set NAME --result-ttl SCHEMA=none`.",
        );
    Some(note.for_schemas(vec![name.clone()]))
}
