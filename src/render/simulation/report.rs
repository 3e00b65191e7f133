//! The report of a simulation for people.

use crate::domain::simulation::{Cell, MatrixDifference, Scenario};
use crate::render::simulation::{advice, matrix, sequence};
use crate::render::style::{Palette, View};
use crate::render::words;
use crate::render::{escape, table};

/// A simulation and the options of its report.
#[derive(Clone, Copy)]
pub struct Simulation<'a> {
    pub cells: &'a [Cell],
    /// True if each cell's sequence is shown.
    pub timeline: bool,
    /// The comparison with the accepted results; `None` if there is none.
    pub compared: Option<ComparedMatrix<'a>>,
}

/// A comparison with accepted results.
#[derive(Clone, Copy)]
pub struct ComparedMatrix<'a> {
    /// The cells that differ from the accepted ones.
    pub differences: &'a [MatrixDifference],
    /// The schemas whose files are not known to be the accepted ones.
    pub files: &'a [String],
}

/// The list of the scenarios, one per line.
pub fn list(scenarios: &[Scenario], view: View) -> String {
    let rows =
        scenarios.iter().map(|scenario| vec![scenario.name.clone(), scenario.summary.clone()]);
    table::grid(view, 0, &["SCENARIO", "STORY"], rows)
}

/// The report of a simulation.
pub fn text(simulation: Simulation<'_>, view: View) -> String {
    let Simulation { cells, timeline, compared } = simulation;
    let palette = view.palette;
    let failing = cells.iter().filter(|cell| cell.judgement.is_failure()).count();
    let mut parts = vec![format!("{failing} of {} failed\n", cells.len())];
    if timeline {
        parts.extend(cells.iter().map(|cell| sequence::text(cell, view)));
    }
    parts.push(matrix::text(cells, view));
    parts.push(matrix::legend(cells, view));
    parts.push(headed("What to change, worst first", advice::text(cells, view), palette));
    parts.push(headed("Not applicable", advice::not_applicable(cells, view), palette));
    if let Some(compared) = compared {
        parts.push(differences(compared, palette));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn headed(heading: &str, text: String, palette: Palette) -> String {
    if text.is_empty() { text } else { format!("{}\n{text}", palette.bold(heading)) }
}

/// The cells that differ from the accepted ones, one per line.
pub fn differences(compared: ComparedMatrix<'_>, palette: Palette) -> String {
    let mut text = String::new();
    for schema in compared.files {
        let schema = escape::text(schema.as_bytes());
        text += &format!("files of {schema}: not known to be the accepted ones\n");
    }
    if compared.differences.is_empty() {
        return text + words::ALL_ACCEPTED;
    }
    text += &format!("{}\n", palette.bold(words::DIFFERENT));
    for difference in compared.differences {
        let schema = escape::text(difference.schema.as_bytes());
        let scenario = &difference.scenario;
        let change = difference.change.as_str();
        let now = palette.paint(matrix::style(difference.now), difference.now.as_str());
        let accepted = match difference.accepted {
            Some(verdict) => verdict.as_str(),
            None => "nothing",
        };
        text += &format!("  {change:<7}  {scenario}  {schema}: {now}, accepted {accepted}\n");
    }
    text
}
