//! One client key under the templates of several schemas.

use crate::domain::doctor::data_judgement::{
    LARGER, evidence, sample_of, unknown, unread_keys, without_records,
};
use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::CheckJudgement;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "shared-keys",
    group: CheckGroup::Data,
    title: "whether one key of a client exists under the templates of several schemas",
    reads: "with --data: the keys of the sampled records, and whether the same keys exist under the \
            templates of the other schemas",
    rule: "A note if a key exists under the templates of two schemas.",
    source: "https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/ (uniqueness)",
    consequence: "That is right if one operation passes through two services. Otherwise clients use \
                  one key for different operations, or two services have each half of the records: \
                  a retry at the other one executes again.",
    remedy: "Compare both records with `idemctl inspect KEY`. If one service moved to another schema, \
             finish the move before retries can come.",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    let sample = match sample_of(facts) {
        Ok(sample) => sample,
        Err(judgements) => return judgements,
    };
    if sample.schemas.is_empty() {
        return without_records(sample);
    }
    // There is nothing to share with.
    if sample.templates < 2 {
        return Vec::new();
    }
    let mut judgements = Vec::new();
    let mut looked_for = 0;
    for data in &sample.schemas {
        looked_for += data.keys.looked_for;
        for (other, count) in &data.keys.elsewhere {
            let keys = data.keys.looked_for;
            let verb = if *count == 1 { "exists" } else { "exist" };
            let fact = format!(
                "{count} of {keys} sampled keys of {} also {verb} under the template of {other}",
                data.schema
            );
            let schemas = vec![data.schema.clone(), other.clone()];
            judgements.push(CheckJudgement::note(fact).for_schemas(schemas));
        }
    }
    if !judgements.is_empty() {
        return judgements;
    }
    if let Some(gap) = unread_keys(sample) {
        return vec![gap];
    }
    if looked_for == 0 {
        let fact = "no key was looked for under the template of another schema";
        return vec![unknown(fact, LARGER)];
    }
    let fact = format!("none of {looked_for} sampled keys is used by two schemas");
    vec![CheckJudgement::ok(fact).with_evidence(evidence(sample))]
}
