//! The keys that clients chose, and the steps of the schemas in use.

use crate::domain::doctor::client_keys::ClientKeys;
use crate::domain::doctor::counterexample::FaultOutcome;
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::{CheckJudgement, FactEvidence, Judgements};
use crate::domain::doctor::refusal::RefusedFact;

/// The fewest keys of a schema of which a share is a warning.
const MIN_KEYS: usize = 20;

pub(super) fn guessable(facts: &DeploymentFacts) -> Judgements {
    of_keys(facts, guessable_of, "is a constant, a bare number or shorter than 8 characters")
}

fn guessable_of(schema: &str, keys: &ClientKeys) -> Option<CheckJudgement> {
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

pub(super) fn quoted(facts: &DeploymentFacts) -> Judgements {
    of_keys(facts, quoted_of, "is quoted while others are not")
}

fn quoted_of(schema: &str, keys: &ClientKeys) -> Option<CheckJudgement> {
    let (quoted, all, both) = (keys.quoted(), keys.count(), keys.in_both_forms());
    if quoted == 0 || quoted == all {
        return None;
    }
    let fact = format!(
        "sampled keys of {schema} with quotation marks: {quoted} of {all}, and without them as \
         well: {both}"
    );
    Some(if both > 0 { CheckJudgement::warning(fact) } else { CheckJudgement::note(fact) })
}

/// What a check says of the sampled keys of each schema. `of_schema` returns a finding, and `weak`
/// completes the sentence `none of 20 sampled keys`.
fn of_keys(
    facts: &DeploymentFacts,
    of_schema: fn(&str, &ClientKeys) -> Option<CheckJudgement>,
    weak: &str,
) -> Judgements {
    let sample = facts.sample()?;
    let mut judgements = Vec::new();
    let mut sound = 0;
    for of in &sample.schemas {
        let name = &of.schema.name;
        match of_schema(name, &of.keys) {
            Some(found) => judgements.push(found.for_schemas(vec![name.clone()])),
            None => sound += of.keys.count(),
        }
    }
    if let Err(unread) = sample.check_read() {
        judgements.push(CheckJudgement::unknown(unread));
    } else if sound > 0 {
        let evidence = if sample.is_all { FactEvidence::Measured } else { FactEvidence::Estimated };
        let fact = format!("none of {sound} sampled keys {weak}");
        judgements.push(CheckJudgement::ok(fact).with_evidence(evidence));
    }
    Ok(judgements)
}

pub(super) fn violations(facts: &DeploymentFacts) -> Judgements {
    facts.check_schemas()?;
    let mut judgements = Vec::new();
    let mut sound = Vec::new();
    for (schema, outcome) in &facts.explorations {
        let judgement = match outcome {
            FaultOutcome::Holds => {
                sound.push(schema.clone());
                continue;
            }
            FaultOutcome::Violates(found) => {
                let invariant = found.invariant.sentence;
                let fact = format!("{schema} does not ensure that {invariant}");
                let judgement = match found.invariant.executes_twice() {
                    true => CheckJudgement::error(fact),
                    false => CheckJudgement::warning(fact),
                };
                judgement.with_evidence(FactEvidence::Configured).shown_by(found.clone())
            }
            FaultOutcome::Unexplorable(why) | FaultOutcome::Unknown(why) => {
                let why = format!("{schema} was not explored: {why}");
                let instead =
                    format!("Explore yourself: `idemctl explore --sandbox --schema {schema}`.");
                CheckJudgement::unknown(RefusedFact::unknown("explore", why, instead))
            }
        };
        judgements.push(judgement.for_schemas(vec![schema.clone()]));
    }
    if !sound.is_empty() {
        let fact =
            format!("explore finds no violation with ordinary faults in {}", sound.join(", "));
        let judgement = CheckJudgement::ok(fact).with_evidence(FactEvidence::Configured);
        judgements.push(judgement.for_schemas(sound));
    }
    Ok(judgements)
}
