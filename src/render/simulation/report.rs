//! The report of a simulation for people.

use crate::domain::simulation::{Cell, MatrixDifference, Story};
use crate::render::simulation::simulation_json::change;
use crate::render::simulation::{advice, matrix, sequence};
use crate::render::style::{Palette, View};
use crate::render::{escape, table};

/// A simulation and the options of its report.
#[derive(Clone, Copy)]
pub struct Simulation<'a> {
    pub cells: &'a [Cell],
    /// True if each cell's sequence is shown.
    pub timeline: bool,
    /// The cells that differ from the accepted ones; `None` if there was nothing to compare with.
    pub differences: Option<&'a [MatrixDifference]>,
}

/// The list of the scenarios, one per line.
pub fn list(stories: impl Iterator<Item = Story>, view: View) -> String {
    let rows = stories.map(|story| vec![story.name.to_owned(), story.summary.to_owned()]);
    table::grid(view, 0, &["SCENARIO", "STORY"], rows)
}

/// The report of a simulation.
pub fn text(simulation: Simulation<'_>, view: View) -> String {
    let Simulation { cells, timeline, differences } = simulation;
    let palette = view.palette;
    let mut parts = Vec::new();
    if timeline {
        parts.extend(cells.iter().map(|cell| sequence::text(cell, view)));
    }
    parts.push(matrix::text(cells, view));
    parts.push(matrix::legend(cells, palette));
    parts.push(headed("What to change, worst first", advice::text(cells, view), palette));
    parts.push(headed("Not applicable", advice::not_applicable(cells, view), palette));
    if let Some(differences) = differences {
        parts.push(compared(differences, palette));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn headed(heading: &str, text: String, palette: Palette) -> String {
    if text.is_empty() { text } else { format!("{}\n{text}", palette.bold(heading)) }
}

/// The cells that differ from the accepted ones, one per line.
pub fn compared(differences: &[MatrixDifference], palette: Palette) -> String {
    if differences.is_empty() {
        return "All results match the accepted file.\n".to_owned();
    }
    let mut text = format!("{}\n", palette.bold("Different from the accepted file"));
    for difference in differences {
        let schema = escape::text(difference.schema.as_bytes());
        let scenario = &difference.scenario;
        let change = change(difference);
        let now = palette.paint(matrix::style(difference.now), difference.now.as_str());
        let accepted = match difference.accepted {
            Some(verdict) => verdict.as_str(),
            None => "nothing",
        };
        text += &format!("  {change:<6}  {scenario}  {schema}: {now}, accepted {accepted}\n");
    }
    text
}
