//! Whether a cluster can hold the Redis keys of a record in one slot.

use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::{CheckJudgement, FactEvidence};
use crate::domain::hash_slot;
use crate::domain::schema::Schema;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "keys-in-slots",
    group: CheckGroup::Cluster,
    needs: SampleNeed::Schemas,
    title: "whether the Redis keys of a record are in one slot",
    consequence: "No step can change the Redis keys together. A failover or crash between two \
                  commands leaves a lock without its result, or the reverse.",
    remedy: "Put the same hash tag into both templates, for example lock:{KEY} and result:{KEY}.",
    judge,
};

/// Any key shows in which slots a template puts the Redis keys of a record.
const KEYS: [&[u8]; 3] = [b"idemctl-1", b"idemctl-2", b"idemctl-3"];

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    if !facts.is_cluster || facts.schemas.is_empty() {
        return Vec::new();
    }
    let mut refused = Vec::new();
    let mut apart = Vec::new();
    for schema in &facts.schemas {
        if is_in_one_slot(schema) {
            continue;
        }
        if sends_several_keys(schema) {
            refused.push(schema.name.clone());
        } else {
            apart.push(schema.name.clone());
        }
    }
    let mut judgements = Vec::new();
    if !refused.is_empty() {
        let fact = format!("a call of {} gets Redis keys in different slots", refused.join(", "));
        judgements.push(
            CheckJudgement::error(fact)
                .with_consequence("Redis refuses the call with CROSSSLOT, so the step fails.")
                .for_schemas(refused),
        );
    }
    if !apart.is_empty() {
        let fact = format!("the Redis keys of {} are in different slots", apart.join(", "));
        judgements.push(CheckJudgement::warning(fact).for_schemas(apart));
    }
    if judgements.is_empty() {
        judgements.push(CheckJudgement::ok("each record has its Redis keys in one slot"));
    }
    for judgement in &mut judgements {
        judgement.evidence = FactEvidence::Configured;
    }
    judgements
}

fn is_in_one_slot(schema: &Schema) -> bool {
    for key in KEYS {
        let redis_keys = schema.redis_keys(key);
        if !hash_slot::is_one(redis_keys.iter().map(Vec::as_slice)) {
            return false;
        }
    }
    true
}

/// True if some call names more than one Redis key of the record.
fn sends_several_keys(schema: &Schema) -> bool {
    for step in schema.steps() {
        for call in &step.calls {
            let touched = (0..schema.keys.len()).filter(|index| schema.touches(call, *index));
            if touched.count() > 1 {
                return true;
            }
        }
    }
    false
}
