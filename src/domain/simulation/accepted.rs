//! A matrix of verdicts that was accepted earlier, and the comparison with it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use strum::IntoStaticStr;

use crate::domain::as_str::as_str;
use crate::domain::simulation::cell::Cell;
use crate::domain::simulation::verdict::ScenarioVerdict;

/// The accepted results: a document that `--output json` wrote.
#[derive(Debug, Deserialize)]
pub(crate) struct AcceptedMatrix {
    cells: Vec<AcceptedCell>,
    /// The hash of the files of each schema.
    #[serde(default)]
    hashes: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
struct AcceptedCell {
    schema: String,
    scenario: String,
    verdict: ScenarioVerdict,
    excuse: Option<String>,
}

/// A cell whose verdict differs from the accepted one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatrixDifference {
    pub(crate) schema: String,
    pub(crate) scenario: String,
    /// The accepted verdict; `None` if the accepted matrix has no such cell.
    pub(crate) accepted: Option<ScenarioVerdict>,
    pub(crate) now: ScenarioVerdict,
    pub(crate) change: CellChange,
}

/// How a cell changed since its verdict was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum CellChange {
    Worse,
    /// The verdict is milder, the files are the same, and no other cell of the schema is worse.
    Better,
    /// The verdict is milder, but perhaps only because a script lost a check.
    Changed,
    /// The cell has no accepted verdict.
    New,
}

as_str!(CellChange);

impl AcceptedMatrix {
    /// True if the files of a schema are known to be those of the accepted verdicts. `hashes` has
    /// the hash of the files of each schema.
    pub(crate) fn has_files(&self, schema: &str, hashes: &BTreeMap<String, String>) -> bool {
        let accepted = self.hashes.get(schema);
        accepted.is_some() && accepted == hashes.get(schema)
    }

