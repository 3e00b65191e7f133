//! Simulations as test cases: one per scenario, in one suite per schema.

use super::sequence;
use crate::domain::simulation::{Cell, MatrixDifference, ScenarioVerdict};
use crate::render::junit::{TestCase, TestOutcome, TestSuite, add_case};
use crate::render::style::{Palette, View};

/// The test cases of each schema. With `differences` from an accepted result, only these fail.
pub(crate) fn suites(cells: &[Cell], differences: Option<&[MatrixDifference]>) -> Vec<TestSuite> {
    let mut suites = Vec::new();
    for cell in cells {
        add_case(&mut suites, &cell.schema, case(cell, differences));
    }
    suites
}

fn case(cell: &Cell, differences: Option<&[MatrixDifference]>) -> TestCase {
    let judgement = &cell.judgement;
    let verdict = judgement.verdict.as_str();
    let mut message = format!("{verdict}: {}", judgement.why);
    let is_failed = match differences {
        None => judgement.is_failure(),
        Some(differences) => {
            let found = differences.iter().find(|difference| {
                difference.schema == cell.schema && difference.scenario == cell.scenario.name
            });
            if let Some(difference) = found {
                message = format!("{}: {message}", difference.change.as_str());
            }
            found.is_some()
        }
    };
    let outcome = if is_failed {
        message = format!("{message}; {}", cell.scenario.remedy);
        TestOutcome::Failed(message)
    } else if judgement.verdict == ScenarioVerdict::NotApplicable {
        TestOutcome::Skipped(judgement.why.clone())
    } else {
        TestOutcome::Passed
    };
    let view = View { palette: Palette::new(false), width: None };
    let details = match outcome {
        TestOutcome::Skipped(_) => String::new(),
        _ if judgement.verdict == ScenarioVerdict::Safe => String::new(),
        _ => sequence::text(cell, view),
    };
    TestCase { name: cell.scenario.name.to_owned(), outcome, details }
}
