//! The TTLs that the context states, against those of the records.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::{CheckJudgement, CheckSeverity, FactEvidence};
use crate::domain::doctor::lock_count::LocksOfSchema;
use crate::domain::doctor::sample::{RecordSample, SchemaSample};
use crate::domain::duration;
use crate::domain::record::Evidence;
use crate::domain::record::age::millis;
use crate::domain::schema::{Schema, TtlOf};

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "observed-ttls",
    group: CheckGroup::Ttl,
    needs: SampleNeed::AllKeys,
    title: "the stated TTLs, against the times left of all locks and of sampled results",
    reads: "the expiries of all keys, and the values that they do not decide, for up to 10 s; up to \
            500 random keys; lock_ttl and result_ttl of the context",
    rule: "A warning if a lock or result has more time left than the stated TTL; a note if it has \
           more than the schema's default TTL and the context states none, and if results have no \
           TTL although the schema or the context gives one. Unknown if not all keys were read.",
    source: "docs/connecting.md (contexts)",
    consequence: "Either the TTL is not the one that the service sets, so that ages and selections by \
                  age are wrong, or some records have a wrong TTL. A lock with a result's TTL \
                  rejects retries for that long if its worker dies.",
    remedy: "List these locks with `idemctl list --finding excess-ttl`. If the service sets another \
             TTL, state it: `idemctl context set NAME --lock-ttl SCHEMA=DURATION`.",
    judge,
};

/// The remedy for results, which have no finding of their own.
const OF_RESULTS: &str = "If the service sets another TTL, state it: `idemctl context set NAME \
                          --result-ttl SCHEMA=DURATION`.";

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    let (sample, locks) = match (&facts.sample, &facts.locks) {
        (Ok(sample), Ok(locks)) => (sample, locks),
        (Err(refusal), _) | (_, Err(refusal)) => {
            return vec![CheckJudgement::unknown(refusal.clone())];
        }
    };
    let mut judgements = Vec::new();
    for of in &locks.schemas {
        judgements.extend(judge_locks(of));
    }
    let gap = locks.gap(true);
    if gap.is_none() && judgements.is_empty() {
        judgements.push(CheckJudgement::ok("no lock has more time left than its TTL"));
    }
    for of in &sample.schemas {
        judgements.extend(judge_results(sample, of));
        judgements.extend(endless_results(of));
    }
    let unread = if sample.unread > 0 { sample.unread_because() } else { None };
    if let Some(unread) = gap.or(unread) {
        // The records that were not read may have more time left.
        judgements.retain(|judgement| judgement.severity != CheckSeverity::Ok);
        judgements.push(CheckJudgement::unknown(unread));
    }
    judgements
}

/// The locks of a schema that outlast their TTL.
fn judge_locks(of: &LocksOfSchema) -> Option<CheckJudgement> {
    if of.longer == 0 {
        return None;
    }
    let (source, shown) = ttl_of(&of.schema, TtlOf::Lock)?;
    let name = &of.schema.name;
    let verb = if of.longer == 1 { "lock has" } else { "locks have" };
    let fact = format!(
        "{} {verb} more time left than the {source} TTL of {name} ({shown}), up to {}",
        of.longer,
        duration::short(of.longest_ms)
    );
    let is_stated = of.schema.ttl_evidence(TtlOf::Lock) == Evidence::Stated;
    let found = if is_stated { CheckJudgement::warning(fact) } else { CheckJudgement::note(fact) };
    Some(found.for_schemas(vec![name.clone()]))
}

/// Whether the TTL is stated, and the TTL in words.
fn ttl_of(schema: &Schema, of: TtlOf) -> Option<(&'static str, String)> {
    let is_stated = schema.ttl_evidence(of) == Evidence::Stated;
    let source = if is_stated { "stated" } else { "default" };
    Some((source, duration::short(millis(schema.ttl(of)?))))
}

/// Results without a TTL, although the schema has one.
fn endless_results(of: &SchemaSample) -> Option<CheckJudgement> {
    let all = of.results.len();
    let endless = of.results.iter().filter(|result| result.left_ms.is_none()).count();
    let name = &of.schema.name;
    if endless == 0 || of.schema.ttl(TtlOf::Result).is_none() {
        return None;
    }
    let verb = if endless == 1 { "has" } else { "have" };
    let fact = format!("{endless} of {all} results of {name} in the sample {verb} no TTL");
    let note = CheckJudgement::note(fact)
        .with_consequence("Such a result never expires, so its memory is never free again.")
        .with_remedy(
            "Find out which code stores results without a TTL. If that is intended, state it: \
             `idemctl context set NAME --result-ttl SCHEMA=none`.",
        );
    Some(note.for_schemas(vec![name.clone()]))
}

fn judge_results(sample: &RecordSample, of: &SchemaSample) -> Option<CheckJudgement> {
    let times = &of.result_ttls;
    let median = duration::short(times.percentile(50)?);
    let longest = duration::short(times.percentile(100)?);
    let (source, shown) = ttl_of(&of.schema, TtlOf::Result)?;
    let name = &of.schema.name;
    let count = times.count();
    let fact = format!(
        "results of {name}: the {source} TTL is {shown}, and {count} in the sample have up to {longest} \
         left (half of them up to {median})"
    );
    let judgement = if times.longer == 0 {
        let evidence = if sample.is_all { FactEvidence::Measured } else { FactEvidence::Estimated };
        CheckJudgement::ok(fact).with_evidence(evidence)
    } else {
        let verb = if times.longer == 1 { "has" } else { "have" };
        let fact = format!("{fact}; {} {verb} more left than the TTL", times.longer);
        let is_stated = of.schema.ttl_evidence(TtlOf::Result) == Evidence::Stated;
        let found =
            if is_stated { CheckJudgement::warning(fact) } else { CheckJudgement::note(fact) };
        // The finding excess-ttl is about locks.
        found.with_remedy(OF_RESULTS)
    };
    Some(judgement.for_schemas(vec![name.clone()]))
}
