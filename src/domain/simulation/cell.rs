//! The result of one scenario with one schema.

use crate::domain::simulation::history::History;
use crate::domain::simulation::judge::{Judgement, judge};
use crate::domain::simulation::scenario::Scenario;
use crate::domain::simulation::verdict::ScenarioVerdict;

/// One scenario executed with one schema: all takes, and the verdict on the worst one.
#[derive(Debug, Clone)]
pub struct Cell {
    pub(crate) schema: String,
    pub(crate) scenario: &'static Scenario,
    pub(crate) judgement: Judgement,
    /// The takes, in the order in which they were executed.
    pub(crate) takes: Vec<History>,
    /// The index of the worst take.
    pub(crate) worst: usize,
}

impl Cell {
    /// The cell of a scenario that was executed, with at least one take.
    pub(crate) fn from_takes(
        schema: &str,
        scenario: &'static Scenario,
        takes: Vec<History>,
    ) -> Self {
        let judged: Vec<_> = takes.iter().map(judge).collect();
        let mut worst = 0;
        for (index, judgement) in judged.iter().enumerate() {
            // If several takes are equally bad, the first one counts.
            if rank(judgement) > rank(&judged[worst]) {
                worst = index;
            }
        }
        // With several takes, the reason names the take that shows the failure.
        let mut judgement = judged[worst].clone();
        if takes.len() > 1
            && !takes[worst].take.is_empty()
            && judgement.verdict != ScenarioVerdict::Safe
        {
            judgement.why = format!("{}: {}", takes[worst].take, judgement.why);
        }
        Self { schema: schema.to_owned(), scenario, judgement, takes, worst }
    }

    /// The cell of a scenario that does not apply to the schema, and why.
    pub(crate) fn not_applicable(schema: &str, scenario: &'static Scenario, why: String) -> Self {
        let judgement = Judgement {
            verdict: ScenarioVerdict::NotApplicable,
            effects: 0,
            blocked_ms: None,
            why,
            excuse: None,
        };
        Self { schema: schema.to_owned(), scenario, judgement, takes: Vec::new(), worst: 0 }
    }

    /// The take with the worst verdict; `None` if the scenario was not executed.
    pub(crate) fn worst_take(&self) -> Option<&History> {
        self.takes.get(self.worst)
    }
}

/// The rank of a take, higher if it is worse. A failure is worse than what is excused, and a blocked
/// take is worse if its client waits longer.
fn rank(judgement: &Judgement) -> (bool, ScenarioVerdict, Option<u64>) {
    let verdict = judgement.verdict;
    let ms = if verdict == ScenarioVerdict::Blocked { judgement.blocked_ms } else { None };
    (judgement.is_failure(), verdict, ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::simulation::history::{ClientAnswer, Execution};
    use crate::domain::simulation::scenario::SCENARIOS;
    use crate::domain::simulation::verdict::Excuse;

    fn take(title: &str, effects: usize) -> History {
        let ran = Execution {
            worker: "w".into(),
            operation: "payment",
            effect: true,
            response: b"r".to_vec(),
        };
        History { take: title.into(), executions: vec![ran; effects], ..History::default() }
    }

    #[test]
    fn the_worst_take_counts_and_is_named() {
        let cell = Cell::from_takes(
            "s",
            &SCENARIOS[0],
            vec![take("one", 1), take("two", 2), take("three", 2)],
        );
        assert_eq!((cell.judgement.verdict, cell.worst), (ScenarioVerdict::Duplicate, 1));
        assert!(cell.judgement.why.starts_with("two: "), "{}", cell.judgement.why);
        let mut refused = take("error", 0);
        refused.answer("payment", ClientAnswer::Error("no".into()));
        assert_eq!(Cell::from_takes("s", &SCENARIOS[0], vec![take("one", 1), refused]).worst, 1);
    }

    #[test]
    fn a_failure_is_worse_than_what_is_excused() {
        let excused = History { excuse: Some(Excuse::Environment), ..take("excused", 3) };
        let cell = Cell::from_takes("s", &SCENARIOS[0], vec![excused, take("own", 2)]);
        assert!(cell.worst == 1 && cell.judgement.is_failure());
    }
}
