//! Frontiers that were accepted before: the known violations, for comparison.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::exploration::Exploration;

/// The faults of a goal that is never reached, in the place of those of a violation.
const NEVER: &str = "never";

/// A violation: schema, invariant, faults. A goal that is not reached is one as well.
type KnownViolation = (String, String, String);

/// The accepted violations.
#[derive(Debug, Clone)]
pub(crate) struct AcceptedFrontiers {
    violations: BTreeSet<KnownViolation>,
}

/// A violation that was not accepted, or one that was accepted and no longer exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FrontierDifference {
    pub(crate) schema: String,
    pub(crate) invariant: String,
    pub(crate) faults: String,
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
    /// The name that `--output json` writes.
    harms: Vec<DocumentedViolation>,
    /// Files of earlier releases do not have it.
    #[serde(default)]
    unreached: Vec<DocumentedGoal>,
}

#[derive(Deserialize)]
struct DocumentedGoal {
    goal: String,
}

#[derive(Deserialize)]
struct DocumentedViolation {
    invariant: String,
    minimal_faults: Map<String, Value>,
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
        let mut accepted = Self { violations: BTreeSet::new() };
        for explored in document.schemas {
            let name = match explored.beside {
                Some(beside) => format!("{} beside {beside}", explored.schema),
                None => explored.schema,
            };
            for found in explored.harms {
                let mut faults = Vec::new();
                for (fault, count) in &found.minimal_faults {
                    faults.push(format!("{fault}={count}"));
                }
                accepted.violations.insert((name.clone(), found.invariant, in_words(faults)));
            }
            for unreached in explored.unreached {
                accepted.violations.insert((name.clone(), unreached.goal, NEVER.to_owned()));
            }
        }
        Ok(accepted)
    }

    /// The differences from the accepted violations, the new ones first. An accepted schema that is
    /// not explored now is not a difference.
    pub(crate) fn differences(&self, explorations: &[Exploration]) -> Vec<FrontierDifference> {
        let mut explored = BTreeSet::new();
        let mut now = BTreeSet::new();
        for exploration in explorations {
            explored.insert(exploration.name());
            now.extend(violations_of(exploration));
        }
        let mut differences = Vec::new();
        for violation in now.difference(&self.violations) {
            differences.push(FrontierDifference::new(violation, true));
        }
        for violation in self.violations.difference(&now) {
            let schema = &violation.0;
            if explored.contains(schema) {
                differences.push(FrontierDifference::new(violation, false));
            }
        }
        differences
    }
}

impl FrontierDifference {
    fn new(violation: &KnownViolation, is_new: bool) -> Self {
        let (schema, invariant, faults) = violation.clone();
        Self { schema, invariant, faults, is_new }
    }

    /// True if it is a goal that is not reached, in the place of a violation.
    pub(crate) fn is_goal(&self) -> bool {
        self.faults == NEVER
    }
}

fn violations_of(exploration: &Exploration) -> Vec<KnownViolation> {
    let mut violations = Vec::new();
    for violation in &exploration.violations {
        let mut faults = Vec::new();
        for (fault, count) in violation.faults.faults() {
            faults.push(format!("{}={count}", fault.as_str()));
        }
        violations.push((
            exploration.name(),
            violation.invariant.name.to_owned(),
            in_words(faults),
        ));
    }
    for unreached in exploration.unreached() {
        let goal = unreached.goal.as_str().to_owned();
        violations.push((exploration.name(), goal, NEVER.to_owned()));
    }
    violations
}

/// `crash=1,expiry=1`, or `no fault`.
fn in_words(mut faults: Vec<String>) -> String {
    // Sorted, so that equal faults are equal words whatever their order in the document is.
    faults.sort();
    if faults.is_empty() { "no fault".to_owned() } else { faults.join(",") }
}
