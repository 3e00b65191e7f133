//! Whether the steps of a schema themselves violate an invariant.

use crate::domain::doctor::counterexample::{Counterexample, FaultOutcome, phrase_of};
use crate::domain::doctor::doctor_check::{CheckGroup, DoctorCheck, SampleNeed};
use crate::domain::doctor::facts::DeploymentFacts;
use crate::domain::doctor::judgement::{CheckJudgement, FactEvidence};
use crate::domain::doctor::refusal::RefusedFact;

pub(in crate::domain::doctor) const CHECK: DoctorCheck = DoctorCheck {
    code: "schema-violations",
    group: CheckGroup::Schema,
    needs: SampleNeed::Records,
    title: "whether the steps of each schema in use keep the invariants of explore",
    consequence: "Ordinary faults are enough, such as a handler that fails, or a call that a client \
                  library sends again. No setting of the server prevents it.",
    remedy: "`idemctl explore --sandbox --schema SCHEMA` shows every violation on a temporary \
             Redis, and suggests a change of the scripts.",
    judge,
};

fn judge(facts: &DeploymentFacts) -> Vec<CheckJudgement> {
    if let Some(unseen) = facts.unseen_schemas() {
        return vec![CheckJudgement::unknown(unseen)];
    }
    let mut judgements = Vec::new();
    let mut sound = Vec::new();
    for (schema, outcome) in &facts.explorations {
        match outcome {
            FaultOutcome::Holds => sound.push(schema.clone()),
            FaultOutcome::Violates(counterexample) => judgements.push(violation(counterexample)),
            FaultOutcome::Unexplorable(why) => judgements.push(unknown(
                schema,
                why,
                format!(
                    "`idemctl explore` needs this, too. Add it to the schema, or pass --skip {}.",
                    CHECK.code
                ),
            )),
            FaultOutcome::Unknown(why) => judgements.push(unknown(
                schema,
                why,
                format!("Explore yourself: `idemctl explore --sandbox --schema {schema}`."),
            )),
        }
    }
    if !sound.is_empty() {
        let fact = format!(
            "with ordinary faults, explore finds no order of steps in which {} harms a client",
            sound.join(", ")
        );
        let judgement = CheckJudgement::ok(fact).with_evidence(FactEvidence::Configured);
        judgements.push(judgement.for_schemas(sound));
    }
    judgements
}

/// The consequence if the history has no fault.
const NO_FAULT: &str = "No fault is needed: requests at the same time are enough. No setting of the server prevents it.";

fn violation(found: &Counterexample) -> CheckJudgement {
    let schema = &found.schema;
    let phrase = phrase_of(&found.invariant);
    let fact =
        format!("a service that works like {schema} can fail on a healthy server: it {phrase}");
    let judgement = if found.executes_twice() {
        CheckJudgement::error(fact)
    } else {
        CheckJudgement::warning(fact)
    };
    let judgement = match found.faults.as_str() {
        "no fault" => judgement.with_consequence(NO_FAULT),
        _ => judgement,
    };
    judgement
        .with_evidence(FactEvidence::Configured)
        .with_remedy(CHECK.remedy.replace("SCHEMA", schema))
        .for_schemas(vec![schema.clone()])
        .shown_by(found.clone())
}

fn unknown(schema: &str, why: &str, instead: String) -> CheckJudgement {
    let why = format!("{schema} was not explored: {why}");
    let refusal = RefusedFact::unknown("explore", why, instead);
    CheckJudgement::unknown(refusal).for_schemas(vec![schema.to_owned()])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::doctor::judgement::CheckSeverity::{Error, Ok as Fine, Unknown, Warning};
    use crate::domain::doctor::tests::deployment;
    use crate::domain::samples::schema;

    fn violates(schema: &str, invariant: &str) -> (String, FaultOutcome) {
        let outcome = FaultOutcome::Violates(Counterexample {
            schema: schema.to_owned(),
            invariant: invariant.to_owned(),
            faults: "no fault".to_owned(),
            steps: 7,
            token: "1:x:s0".to_owned(),
        });
        (schema.to_owned(), outcome)
    }

    #[test]
    fn each_schema_with_a_violation_has_a_line_and_the_others_share_one() {
        let mut facts = deployment(Vec::new());
        assert_eq!(judge(&facts)[0].severity, Unknown, "nothing was explored");
        facts.schemas = vec![Arc::new(schema("express"))];
        let broken = FaultOutcome::Unknown("no server program".to_owned());
        facts.explorations = vec![
            violates("a", "one-effect"),
            ("b".to_owned(), FaultOutcome::Holds),
            violates("c", "owner-only"),
            ("d".to_owned(), broken.clone()),
            ("e".to_owned(), FaultOutcome::Holds),
            ("f".to_owned(), broken),
        ];
        let judged = judge(&facts);
        let mut lines = Vec::new();
        for judgement in &judged {
            lines.push((judgement.severity, judgement.schemas.join(" ")));
        }
        let expected =
            [(Error, "a"), (Warning, "c"), (Unknown, "d"), (Unknown, "f"), (Fine, "b e")];
        assert_eq!(lines, expected.map(|(severity, names)| (severity, names.to_owned())));
        assert_eq!(judged[0].counterexample.as_ref().unwrap().token, "1:x:s0");
        assert!(judged[0].remedy.as_ref().unwrap().contains("--schema a`"));
        assert!(judged[2].fact.contains("no server program"), "{}", judged[2].fact);
    }
}
