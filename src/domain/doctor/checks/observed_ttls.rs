//! The TTLs that the context states, against those of the records.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::{CheckJudgement, CheckSeverity, FactEvidence};
use crate::domain::doctor::sample::{RecordSample, SchemaSample, TimesLeft};
use crate::domain::duration;
use crate::domain::record::Evidence;
use crate::domain::record::age::millis;
use crate::domain::schema::TtlOf;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "observed-ttls",
    group: CheckGroup::Ttl,
    title: "the stated TTLs, against the times left of the records in the sample",
    reads: "up to 500 random keys: type, TTL, and the beginning of the value; lock_ttl and \
            result_ttl of the context",
    rule: "A warning if a lock or result has more time left than the stated TTL; a note if it has \
           more than the schema's default TTL and the context states none, and if results have no \
           TTL although the schema or the context gives one.",
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
    let sample = match &facts.sample {
        Ok(sample) => sample,
        Err(refusal) => return vec![CheckJudgement::unknown(refusal.clone())],
    };
    let mut judgements = Vec::new();
    for of in &sample.schemas {
        judgements.extend(judge_ttl(sample, of, TtlOf::Lock, &of.lock_ttls));
        judgements.extend(judge_ttl(sample, of, TtlOf::Result, &of.result_ttls));
        judgements.extend(endless_results(of));
    }
    if let Some(unread) = sample.unread_because() {
        // The records that were not read may have more time left.
        judgements.retain(|judgement| judgement.severity != CheckSeverity::Ok);
        judgements.push(CheckJudgement::unknown(unread));
    }
    judgements
}

/// Results without a TTL, although the schema has one.
fn endless_results(of: &SchemaSample) -> Option<CheckJudgement> {
    let results = of.sized.iter().filter(|record| !record.is_lock);
    let (all, endless) = results.fold((0, 0), |(all, endless), result| {
        (all + 1, endless + u64::from(result.left_ms.is_none()))
    });
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

fn judge_ttl(
    sample: &RecordSample,
    of: &SchemaSample,
    ttl_of: TtlOf,
    times: &TimesLeft,
) -> Option<CheckJudgement> {
    let median = duration::short(times.percentile(50)?);
    let longest = duration::short(times.percentile(100)?);
    let ttl = of.schema.ttl(ttl_of)?;
    let name = &of.schema.name;
    let is_stated = of.schema.ttl_evidence(ttl_of) == Evidence::Stated;
    let source = if is_stated { "stated" } else { "default" };
    let shown = duration::short(millis(ttl));
    let noun = ttl_of.as_str();
    let count = times.count();
    let fact = format!(
        "{noun}s of {name}: the {source} TTL is {shown}, and {count} in the sample have up to {longest} \
         left (half of them up to {median})"
    );
    let judgement = if times.longer == 0 {
        let evidence = if sample.is_all { FactEvidence::Measured } else { FactEvidence::Estimated };
        CheckJudgement::ok(fact).with_evidence(evidence)
    } else {
        let verb = if times.longer == 1 { "has" } else { "have" };
        let fact = format!("{fact}; {} {verb} more left than the TTL", times.longer);
        let found =
            if is_stated { CheckJudgement::warning(fact) } else { CheckJudgement::note(fact) };
        match ttl_of {
            TtlOf::Lock => found,
            // The finding excess-ttl is about locks.
            TtlOf::Result => found.with_remedy(OF_RESULTS),
        }
    };
    Some(judgement.for_schemas(vec![name.clone()]))
}
