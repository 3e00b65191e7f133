//! Locks that never expire.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::{CheckJudgement, ModelledFault};

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "endless-locks",
    group: CheckGroup::Ttl,
    needs: SampleNeed::AllKeys,
    title: "whether locks never expire",
    consequence: "If the worker of such a lock dies, every retry is rejected until an operator \
                  removes the lock.",
    remedy: "List them with `idemctl list --finding no-expiry`, and find out which workers are gone. \
             `idemctl force-unlock KEY` removes one lock. Find out which code sets a lock without a \
             TTL. If no worker is running any more, `idemctl sweep --orphaned` shows the orphaned \
             locks, asks, and removes all of them.",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    let mut judgements = Vec::new();
    let (sample, locks) = match (&facts.sample, &facts.locks) {
        (Ok(sample), Ok(locks)) => (sample, locks),
        (Err(refusal), _) | (_, Err(refusal)) => {
            return vec![CheckJudgement::unknown(refusal.clone())];
        }
    };
    let mut endless = 0;
    let mut schemas = Vec::new();
    for of in &locks.schemas {
        endless += of.endless;
        if of.endless > 0 {
            schemas.push(of.schema.name.clone());
        }
    }
    let gap = locks.gap(false);
    if endless > 0 {
        let count = if gap.is_some() { format!("at least {endless}") } else { endless.to_string() };
        let verb = if endless == 1 { "lock never expires" } else { "locks never expire" };
        let found = CheckJudgement::error(format!("{count} {verb} ({})", schemas.join(", ")));
        judgements.push(found.for_schemas(schemas).with_fault(ModelledFault::LostTtl));
    }
    if let Some(gap) = gap {
        judgements.push(CheckJudgement::unknown(gap));
    } else if judgements.is_empty() {
        // A schema without records here may have them under another prefix.
        let mut seen = Vec::new();
        for of in &sample.schemas {
            seen.push(of.schema.name.as_str());
        }
        let fact = format!("no lock of {} is without expiry", seen.join(", "));
        judgements.push(CheckJudgement::ok(fact));
    }
    judgements
}
