//! Problems that a simulation found and the suggested changes, the worst first.

use std::cmp::Reverse;

use crate::domain::simulation::{Cell, ScenarioVerdict};
use crate::render::escape;
use crate::render::fold::lines;
use crate::render::simulation::matrix::{measure, style};
use crate::render::style::View;

/// A paragraph for each scenario that did not end safely, with the reasons. What the schema cannot
/// prevent is left out.
pub(super) fn text(cells: &[Cell], view: View) -> String {
    let View { palette, width } = view;
    let is_shown = |cell: &&Cell| {
        cell.judgement.verdict > ScenarioVerdict::Safe && cell.judgement.excuse.is_none()
    };
    let mut bad = groups(cells.iter().filter(is_shown));
    // Groups with the same verdict keep the order of the scenarios in the matrix.
    bad.sort_by_key(|group| {
        let cell = group[0];
        let row = cells.iter().position(|other| other.scenario == cell.scenario);
        (Reverse(cell.judgement.verdict), row)
    });
    let mut text = String::new();
    let mut remedied: Vec<&str> = Vec::new();
    for group in bad {
        let cell = group[0];
        let verdict = cell.judgement.verdict;
        let word = palette.paint(style(verdict), verdict.as_str());
        let name = palette.bold(&cell.scenario.name);
        text.push_str(&lines(&format!("{word}  {name}: {}", schemas(&group)), 0, width));
        text.push_str(&lines(&escape::text(cell.judgement.why.as_bytes()), 2, width));
        let name = cell.scenario.name.as_str();
        // Each scenario has one remedy. A refused request does no harm, so the service needs no
        // change.
        if verdict > ScenarioVerdict::Refused && !remedied.contains(&name) {
            remedied.push(name);
            text.push_str(&lines(
                &format!("{} {}", palette.bold("→"), cell.scenario.remedy),
                2,
                width,
            ));
        }
    }
    text
}

/// The scenarios that do not apply to a schema, with the reasons.
pub(super) fn not_applicable(cells: &[Cell], view: View) -> String {
    let skipped = cells.iter().filter(|cell| cell.takes.is_empty());
    let mut text = String::new();
    for group in groups(skipped) {
        let cell = group[0];
        let why = escape::text(cell.judgement.why.as_bytes());
        let line = format!("{}: {} ({why})", cell.scenario.name, schemas(&group));
        text.push_str(&lines(&view.palette.dim(&line), 2, view.width));
    }
    text
}

/// The cells in groups with the same scenario, verdict and reason.
fn groups<'a>(cells: impl Iterator<Item = &'a Cell>) -> Vec<Vec<&'a Cell>> {
    let mut groups: Vec<Vec<&'a Cell>> = Vec::new();
    for cell in cells {
        let is_its = |group: &&mut Vec<&Cell>| {
            group[0].scenario.name == cell.scenario.name
                && group[0].judgement.verdict == cell.judgement.verdict
                && group[0].judgement.why == cell.judgement.why
        };
        match groups.iter_mut().find(is_its) {
            Some(group) => group.push(cell),
            None => groups.push(vec![cell]),
        }
    }
    groups
}

/// The names of the schemas, each with the measure of its cell.
fn schemas(group: &[&Cell]) -> String {
    let mut schemas = Vec::new();
    for cell in group {
        schemas.push(escape::text(cell.schema.as_bytes()) + &measure(cell));
    }
    schemas.join(", ")
}
