//! Frontiers that were accepted before: the known violations, for comparison.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::exploration::{Exploration, Violation};
use super::fault::{Assumptions, FaultBudget};

/// The accepted explorations, by the names of their schemas.
#[derive(Debug, Clone)]
pub(crate) struct AcceptedFrontiers {
    explorations: BTreeMap<String, AcceptedExploration>,
}

/// What was accepted of one exploration. Its durations and sizes are not compared.
#[derive(Debug, Clone)]
struct AcceptedExploration {
    workers: u8,
    payloads: u8,
    faults: BTreeMap<String, u8>,
    assume: BTreeSet<String>,
    /// True if it was explored with and without the assumptions, so that violations have causes.
    has_causes: bool,
    violations: BTreeSet<KnownViolation>,
    /// The hash of the files of each schema. Files of earlier releases do not have it.
    hashes: BTreeMap<String, String>,
}

/// A violation, or a goal that is not reached.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct KnownViolation {
    invariant: String,
    /// The faults with their counts; `None` for a goal.
    faults: Option<BTreeMap<String, u8>>,
    /// The name of the cause; `None` if only one search was made.
    cause: Option<String>,
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
    pub(crate) invariant: String,
    /// The faults with their counts; `None` for a goal that is not reached.
    pub(crate) faults: Option<BTreeMap<String, u8>>,
    pub(crate) cause: Option<String>,
    pub(crate) is_new: bool,
}

#[derive(Deserialize)]
struct FrontierDocument {
    format: u64,
    schemas: Vec<DocumentedSchema>,
}

#[derive(Deserialize)]
struct DocumentedSchema {
    schema: String,
    beside: Option<String>,
    workers: u8,
    faults: BTreeMap<String, u8>,
    assume: BTreeSet<String>,
    /// The name that `--output json` writes.
    harms: Vec<DocumentedViolation>,
    // Files of earlier releases do not have these.
    #[serde(default = "one")]
    payloads: u8,
    assumed: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    unreached: Vec<DocumentedGoal>,
    #[serde(default)]
    hashes: BTreeMap<String, String>,
}

/// The number of payloads of earlier releases.
fn one() -> u8 {
    1
}

#[derive(Deserialize)]
struct DocumentedGoal {
    goal: String,
}

#[derive(Deserialize)]
struct DocumentedViolation {
    invariant: String,
    minimal_faults: BTreeMap<String, u8>,
    cause: Option<String>,
}

impl AcceptedFrontiers {
    /// Reads a document that `--output json` wrote.
    ///
    /// # Errors
    /// The text is not such a document, or it has another format.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, String> {
        let document: FrontierDocument =
            serde_json::from_slice(json).map_err(|why| why.to_string())?;
        if document.format != 1 {
            return Err(format!(
                "format {} is not known: this idemctl reads format 1",
                document.format
            ));
        }
        let mut explorations = BTreeMap::new();
        for explored in document.schemas {
            let name = match &explored.beside {
                Some(beside) => format!("{} beside {beside}", explored.schema),
                None => explored.schema.clone(),
            };
            explorations.insert(name, AcceptedExploration::new(explored));
        }
        Ok(Self { explorations })
    }

    /// Why an exploration of these schemas with these bounds cannot show that nothing is worse than
    /// what was accepted; `None` if it can.
    pub(crate) fn smaller_than_accepted(
        &self,
        name: &str,
        bounds: ExplorationBounds,
    ) -> Option<String> {
        let accepted = self.explorations.get(name)?;
        if bounds.workers < accepted.workers {
            return Some(format!(
                "with {} workers, but this run has {}",
                accepted.workers, bounds.workers
            ));
        }
        if bounds.payloads < accepted.payloads {
            return Some(format!(
                "with --payloads {}, but this run has {}",
                accepted.payloads, bounds.payloads
            ));
        }
        for (fault, count) in &accepted.faults {
            let now = bounds.faults.of_name(fault).unwrap_or(0);
            if now < *count {
                return Some(format!("with {fault}={count}, but this run has {fault}={now}"));
            }
        }
        for assumption in bounds.assumptions.all() {
            if !accepted.assume.contains(assumption.as_str()) {
                return Some(format!(
                    "without assuming {0}, but this run assumes {0}",
                    assumption.as_str()
                ));
            }
        }
        if accepted.has_causes && !bounds.has_causes {
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
            let Some(accepted) = self.explorations.get(&exploration.name()) else { continue };
            for (schema, hash) in exploration.schemas.iter().zip(&exploration.hashes) {
                let is_changed = accepted.hashes.get(schema).is_some_and(|known| known != hash);
                if is_changed && !changed.contains(schema) {
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
            let mut had_causes = true;
            if let Some(accepted) = self.explorations.get(&name) {
                before = accepted.violations.clone();
                had_causes = accepted.has_causes;
            }
            if had_causes != exploration.assumed.is_some() && self.explorations.contains_key(&name)
            {
                now = without_causes(&now);
                before = without_causes(&before);
            }
            for violation in now.difference(&before) {
                new.push(FrontierDifference::new(&name, violation, true));
            }
            for violation in before.difference(&now) {
                gone.push(FrontierDifference::new(&name, violation, false));
            }
        }
        new.extend(gone);
        new
    }
}

impl AcceptedExploration {
    fn new(explored: DocumentedSchema) -> Self {
        let mut violations = BTreeSet::new();
        for found in explored.harms {
            violations.insert(KnownViolation {
                invariant: found.invariant,
                faults: Some(found.minimal_faults),
                cause: found.cause,
            });
        }
        for unreached in explored.unreached {
            violations.insert(KnownViolation {
                invariant: unreached.goal,
                faults: None,
                cause: None,
            });
        }
        Self {
            workers: explored.workers,
            payloads: explored.payloads,
            faults: explored.faults,
            assume: explored.assume,
            has_causes: explored.assumed.is_some(),
            violations,
            hashes: explored.hashes,
        }
    }
}

impl FrontierDifference {
    fn new(schema: &str, violation: &KnownViolation, is_new: bool) -> Self {
        let KnownViolation { invariant, faults, cause } = violation.clone();
        Self { schema: schema.to_owned(), invariant, faults, cause, is_new }
    }

    /// True if it is this violation, of an exploration with this name.
    pub(crate) fn is(&self, name: &str, violation: &Violation) -> bool {
        let has_cause = match (&self.cause, violation.cause) {
            (Some(accepted), Some(cause)) => accepted == cause.as_str(),
            _ => true,
        };
        has_cause
            && self.schema == name
            && self.invariant == violation.invariant.name
            && self.faults == Some(violation.faults.by_name())
    }

    /// `crash=1,expiry=1`, `no fault`, or `never` for a goal that is not reached.
    pub(crate) fn faults_in_words(&self) -> String {
        let Some(faults) = &self.faults else { return "never".to_owned() };
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
