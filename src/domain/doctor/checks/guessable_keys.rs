//! Keys that two clients can choose by accident.

use crate::domain::doctor::client_keys::ClientKeys;
use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::{CheckJudgement, FactEvidence};
use crate::domain::doctor::sample::RecordSample;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "guessable-keys",
    group: CheckGroup::Keys,
    needs: SampleNeed::Records,
    title: "whether keys are constants, bare numbers, or too short",
    consequence: "Two clients choose the same key sooner or later. The second one gets the response \
                  of the first one, and its own operation is not executed.",
    remedy: "Let clients send a random key with 128 bits for each operation, such as a UUID of \
             version 4, and repeat it in each retry. The identifier of a message or an order is a \
             good key if nobody else can have the same.",
    judge,
};

/// The fewest keys of a schema of which a share is a warning.
const MIN_KEYS: usize = 20;

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    of_keys(facts, of_schema, "is a constant, a bare number or shorter than 8 characters")
}

fn of_schema(schema: &str, keys: &ClientKeys) -> Option<CheckJudgement> {
    let weak = keys.numbers + keys.short;
    if keys.placeholders + weak == 0 {
        return None;
    }
    let all = keys.count();
    let fact = format!(
        "of {all} sampled keys of {schema}, constants such as undefined or null: {}, bare numbers: \
         {}, shorter than 8 characters: {}",
        keys.placeholders, keys.numbers, keys.short
    );
    let are_many = all >= MIN_KEYS && weak * 5 >= all;
    if keys.placeholders > 0 || are_many {
        return Some(CheckJudgement::warning(fact));
    }
    Some(CheckJudgement::note(fact))
}

/// What a check says of the sampled keys of each schema. `of_schema` returns a finding, and `weak`
/// completes the sentence `none of 20 sampled keys`.
pub(super) fn of_keys(
    facts: &DeploymentFacts,
    of_schema: impl Fn(&str, &ClientKeys) -> Option<CheckJudgement>,
    weak: &str,
) -> Vec<CheckJudgement> {
    let sample = match &facts.sample {
        Ok(sample) => sample,
        Err(refusal) => return vec![CheckJudgement::unknown(refusal.clone())],
    };
    let mut judgements = Vec::new();
    let mut sound = 0;
    for of in &sample.schemas {
        let name = &of.schema.name;
        match of_schema(name, &of.keys) {
            Some(found) => judgements.push(found.for_schemas(vec![name.clone()])),
            None => sound += of.keys.count(),
        }
    }
    if let Some(unread) = sample.unread_because() {
        judgements.push(CheckJudgement::unknown(unread));
    } else if sound > 0 {
        let fact = format!("none of {sound} sampled keys {weak}");
        judgements.push(CheckJudgement::ok(fact).with_evidence(evidence(sample)));
    }
    judgements
}

fn evidence(sample: &RecordSample) -> FactEvidence {
    if sample.is_all { FactEvidence::Measured } else { FactEvidence::Estimated }
}
