//! The matrix of a simulation: schemas side by side, one line per scenario.

use strum::VariantArray as _;

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr as _;

use crate::domain::duration;
use crate::domain::simulation::{Cell, Excuse, ScenarioVerdict};
use crate::render::escape;
use crate::render::page::Page;
use crate::render::style::{Palette, View};
use crate::render::table::{GAP, Table, styled};

/// The whole matrix: as many schemas side by side as fit, and the others below. The cells are ordered
/// by schema, and each schema has every scenario.
pub(super) fn text(cells: &[Cell], view: View) -> String {
    let schemas: Vec<_> = cells.chunk_by(|one, next| one.schema == next.schema).collect();
    let mut fitting = schemas.len().max(1);
    if let Some(columns) = view.width {
        let names = cells.iter().map(|cell| cell.scenario.name.width()).max().unwrap_or(0);
        let widest = schemas.iter().map(|column| width(column)).max().unwrap_or(0);
        // A block has at least one schema, even if that one is wider than the terminal.
        fitting = (columns.saturating_sub(names) / (GAP + widest)).max(1);
    }
    let blocks: Vec<_> =
        schemas.chunks(fitting).map(|columns| block(columns, view.palette)).collect();
    blocks.join("\n")
}

/// The width of the column of one schema.
fn width(column: &[Cell]) -> usize {
    let mut width = escape::text(column[0].schema.as_bytes()).width();
    for cell in column {
        width = width.max(words(cell).width());
    }
    width
}

fn block(columns: &[&[Cell]], palette: Palette) -> String {
    let mut table = Table::new(palette);
    let mut heading = vec![String::new()];
    for column in columns {
        heading.push(escape::text(column[0].schema.as_bytes()));
    }
    table.heading(heading.iter().map(String::as_str));
    for (index, first) in columns[0].iter().enumerate() {
        let mut row = vec![first.scenario.name.clone().into()];
        for column in columns {
            row.push(styled(palette, words(&column[index]), style_of(&column[index])));
        }
        table.row(row);
    }
    table.text(0)
}

/// The meanings of the verdicts in the matrix.
pub(super) fn legend(cells: &[Cell], view: View) -> String {
    let mut page = Page::new(view);
    // The worst verdict comes first.
    for verdict in ScenarioVerdict::VARIANTS.iter().copied().rev() {
        if cells.iter().any(|cell| cell.judgement.verdict == verdict) {
            let word = format!("{:<13}", verdict.as_str());
            let word = view.palette.paint(style(verdict), &word);
            page.beside(&format!("  {word}"), 15, verdict.meaning());
        }
    }
    for excuse in Excuse::VARIANTS {
        if cells.iter().any(|cell| cell.judgement.excuse == Some(*excuse)) {
            page.beside(&format!("  {:<13}", excuse.as_str()), 15, excuse.meaning());
        }
    }
    page.text
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::simulation::{Judgement, Scenario};

    fn cell(
        schema: &str,
        name: &'static str,
        verdict: ScenarioVerdict,
        blocked_ms: Option<u64>,
        effects: usize,
    ) -> Cell {
        let scenario = Scenario { name: name.to_owned(), ..Scenario::default() };
        let story = Box::leak(Box::new(scenario));
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
