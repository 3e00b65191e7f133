//! Locks that never expire.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::{CheckJudgement, FactEvidence, ModelledFault};

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "endless-locks",
    group: CheckGroup::Ttl,
    title: "whether locks in the sample never expire",
    reads: "up to 500 random keys: type, TTL, and the beginning of the value; with --observe, the same \
            locks again",
    rule: "An error if a lock in the sample has the finding no-expiry, or lost its TTL during the run.",
    source: "docs/operations.md (findings)",
    consequence: "If the worker of such a lock dies, every retry is rejected until an operator \
                  removes the lock. A begin step with `gives_ttl` ends it sooner.",
    remedy: "List them with `idemctl list --finding no-expiry --schema SCHEMA`, and find out which \
             workers are gone. `idemctl force-unlock KEY` removes one lock. Find out which \
             code sets a lock without a TTL. If no worker is running any more, `idemctl sweep \
             --orphaned --schema SCHEMA` shows all orphaned locks, which may be more than these, asks, \
             and removes all of them.",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    let sample = match &facts.sample {
        Ok(sample) => sample,
        Err(refusal) => return vec![CheckJudgement::unknown(refusal.clone())],
    };
    let mut locks = 0;
    let mut endless = 0;
    let mut schemas = Vec::new();
    for of in &sample.schemas {
        locks += of.locks;
        endless += of.endless_locks;
        if of.endless_locks > 0 {
            schemas.push(of.schema.name.clone());
        }
    }
    let lost = lost_ttls(facts);
    if endless == 0 && !lost.is_empty() {
        return lost;
    }
    if endless == 0
        && let Some(unread) = sample.unread_because()
    {
        return vec![CheckJudgement::unknown(unread)];
    }
    // Without a record, there is nothing to say.
    if sample.schemas.is_empty() {
        return Vec::new();
    }
    if endless > 0 {
        // The sample proves that there are some.
        let names = schemas.join(", ");
        let mut judgements = lost;
        judgements.push(
            CheckJudgement::error(match locks {
                1 => format!("the only lock in the sample never expires ({names})"),
                _ => format!("{endless} of {locks} locks in the sample never expire ({names})"),
            })
            .for_schemas(schemas)
            .with_fault(ModelledFault::LostTtl),
        );
        return judgements;
    }
    let fact = match locks {
        0 => "the sample has no lock".to_owned(),
        1 => "the only lock in the sample expires".to_owned(),
        _ => format!("all {locks} locks in the sample expire"),
    };
    let evidence = if sample.is_all { FactEvidence::Measured } else { FactEvidence::Estimated };
    vec![CheckJudgement::ok(fact).with_evidence(evidence)]
}

/// The locks that lost their TTL during `--observe`.
fn lost_ttls(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    let Some(Ok(run)) = facts.observed() else { return Vec::new() };
    let mut lost = 0;
    let mut schemas: Vec<String> = Vec::new();
    for lock in &run.locks {
        if lock.has_lost_ttl {
            lost += 1;
            if !schemas.contains(&lock.schema.name) {
                schemas.push(lock.schema.name.clone());
            }
        }
    }
    if lost == 0 {
        return Vec::new();
    }
    let fact = match lost {
        1 => "1 lock lost its TTL during this run".to_owned(),
        _ => format!("{lost} locks lost their TTLs during this run"),
    };
    let found = CheckJudgement::error(format!("{fact} ({})", schemas.join(", ")));
    vec![found.for_schemas(schemas).with_fault(ModelledFault::LostTtl)]
}