    /// The cells whose verdicts differ from the accepted ones, with the worse ones first. Accepted
    /// cells that were not simulated now are ignored, so that part of a matrix can be compared.
    /// `hashes` has the hash of the files of each schema.
    pub(crate) fn differences(
        &self,
        cells: &[Cell],
        hashes: &BTreeMap<String, String>,
    ) -> Vec<MatrixDifference> {
        let mut differences: Vec<MatrixDifference> = Vec::new();
        for cell in cells {
            let schema = cell.schema.clone();
            let scenario = cell.scenario.name.clone();
            let accepted = self
                .cells
                .iter()
                .find(|accepted| accepted.schema == schema && accepted.scenario == scenario);
            let now = cell.judgement.verdict;
            let change = match accepted {
                None => CellChange::New,
                Some(accepted) if now > accepted.verdict => CellChange::Worse,
                Some(accepted) if now < accepted.verdict => CellChange::Changed,
                Some(accepted) if accepted.excuse.is_some() && cell.judgement.is_failure() => {
                    CellChange::Worse
                }
                Some(_) => continue,
            };
            let accepted = accepted.map(|accepted| accepted.verdict);
            differences.push(MatrixDifference { schema, scenario, accepted, now, change });
        }
        let mut worse = BTreeSet::new();
        for difference in &differences {
            if difference.change == CellChange::Worse {
                worse.insert(difference.schema.clone());
            }
        }
        for difference in &mut differences {
            if difference.change == CellChange::Changed
                && !worse.contains(&difference.schema)
                && self.has_files(&difference.schema, hashes)
            {
                difference.change = CellChange::Better;
            }
        }
        // A person looks for what became worse.
        differences.sort_by_key(|difference| {
            (difference.change != CellChange::Worse, std::cmp::Reverse(difference.now))
        });
        differences
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::accepted_report::parse_accepted;
    use crate::domain::simulation::judge::Judgement;
    use crate::domain::simulation::scenario::Scenario;

    fn cell(scenario: &'static str, verdict: ScenarioVerdict) -> Cell {
        let scenario = Scenario { name: scenario.to_owned(), ..Scenario::default() };
        let story = Box::leak(Box::new(scenario));
        let mut cell = Cell::not_applicable("mine", story, String::new());
        cell.judgement = Judgement { verdict, ..cell.judgement };
        cell
    }

    fn accepted(lines: &[(&str, &str)]) -> AcceptedMatrix {
        let cells: Vec<_> = lines
            .iter()
            .map(
                |(scenario, verdict)| serde_json::json!({ "schema": "mine", "scenario": scenario, "verdict": verdict }),
            )
            .collect();
        let hashes = serde_json::json!({ "mine": "1" });
        let document = serde_json::json!({ "format": 1, "cells": cells, "hashes": hashes });
        parse_accepted::<AcceptedMatrix>(document.to_string().as_bytes()).unwrap()
    }

    fn changes(of: &AcceptedMatrix, cells: &[Cell], hash: &str) -> Vec<(String, CellChange)> {
        let hashes = BTreeMap::from([("mine".to_owned(), hash.to_owned())]);
        let differences = of.differences(cells, &hashes).into_iter();
        differences.map(|difference| (difference.scenario, difference.change)).collect()
    }

    #[test]
    fn differences_are_listed_with_the_worse_first() {
        let accepted =
            accepted(&[("a", "safe"), ("b", "duplicate"), ("c", "safe"), ("e", "stuck")]);
        let now = [
            cell("a", ScenarioVerdict::Safe),
            cell("b", ScenarioVerdict::Safe),
            cell("c", ScenarioVerdict::Blocked),
            cell("d", ScenarioVerdict::Safe),
        ];
        let found = changes(&accepted, &now, "1");
        assert_eq!(found[0], ("c".to_owned(), CellChange::Worse));
        assert!(
            found.contains(&("b".to_owned(), CellChange::Changed))
                && found.contains(&("d".to_owned(), CellChange::New))
        );
        assert_eq!(found.len(), 3, "what was not played is no difference");
    }

    #[test]
    fn a_milder_verdict_is_better_only_with_the_same_files_and_nothing_worse() {
        let mut accepted = accepted(&[("a", "duplicate"), ("b", "safe")]);
        let milder = [cell("a", ScenarioVerdict::Safe), cell("b", ScenarioVerdict::Safe)];
        let change = |of: &AcceptedMatrix, hash| changes(of, &milder, hash)[0].1;
        assert_eq!(change(&accepted, "1"), CellChange::Better);
        assert_eq!(change(&accepted, "2"), CellChange::Changed);
        let worse = [cell("a", ScenarioVerdict::Safe), cell("b", ScenarioVerdict::Blocked)];
        assert_eq!(changes(&accepted, &worse, "1")[1].1, CellChange::Changed);
        accepted.hashes.clear();
        assert_eq!(change(&accepted, "1"), CellChange::Changed);
    }

    #[test]
    fn what_was_excused_and_fails_now_is_worse() {
        let cells = r#"{"schema":"mine","scenario":"a","verdict":"stuck","excuse":"environment"}"#;
        let json = format!(r#"{{"format":1,"cells":[{cells}]}}"#);
        let accepted = parse_accepted::<AcceptedMatrix>(json.as_bytes()).unwrap();
        let now = [cell("a", ScenarioVerdict::Stuck)];
        assert_eq!(changes(&accepted, &now, "1")[0].1, CellChange::Worse);
    }

    #[test]
    fn a_text_that_is_not_a_matrix_is_rejected() {
        for wrong in ["", "[]", r#"{"format":2,"cells":[]}"#, r#"{"format":1}"#] {
            assert!(parse_accepted::<AcceptedMatrix>(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let unknown = r#"{"format":1,"cells":[{"schema":"s","scenario":"x","verdict":"fine"}]}"#;
        assert!(parse_accepted::<AcceptedMatrix>(unknown.as_bytes()).unwrap_err().contains("fine"));
    }
}
