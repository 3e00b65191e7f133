//! The matrix of a simulation: schemas side by side, one line per scenario.

use strum::VariantArray as _;

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr as _;

use crate::domain::duration;
use crate::domain::simulation::{Cell, Excuse, ScenarioVerdict, Story};
use crate::render::escape;
use crate::render::style::{Palette, View};

/// The columns between two cells of a line.
const GAP: usize = 2;

/// The whole matrix: as many schemas side by side as fit, and the others below.
pub(super) fn text(cells: &[Cell], view: View) -> String {
    let View { palette, width } = view;
    let stories = stories(cells);
    let first = stories.iter().map(|story| story.name.len()).max().unwrap_or(0);
    let mut blocks = Vec::new();
    let mut open: Vec<MatrixColumn<'_>> = Vec::new();
    let mut used = first;
    for column in columns(cells) {
        // A block has at least one schema, even if that one is wider than the terminal.
        if let Some(width) = width
            && !open.is_empty()
            && used + GAP + column.width > width
        {
            blocks.push(block(&stories, first, &open, palette));
            open.clear();
            used = first;
        }
        used += GAP + column.width;
        open.push(column);
    }
    blocks.push(block(&stories, first, &open, palette));
    blocks.join("\n")
}

/// The meanings of the verdicts in the matrix.
pub(super) fn legend(cells: &[Cell], palette: Palette) -> String {
    let mut text = String::new();
    // The worst verdict comes first.
    for verdict in ScenarioVerdict::VARIANTS.iter().copied().rev() {
        if cells.iter().any(|cell| cell.judgement.verdict == verdict) {
            let word = palette.paint(style(verdict), &format!("{:<13}", verdict.as_str()));
            text += &format!("  {word}{}\n", verdict.meaning());
        }
    }
    for excuse in Excuse::VARIANTS {
        if cells.iter().any(|cell| cell.judgement.excuse == Some(*excuse)) {
            text += &format!("  {:<13}{}\n", excuse.as_str(), excuse.meaning());
        }
    }
    text
}

/// A cell's verdict in words: `blocked 30s`, `duplicate x3`.
pub(super) fn words(cell: &Cell) -> String {
    cell.judgement.verdict.as_str().to_owned() + &measure(cell)
}

/// The measure of a cell: how long it blocks, or how often the operation was executed, and why that is
/// no failure.
pub(super) fn measure(cell: &Cell) -> String {
    let judgement = &cell.judgement;
    let mut measure = match (judgement.verdict, judgement.blocked_ms, judgement.effects) {
        (ScenarioVerdict::Blocked, Some(ms), _) => format!(" {}", duration::short(ms)),
        // A duplicate without a number means two executions, the usual case.
        (ScenarioVerdict::Duplicate, _, effects) if effects > 2 => format!(" x{effects}"),
        _ => String::new(),
    };
    if let Some(excuse) = judgement.excuse {
        measure.push_str(&format!(" ({})", excuse.as_str()));
    }
    measure
}

/// The colour of a cell.
pub(super) fn style_of(cell: &Cell) -> Style {
    match cell.judgement.excuse {
        Some(_) => AnsiColor::Yellow.on_default(),
        None => style(cell.judgement.verdict),
    }
}

/// The colour of a verdict.
pub(super) fn style(verdict: ScenarioVerdict) -> Style {
    match verdict {
        ScenarioVerdict::NotApplicable => Style::new().dimmed(),
        ScenarioVerdict::Safe => AnsiColor::Green.on_default(),
        ScenarioVerdict::Refused => AnsiColor::Cyan.on_default(),
        ScenarioVerdict::Blocked => AnsiColor::Yellow.on_default(),
        ScenarioVerdict::Stuck
        | ScenarioVerdict::WrongAnswer
        | ScenarioVerdict::Duplicate
        | ScenarioVerdict::Overwritten => AnsiColor::Red.on_default().bold(),
    }
}

struct MatrixColumn<'a> {
    schema: String,
    cells: Vec<&'a Cell>,
    width: usize,
}

impl MatrixColumn<'_> {
    fn at(&self, story: &Story) -> (Style, String) {
        match self.cells.iter().find(|cell| cell.scenario == *story) {
            Some(cell) => (style_of(cell), words(cell)),
            None => (Style::new(), String::new()),
        }
    }
}

fn columns(cells: &[Cell]) -> Vec<MatrixColumn<'_>> {
    let mut columns: Vec<MatrixColumn<'_>> = Vec::new();
    for cell in cells {
        let schema = escape::text(cell.schema.as_bytes());
        let known = columns.iter().position(|column| column.schema == schema);
        let index = known.unwrap_or(columns.len());
        if index == columns.len() {
            let width = schema.width();
            columns.push(MatrixColumn { schema, cells: Vec::new(), width });
        }
        let column = &mut columns[index];
        column.width = column.width.max(words(cell).width());
        column.cells.push(cell);
    }
    columns
}

/// The scenarios in the order of the cells.
fn stories(cells: &[Cell]) -> Vec<Story> {
    let mut stories: Vec<Story> = Vec::new();
    for cell in cells {
        if !stories.contains(&cell.scenario) {
            stories.push(cell.scenario);
        }
    }
    stories
}

fn block(
    stories: &[Story],
    first: usize,
    columns: &[MatrixColumn<'_>],
    palette: Palette,
) -> String {
    let mut text = " ".repeat(first);
    let mut gap = " ".repeat(GAP);
    for column in columns {
        text.push_str(&gap);
        text.push_str(&palette.bold(&column.schema));
        gap = gap_after(&column.schema, column.width);
    }
    text.push('\n');
    for story in stories {
        let mut line = format!("{:<first$}", story.name);
        let mut gap = " ".repeat(GAP);
        for column in columns {
            let (style, words) = column.at(story);
            line.push_str(&gap);
            line.push_str(&palette.paint(style, &words));
            gap = gap_after(&words, column.width);
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// The spaces between a cell and the next one. They are counted without colours, and added only
/// before a next cell, so that no line ends with spaces.
fn gap_after(cell: &str, width: usize) -> String {
    " ".repeat(GAP + width.saturating_sub(cell.width()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::simulation::Judgement;

    fn cell(
        schema: &str,
        name: &'static str,
        verdict: ScenarioVerdict,
        blocked_ms: Option<u64>,
        effects: usize,
    ) -> Cell {
        let story = Story { name, summary: "", remedy: "" };
        let why = String::new();
        let judgement = Judgement { verdict, effects, blocked_ms, why, excuse: None };
        Cell { judgement, ..Cell::not_applicable(schema, story, String::new()) }
    }

    fn cells() -> Vec<Cell> {
        vec![
            cell("one", "first", ScenarioVerdict::Safe, None, 1),
            cell("one", "second", ScenarioVerdict::Blocked, Some(30_000), 1),
            cell("another", "first", ScenarioVerdict::Duplicate, None, 3),
            cell("another", "second", ScenarioVerdict::NotApplicable, None, 0),
        ]
    }

    fn plain(width: Option<usize>) -> View {
        View { palette: Palette::new(false), width }
    }

    #[test]
    fn columns_stand_below_their_schemas() {
        let expected = "        one          another\nfirst   safe         duplicate x3\nsecond  blocked 30s  n/a\n";
        assert_eq!(text(&cells(), plain(None)), expected);
    }

    #[test]
    fn what_does_not_fit_stands_below() {
        let narrow = text(&cells(), plain(Some(24)));
        assert_eq!(narrow.lines().filter(|line| line.starts_with("first")).count(), 2);
        assert!(narrow.lines().all(|line| line.width() <= 24), "{narrow}");
    }
}
