//! One line of the page: a judgement with its check, its history, and its acceptance.

use serde::Serialize;

use super::counterexample::{Counterexample, FaultOutcome};
use super::doctor_check::DoctorCheck;
use super::judgement::{CheckJudgement, CheckSeverity, ModelledFault};
use super::refusal::RefusedFact;
use crate::domain::covered::Covered;

/// A judgement of a check, completed by what `explore` found and what the operator accepted.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) check: &'static DoctorCheck,
    pub(crate) judgement: CheckJudgement,
    /// The shortest history of each schema, the most harmful first.
    pub(crate) counterexamples: Vec<Counterexample>,
    /// The schemas in which `explore` finds no violation by the fault.
    pub(crate) unharmed: Vec<String>,
    /// The schemas of which `explore` shows nothing.
    pub(crate) unexplored: Vec<UnexploredSchema>,
    pub(crate) accepted: Option<Acceptance>,
}

/// A schema that could not be explored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct UnexploredSchema {
    pub(crate) schema: String,
    pub(crate) why: String,
}

/// A finding that an operator accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Acceptance {
    #[serde(skip)]
    pub(super) code: String,
    pub(crate) reason: String,
    /// The first day on which it is reported again, e.g. `2027-02-26`.
    pub(crate) expires: String,
    /// True if that day has come.
    pub(crate) is_expired: bool,
}

impl Statement {
    pub(super) fn new(check: &'static DoctorCheck, judgement: CheckJudgement) -> Self {
        Self {
            check,
            counterexamples: judgement.counterexample.iter().cloned().collect(),
            judgement,
            unharmed: Vec::new(),
            unexplored: Vec::new(),
            accepted: None,
        }
    }

    /// What can happen; `None` if there is nothing to fear, or nothing is known.
    pub(crate) fn consequence(&self) -> Option<&str> {
        self.has_advice().then_some(self.check.consequence)
    }

    /// What to do; `None` if there is nothing to do. A command line names the schemas that it
    /// concerns.
    pub(crate) fn remedy(&self) -> Option<String> {
        let advice = self.advice()?;
        Some(match &self.judgement.schemas[..] {
            [] => advice,
            [schema] => advice.replace("SCHEMA", schema),
            several => {
                advice.replace("--schema SCHEMA", &format!("--schema {}", several.join(",")))
            }
        })
    }

    fn advice(&self) -> Option<String> {
        let code = self.check.code;
        if let Some(RefusedFact { rule, instead, .. }) = &self.judgement.refusal {
            return Some(match (rule, instead) {
                (_, Some(instead)) => instead.clone(),
                (Some(rule), None) => {
                    format!("Allow it with the ACL rule {rule}, or pass --skip {code}.")
                }
                (None, None) => format!("No ACL rule allows it. Pass --skip {code}."),
            });
        }
        self.has_advice().then(|| self.check.remedy.to_owned())
    }

    fn has_advice(&self) -> bool {
        !matches!(self.judgement.severity, CheckSeverity::Ok | CheckSeverity::Unknown)
    }

    /// True for a warning or an error that no acceptance silences.
    pub(crate) fn is_alarm(&self) -> bool {
        let is_finding =
            matches!(self.judgement.severity, CheckSeverity::Warning | CheckSeverity::Error);
        let is_silenced = self.accepted.as_ref().is_some_and(|accepted| !accepted.is_expired);
        is_finding && !is_silenced
    }

    /// Adds what `explore` found with the fault of this judgement alone, by schema. Without a
    /// violation in any schema in use, the fault does no harm here, so it is not a finding.
    /// `are_all` is true if these are certainly all schemas in use.
    pub(crate) fn explain(&mut self, outcomes: &[(String, FaultOutcome)], are_all: bool) {
        for (schema, outcome) in outcomes {
            let concerned = &self.judgement.schemas;
            if !concerned.is_empty() && !concerned.contains(schema) {
                continue;
            }
            match outcome {
                FaultOutcome::Violates(counterexample) => {
                    self.counterexamples.push(counterexample.clone());
                }
                FaultOutcome::Holds => self.unharmed.push(schema.clone()),
                FaultOutcome::Unexplorable(why) | FaultOutcome::Unknown(why) => {
                    let (schema, why) = (schema.clone(), why.clone());
                    self.unexplored.push(UnexploredSchema { schema, why });
                }
            }
        }
        self.counterexamples.sort_by_key(Counterexample::rank);
        let has_happened = self.judgement.fault.is_some_and(ModelledFault::has_happened);
        let harms = !self.counterexamples.is_empty() || !self.unexplored.is_empty();
        if are_all && !has_happened && !harms && !self.unharmed.is_empty() {
            self.judgement.severity = CheckSeverity::Ok;
            let fact = &self.judgement.fact;
            self.judgement.fact =
                format!("{fact}; explore finds no violation by it in {}", self.unharmed.join(", "));
        }
    }
}

/// What these statements cover. Each that is unknown is a gap.
pub(crate) fn covered<'a>(statements: impl IntoIterator<Item = &'a Statement>) -> Covered {
    let mut covered = Covered::default();
    for statement in statements {
        if statement.judgement.severity == CheckSeverity::Unknown {
            covered.leave_out(statement.check.code, &statement.judgement.fact);
        }
    }
    covered
}

/// Leaves out what a check does not know, if it has an alarm all the same, and what is in order, if
/// it does not know everything: on a cluster, one node may answer, and another one not.
pub(crate) fn keep_worst(statements: &mut Vec<Statement>) {
    let of = |is: &dyn Fn(&&Statement) -> bool| -> Vec<_> {
        statements.iter().filter(is).map(|statement| statement.check.code).collect()
    };
    let alarms = of(&|statement| statement.is_alarm());
    let unknown = of(&|statement| statement.judgement.severity == CheckSeverity::Unknown);
    statements.retain(|statement| match statement.judgement.severity {
        CheckSeverity::Unknown => !alarms.contains(&statement.check.code),
        CheckSeverity::Ok => !unknown.contains(&statement.check.code),
        _ => true,
    });
}
