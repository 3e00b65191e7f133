//! Explorations as test cases: one per invariant, and one per goal.

use super::frontier::{ShownExplorations, history, not_asked_because};
use crate::domain::exploration::{Exploration, FrontierDifference, Goal, Invariant, Violation};
use crate::render::junit::{TestCase, TestOutcome, TestSuite};
use crate::render::style::{Palette, View};

/// The test cases of each exploration. With `differences` from an accepted result, only these fail.
pub(crate) fn suites(shown: ShownExplorations<'_>) -> Vec<TestSuite> {
    let mut suites = Vec::new();
    for exploration in shown.explorations {
        let mut cases = Vec::new();
        for invariant in &exploration.invariants {
            cases.push(of_invariant(exploration, invariant, shown));
        }
        // A replayed history reaches no goals.
        if let Some(steps) = &exploration.steps {
            for goal in &steps.goals {
                cases.push(of_goal(exploration, *goal, shown.differences));
            }
        }
        suites.push(TestSuite {
            name: exploration.name(),
            duration_ms: Some(exploration.wall_ms),
            cases,
        });
    }
    suites
}

fn of_invariant(
    exploration: &Exploration,
    invariant: &Invariant,
    shown: ShownExplorations<'_>,
) -> TestCase {
    let differences = shown.differences;
    let mut failing = Vec::new();
    let mut accepted = Vec::new();
    for violation in &exploration.violations {
        if violation.invariant.name != invariant.name {
            continue;
        }
        if fails(exploration, violation, differences) {
            failing.push(violation);
        } else {
            accepted.push(violation);
        }
    }
    let gone = gone(exploration, invariant.name, differences);
    let (outcome, violations) = if let Some(first) = failing.first() {
        let message = format!("expected: {}; broken by {}", invariant.sentence, first.faults);
        (TestOutcome::Failed(message), failing)
    } else if let Some(gone) = gone {
        (TestOutcome::Failed(gone), accepted)
    } else if exploration.not_asked.contains(&invariant.name) {
        (TestOutcome::Skipped(not_asked_because(invariant.name).to_owned()), accepted)
    } else if !exploration.is_complete() {
        let why = "not broken so far; --max-states ended the search";
        (TestOutcome::Skipped(why.to_owned()), accepted)
    } else {
        (TestOutcome::Passed, accepted)
    };
    let view = View { palette: Palette::new(false), width: None };
    let mut details = String::new();
    for violation in violations {
        details.push_str(&history(violation, shown.replay, view));
        details.push_str(&format!("  → {}\n", violation.remedy));
    }
    TestCase { name: invariant.name.to_owned(), outcome, details }
}

fn fails(
    exploration: &Exploration,
    violation: &Violation,
    differences: Option<&[FrontierDifference]>,
) -> bool {
    let Some(differences) = differences else { return violation.counts };
    let name = exploration.name();
    differences.iter().any(|difference| difference.is_new && difference.is(&name, violation))
}

/// The accepted violation, or the goal that was not reached, if it is gone.
fn gone(
    exploration: &Exploration,
    name: &str,
    differences: Option<&[FrontierDifference]>,
) -> Option<String> {
    let difference = difference_of(exploration, name, differences, false)?;
    Some(format!(
        "accepted ({}), but no longer found; write the accepted file again",
        difference.faults_in_words()
    ))
}

/// The difference in this invariant or goal that is new, or gone.
fn difference_of<'a>(
    exploration: &Exploration,
    name: &str,
    differences: Option<&'a [FrontierDifference]>,
    is_new: bool,
) -> Option<&'a FrontierDifference> {
    differences?.iter().find(|difference| {
        difference.is_new == is_new
            && difference.schema == exploration.name()
            && difference.violation.invariant == name
    })
}

fn of_goal(
    exploration: &Exploration,
    goal: Goal,
    differences: Option<&[FrontierDifference]>,
) -> TestCase {
    let name = goal.as_str().to_owned();
    let mut outcome = TestOutcome::Passed;
    if let Some(gone) = gone(exploration, &name, differences) {
        outcome = TestOutcome::Failed(gone);
    } else if !exploration.is_complete() {
        outcome = TestOutcome::Skipped("--max-states ended the search".to_owned());
    }
    let is_new =
        differences.is_none() || difference_of(exploration, &name, differences, true).is_some();
    for unreached in exploration.unreached() {
        if unreached.goal == goal && is_new {
            let why = unreached.why.as_deref().unwrap_or("an earlier goal is not reached");
            let noun = goal.noun();
            outcome =
                TestOutcome::Failed(format!("{noun} is never reached without a fault: {why}"));
        }
    }
    TestCase { name: format!("reaches-{name}"), outcome, details: String::new() }
}
