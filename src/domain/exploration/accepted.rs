//! Frontiers that were accepted before: the known violations, for comparison.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::exploration::{Exploration, Violation};
use super::fault::{Assumptions, FaultBudget};

/// The accepted explorations: a document that `--output json` wrote.
#[derive(Debug, Deserialize)]
pub(crate) struct AcceptedFrontiers {
    schemas: Vec<AcceptedExploration>,
}

/// What was accepted of one exploration. Its durations and sizes are not compared.
#[derive(Debug, Deserialize)]
struct AcceptedExploration {
    schema: String,
    beside: Option<String>,
    workers: u8,
    payloads: u8,
    faults: BTreeMap<String, u8>,
    assume: BTreeSet<String>,
    /// There if it was explored with and without the assumptions, so that violations have causes.
    assumed: Option<IgnoredAny>,
    harms: Vec<KnownViolation>,
    unreached: Vec<KnownViolation>,
    /// The hash of the files of each schema.
    hashes: BTreeMap<String, String>,
}

/// A violation, or a goal that is not reached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) struct KnownViolation {
    #[serde(alias = "goal")]
    pub(crate) invariant: String,
    /// The faults with their counts; `None` for a goal.
    #[serde(rename = "minimal_faults")]
    pub(crate) faults: Option<BTreeMap<String, u8>>,
    /// The name of the cause; `None` if only one search was made.
    pub(crate) cause: Option<String>,
}

/// The bounds of an exploration that is compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExplorationBounds {
    pub(crate) workers: u8,
    pub(crate) payloads: u8,
    pub(crate) faults: FaultBudget,
    pub(crate) assumptions: Assumptions,
    /// True if it is made with and without the assumptions.
    pub(crate) has_causes: bool,
}

/// A violation that was not accepted, or one that was accepted and no longer exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrontierDifference {
    pub(crate) schema: String,
    pub(crate) violation: KnownViolation,
    pub(crate) is_new: bool,
}

impl AcceptedFrontiers {
    /// The accepted exploration with this name.
    fn of(&self, name: &str) -> Option<&AcceptedExploration> {
        self.schemas.iter().find(|accepted| match &accepted.beside {
            Some(beside) => format!("{} beside {beside}", accepted.schema) == name,
            None => accepted.schema == name,
        })
    }

    /// Why an exploration of these schemas with these bounds cannot show that nothing is worse than
    /// what was accepted; `None` if it can.
    pub(crate) fn smaller_than_accepted(
        &self,
        name: &str,
        bounds: ExplorationBounds,
    ) -> Option<String> {
        let accepted = self.of(name)?;
        let mut counts = vec![
            ("workers", accepted.workers, bounds.workers),
            ("payloads", accepted.payloads, bounds.payloads),
        ];
        for (fault, count) in &accepted.faults {
            counts.push((fault, *count, bounds.faults.of_name(fault).unwrap_or(0)));
        }
        for (what, accepted, now) in counts {
            if now < accepted {
                return Some(format!("with {what}={accepted}, but this run has {what}={now}"));
            }
        }
        for name in bounds.assumptions.names() {
            if !accepted.assume.contains(name) {
                return Some(format!("without assuming {name}, but this run assumes {name}"));
            }
        }
        if accepted.assumed.is_some() && !bounds.has_causes {
            return Some(
                "without --faults and --assume, so that violations have causes, but this run has \
                one of these options"
                    .to_owned(),
            );
        }
        None
    }

    /// The names of the schemas whose files have changed since the exploration was accepted.
    pub(crate) fn changed_schemas(&self, explorations: &[Exploration]) -> Vec<String> {
        let mut changed = Vec::new();
        for exploration in explorations {
            let Some(accepted) = self.of(&exploration.name()) else { continue };
            for (schema, hash) in exploration.schemas.iter().zip(&exploration.hashes) {
                if accepted.hashes.get(schema) != Some(hash) && !changed.contains(schema) {
                    changed.push(schema.clone());
                }
            }
        }
        changed
    }

    /// The differences from the accepted violations, the new ones first. An accepted schema that is
    /// not explored now is not a difference.
    pub(crate) fn differences(&self, explorations: &[Exploration]) -> Vec<FrontierDifference> {
        let mut new = Vec::new();
        let mut gone = Vec::new();
        for exploration in explorations {
            let name = exploration.name();
            let mut now = violations_of(exploration);
            let mut before = BTreeSet::new();
            if let Some(accepted) = self.of(&name) {
                before.extend(accepted.harms.iter().chain(&accepted.unreached).cloned());
                if accepted.assumed.is_some() != exploration.assumed.is_some() {
                    now = without_causes(&now);
                    before = without_causes(&before);
                }
            }
            for violation in now.difference(&before).cloned() {
                new.push(FrontierDifference { schema: name.clone(), violation, is_new: true });
            }
            for violation in before.difference(&now).cloned() {
                gone.push(FrontierDifference { schema: name.clone(), violation, is_new: false });
            }
        }
        new.extend(gone);
        new
    }
}

impl FrontierDifference {
    /// True if it is this violation, of an exploration with this name.
    pub(crate) fn is(&self, name: &str, violation: &Violation) -> bool {
        let has_cause = match (&self.violation.cause, violation.cause) {
            (Some(accepted), Some(cause)) => accepted == cause.as_str(),
            _ => true,
        };
        has_cause
            && self.schema == name
            && self.violation.invariant == violation.invariant.name
            && self.violation.faults == Some(violation.faults.by_name())
    }

    /// `crash=1,expiry=1`, `no fault`, or `never` for a goal that is not reached.
    pub(crate) fn faults_in_words(&self) -> String {
        let Some(faults) = &self.violation.faults else { return "never".to_owned() };
        let mut words = Vec::new();
        for (fault, count) in faults {
            words.push(format!("{fault}={count}"));
        }
        if words.is_empty() { "no fault".to_owned() } else { words.join(",") }
    }
}

fn violations_of(exploration: &Exploration) -> BTreeSet<KnownViolation> {
    let mut violations = BTreeSet::new();
    for violation in &exploration.violations {
        violations.insert(KnownViolation {
            invariant: violation.invariant.name.to_owned(),
            faults: Some(violation.faults.by_name()),
            cause: violation.cause.map(|cause| cause.as_str().to_owned()),
        });
    }
    for unreached in exploration.unreached() {
        let invariant = unreached.goal.as_str().to_owned();
        violations.insert(KnownViolation { invariant, faults: None, cause: None });
    }
    violations
}

/// The violations of the search without assumptions. A set of faults that includes another of the
/// same invariant is only minimal under the assumptions.
fn without_causes(violations: &BTreeSet<KnownViolation>) -> BTreeSet<KnownViolation> {
    let mut minimal = BTreeSet::new();
    for violation in violations {
        let is_minimal = violations.iter().all(|other| {
            other.invariant != violation.invariant
                || other.faults == violation.faults
                || !includes(violation, other)
        });
        if is_minimal {
            minimal.insert(KnownViolation { cause: None, ..violation.clone() });
        }
    }
    minimal
}

/// True if the first violation has at least the faults of the other.
fn includes(violation: &KnownViolation, other: &KnownViolation) -> bool {
    let (Some(faults), Some(fewer)) = (&violation.faults, &other.faults) else { return false };
    fewer.iter().all(|(fault, count)| faults.get(fault).is_some_and(|known| known >= count))
}
