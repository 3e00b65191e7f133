//! A matrix of verdicts that was accepted earlier, and the comparison with it.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::domain::simulation::cell::Cell;
use crate::domain::simulation::verdict::ScenarioVerdict;

/// The accepted verdicts, by schema and scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AcceptedMatrix(BTreeMap<(String, String), ScenarioVerdict>);

/// A cell whose verdict differs from the accepted one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatrixDifference {
    pub(crate) schema: String,
    pub(crate) scenario: String,
    /// The accepted verdict; `None` if the accepted matrix has no such cell.
    pub(crate) accepted: Option<ScenarioVerdict>,
    pub(crate) now: ScenarioVerdict,
}

/// How a cell changed since its verdict was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CellChange {
    Worse,
    Better,
    /// The cell has no accepted verdict.
    New,
}

#[derive(Deserialize)]
struct MatrixDocument {
    format: u64,
    cells: Vec<MatrixCell>,
}

#[derive(Deserialize)]
struct MatrixCell {
    schema: String,
    scenario: String,
    verdict: String,
}

impl AcceptedMatrix {
    /// Parses the output of `simulate --output json`.
    ///
    /// # Errors
    /// The text is not JSON of this form, has another format number, or an unknown verdict.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, String> {
        let document: MatrixDocument =
            serde_json::from_slice(json).map_err(|why| why.to_string())?;
        if document.format != 1 {
            return Err(format!(
                "format {} is not known: this idemctl reads format 1",
                document.format
            ));
        }
        let mut verdicts = BTreeMap::new();
        for cell in document.cells {
            let verdict =
                cell.verdict.parse().map_err(|_| format!("`{}` is not a verdict", cell.verdict))?;
            verdicts.insert((cell.schema, cell.scenario), verdict);
        }
        Ok(Self(verdicts))
    }

    /// The cells whose verdicts differ from the accepted ones, with the worse ones first. Accepted
    /// cells that were not simulated now are ignored, so that part of a matrix can be compared.
    pub(crate) fn differences(&self, cells: &[Cell]) -> Vec<MatrixDifference> {
        let mut differences = Vec::new();
        for cell in cells {
            let schema = cell.schema.clone();
            let scenario = cell.scenario.name.to_owned();
            let accepted = self.0.get(&(schema.clone(), scenario.clone())).copied();
            let now = cell.judgement.verdict;
            if accepted != Some(now) {
                differences.push(MatrixDifference { schema, scenario, accepted, now });
            }
        }
        // A person looks for what became worse.
        differences.sort_by_key(|difference| {
            (difference.change() != CellChange::Worse, std::cmp::Reverse(difference.now))
        });
        differences
    }
}

impl MatrixDifference {
    pub(crate) fn change(&self) -> CellChange {
        match self.accepted {
            None => CellChange::New,
            Some(accepted) if self.now > accepted => CellChange::Worse,
            Some(_) => CellChange::Better,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::simulation::cell::Story;
    use crate::domain::simulation::judge::Judgement;

    fn cell(scenario: &'static str, verdict: ScenarioVerdict) -> Cell {
        let story = Story { name: scenario, summary: "", remedy: "" };
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
        AcceptedMatrix::parse(
            serde_json::json!({ "format": 1, "cells": cells }).to_string().as_bytes(),
        )
        .unwrap()
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
        let found: Vec<_> = accepted
            .differences(&now)
            .into_iter()
            .map(|difference| (difference.scenario.clone(), difference.change()))
            .collect();
        assert_eq!(found[0], ("c".to_owned(), CellChange::Worse));
        assert!(
            found.contains(&("b".to_owned(), CellChange::Better))
                && found.contains(&("d".to_owned(), CellChange::New))
        );
        assert_eq!(found.len(), 3, "what was not played is no difference");
    }

    #[test]
    fn a_text_that_is_not_a_matrix_is_rejected() {
        for wrong in ["", "[]", r#"{"format":2,"cells":[]}"#, r#"{"format":1}"#] {
            assert!(AcceptedMatrix::parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let unknown = r#"{"format":1,"cells":[{"schema":"s","scenario":"x","verdict":"fine"}]}"#;
        assert!(AcceptedMatrix::parse(unknown.as_bytes()).unwrap_err().contains("fine"));
    }
}
