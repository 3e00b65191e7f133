//! The report of a simulation for people.

use crate::domain::simulation::{Cell, Change, Difference};
use crate::render::escape;
use crate::render::simulation::{advice, matrix, sequence};
use crate::render::style::Palette;

/// What to show of a simulation.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// The cells, by schema.
    pub cells: &'a [Cell],
    /// True with each cell's sequence.
    pub timeline: bool,
    /// What is not as it was accepted, where there was something to compare with.
    pub differences: Option<&'a [Difference]>,
}

/// The whole report, for a terminal this wide; `None` takes lines of any length.
pub fn text(shown: Shown<'_>, width: Option<usize>, palette: Palette) -> String {
    let Shown { cells, timeline, differences } = shown;
    let mut parts = Vec::new();
    if timeline {
        parts.extend(cells.iter().map(|cell| sequence::text(cell, width, palette)));
    }
    parts.push(matrix::text(cells, width, palette));
    parts.push(matrix::legend(cells, palette));
    parts.push(headed("What to change, the worst first", advice::text(cells, width, palette), palette));
    parts.push(headed("Not applicable", advice::not_applicable(cells, width, palette), palette));
    if let Some(differences) = differences {
        parts.push(compared(differences, palette));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn headed(heading: &str, text: String, palette: Palette) -> String {
    if text.is_empty() { text } else { format!("{}\n{text}", palette.bold(heading)) }
}

/// What is not as it was accepted.
pub fn compared(differences: &[Difference], palette: Palette) -> String {
    if differences.is_empty() {
        return "Every cell is as it was accepted.\n".to_owned();
    }
    let line = |difference: &Difference| {
        let (schema, now) = (escape::text(difference.schema.as_bytes()), difference.now.as_str());
        let was = difference.accepted.map_or("not there", |verdict| verdict.as_str());
        let change = match difference.change() {
            Change::Worse => "worse",
            Change::Better => "better",
            Change::New => "new",
        };
        let now = palette.paint(matrix::style(difference.now), now);
        format!("  {change:<6}  {}  {schema}: {now}, accepted {was}\n", difference.scenario)
    };
    let lines: String = differences.iter().map(line).collect();
    format!("{}\n{lines}", palette.bold("Not as accepted"))
}
