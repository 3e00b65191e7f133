//! Races as test cases: one per strategy, in one suite per schema.

use super::{sentences, timeline};
use crate::domain::race::{RaceRun, RaceVerdict, Strategy};
use crate::render::junit::{TestCase, TestOutcome, TestSuite, add_case};
use crate::render::style::{Palette, View};

/// The test cases of each schema. Only the schema's own steps can fail.
pub(crate) fn suites(runs: &[RaceRun]) -> Vec<TestSuite> {
    let mut suites = Vec::new();
    for run in runs {
        add_case(&mut suites, &run.schema, case(run));
    }
    suites
}

fn case(run: &RaceRun) -> TestCase {
    let found = sentences::text(std::slice::from_ref(run), None);
    let found = found.trim_end();
    let outcome = match run.verdict() {
        _ if run.strategy != Strategy::Schema => TestOutcome::Passed,
        RaceVerdict::NoneSeen => TestOutcome::Passed,
        RaceVerdict::NotAtomic => TestOutcome::Failed(found.to_owned()),
        RaceVerdict::Void => TestOutcome::Skipped(found.to_owned()),
    };
    let view = View { palette: Palette::new(false), width: None };
    let details = match &outcome {
        TestOutcome::Failed(_) => timeline::text(run, view).unwrap_or_default(),
        TestOutcome::Skipped(_) => String::new(),
        TestOutcome::Passed => found.to_owned(),
    };
    TestCase { name: run.strategy.as_str().to_owned(), outcome, details }
}
