//! Problems that a simulation found and the suggested changes, the worst first.

use std::cmp::Reverse;

use crate::domain::simulation::{Cell, ScenarioVerdict};
use crate::render::escape;
use crate::render::fold::fold;
use crate::render::simulation::matrix::{measure, style};
use crate::render::style::View;

/// Cells with the same scenario, verdict and reason.
struct AdviceGroup<'a> {
    cells: Vec<&'a Cell>,
}

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
        let cell = group.cells[0];
        let row = cells.iter().position(|other| other.scenario == cell.scenario);
        (Reverse(cell.judgement.verdict), row)
    });
    let mut text = String::new();
    let mut remedied: Vec<&str> = Vec::new();
    for (index, group) in bad.iter().enumerate() {
        let cell = group.cells[0];
        let verdict = cell.judgement.verdict;
        let word = palette.paint(style(verdict), verdict.as_str());
        let heading = format!("{word}  {}: {}", palette.bold(&cell.scenario.name), group.schemas());
        text.push_str(&hanging(&heading, width));
        text.push_str(&indented(&escape::text(cell.judgement.why.as_bytes()), width));
        let name = cell.scenario.name.as_str();
        let next = bad.get(index + 1).map(|group| group.cells[0].scenario.name.as_str());
        // Each scenario has one remedy, printed after the last of its adjacent reasons.
        // A refused request does no harm, so the service needs no change.
        let is_hurt = cell.judgement.verdict > ScenarioVerdict::Refused;
        if is_hurt && next != Some(name) && !remedied.contains(&name) {
            remedied.push(name);
            text.push_str(&indented(
                &format!("{} {}", palette.bold("→"), cell.scenario.remedy),
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
        let cell = group.cells[0];
        let why = escape::text(cell.judgement.why.as_bytes());
        let line = format!("{}: {} ({why})", cell.scenario.name, group.schemas());
        text.push_str(&indented(&view.palette.dim(&line), view.width));
    }
    text
}

fn groups<'a>(cells: impl Iterator<Item = &'a Cell>) -> Vec<AdviceGroup<'a>> {
    let mut groups: Vec<AdviceGroup<'a>> = Vec::new();
    for cell in cells {
        match groups.iter_mut().find(|group| group.takes(cell)) {
            Some(group) => group.cells.push(cell),
            None => groups.push(AdviceGroup { cells: vec![cell] }),
        }
    }
    groups
}

impl AdviceGroup<'_> {
    /// True if the cell has the scenario, verdict and reason of this group.
    fn takes(&self, cell: &Cell) -> bool {
        let first = self.cells[0];
        first.scenario.name == cell.scenario.name
            && first.judgement.verdict == cell.judgement.verdict
            && first.judgement.why == cell.judgement.why
    }

    /// The names of the schemas, each with the measure of its cell.
    fn schemas(&self) -> String {
        let mut schemas = Vec::new();
        for cell in &self.cells {
            schemas.push(escape::text(cell.schema.as_bytes()) + &measure(cell));
        }
        schemas.join(", ")
    }
}

fn indented(text: &str, width: Option<usize>) -> String {
    let mut lines = String::new();
    for line in fold(text, width.map(|width| width.saturating_sub(2))) {
        lines += &format!("  {line}\n");
    }
    lines
}

/// Folds a text whose first line is at the margin and whose other lines are indented.
fn hanging(text: &str, width: Option<usize>) -> String {
    let text = indented(text, width);
    text.strip_prefix("  ").unwrap_or(&text).to_owned()
}
