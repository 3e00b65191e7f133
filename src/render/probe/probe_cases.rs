//! Checks as test cases, one suite per group.

use super::curl::commands_of_check;
use crate::domain::probe::{CheckedService, ProbeDifference, ProbeTask, ProbeVerdict};
use crate::render::escape;
use crate::render::junit::{TestCase, TestOutcome, TestSuite, add_case};

/// The test cases. With `differences` from an accepted result, only these fail.
pub(crate) fn suites(
    task: &ProbeTask,
    checked: &[CheckedService],
    differences: Option<&[ProbeDifference]>,
) -> Vec<TestSuite> {
    let mut suites = Vec::new();
    for checked in checked {
        let message = escape::text(checked.judgement.message.as_bytes());
        let id = checked.check.id;
        let difference = differences.map(|all| all.iter().find(|difference| difference.id == id));
        let outcome = match (difference, checked.judgement.verdict) {
            (Some(Some(difference)), _) if !difference.is_new => {
                TestOutcome::Failed("the accepted failure is gone".to_owned())
            }
            (Some(Some(_)), _) | (None, ProbeVerdict::Fail) => TestOutcome::Failed(message.clone()),
            (_, ProbeVerdict::Inconclusive | ProbeVerdict::NotApplicable) => {
                TestOutcome::Skipped(message.clone())
            }
            _ => TestOutcome::Passed,
        };
        let mut details = vec![checked.check.title.to_owned(), message];
        if let Some(clause) = &checked.clause {
            details.push(format!("{}: {}", clause.clause, clause.rule));
        }
        if checked.is_failed() {
            details.extend(commands_of_check(task, checked.check));
        }
        let case =
            TestCase { name: checked.check.id.to_owned(), outcome, details: details.join("\n") };
        add_case(&mut suites, checked.check.group.as_str(), case);
    }
    suites
}
