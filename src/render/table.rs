//! The one builder of tables: columns side by side, as wide as their longest cell or as they are told to be.

use anstyle::{Effects, Style};
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table as Cells,
    TableStyle, Width,
};

use unicode_width::UnicodeWidthStr as _;

use super::style::{Palette, View};

pub(super) const GAP: usize = 2;

/// Words up to this long are not folded, where there is room at all.
const MOST_WORD: usize = 12;

pub(super) struct Table {
    cells: Cells,
    palette: Palette,
}

impl Table {
    pub(super) fn new(palette: Palette) -> Self {
        let mut cells = Cells::new();
        cells.load_style(TableStyle::new()).set_content_arrangement(ContentArrangement::Disabled);
        if palette.is_on() {
            cells.enforce_styling();
        } else {
            cells.force_no_tty();
        }
        Self { cells, palette }
    }

    /// Folds cells so that no line is longer than `width` columns.
    fn fold(&mut self, width: usize) {
        if let Ok(width) = u16::try_from(width) {
            self.cells.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
    }

    pub(super) fn heading<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        let is_bold = self.palette.is_on();
        let cell = |name| {
            if is_bold { Cell::new(name).add_attribute(Attribute::Bold) } else { Cell::new(name) }
        };
        self.cells.add_row(names.into_iter().map(cell));
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        let cells: Vec<Cell> = cells.into_iter().map(Into::into).collect();
        // A cell that folds breaks the command line, which then leads to no server: commands belong into a hint.
        debug_assert!(
            cells.iter().all(|cell| !cell.content().contains("`idemctl ")),
            "a command line in a table"
        );
        self.cells.add_row(cells);
    }

    /// Gives a column a width of its own, once its rows are there.
    pub(super) fn fix_width(&mut self, column: usize, width: usize) {
        if let Some(column) = self.cells.column_mut(column) {
            column.set_constraint(ColumnConstraint::Absolute(fixed(width)));
        }
    }

    /// Aligns a column of numbers to the right, once its rows are there.
    pub(super) fn align_right(&mut self, column: usize) {
        if let Some(column) = self.cells.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }

    /// The lines, `indent` columns from the left.
    pub(super) fn text(mut self, indent: usize) -> String {
        let last = self.cells.column_count().saturating_sub(1);
        for (index, column) in self.cells.column_iter_mut().enumerate() {
            column.set_padding((0, if index == last { 0 } else { GAP as u16 }));
        }
        let indent = " ".repeat(indent);
        let named = |line| if self.palette.is_on() { in_own_names(line) } else { line };
        self.cells.lines().map(|line| format!("{indent}{}\n", named(line).trim_end())).collect()
    }
}

/// Text in a style of the palette, where there are colours.
pub(super) fn styled(palette: Palette, text: impl ToString, style: Style) -> Cell {
    let cell = Cell::new(text);
    if !palette.is_on() {
        return cell;
    }
    let bold = if style.get_effects().contains(Effects::BOLD) {
        cell.add_attribute(Attribute::Bold)
    } else {
        cell
    };
    match style.get_fg_color() {
        Some(anstyle::Color::Ansi(color)) => bold.fg(Color::AnsiValue(color as u8)),
        _ => bold,
    }
}

/// The first colours of a terminal by their own names: comfy-table names them by their numbers among 256, which terminals show
/// in other shades.
fn in_own_names(mut line: String) -> String {
    for color in 1..=6 {
        line = line.replace(&format!("\u{1b}[38;5;{color}m"), &format!("\u{1b}[3{color}m"));
    }
    line
}

/// Rows of text under a heading (none: no heading line), `indent` columns from the left, folded where the view ends.
pub(super) fn grid(
    view: View,
    indent: usize,
    heading: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let mut table = Table::new(view.palette);
    if let Some(width) = view.width {
        table.fold(width.saturating_sub(indent));
    }
    if !heading.is_empty() {
        table.heading(heading.iter().copied());
    }
    rows.for_each(|row| table.row(row));
    table.text(indent)
}

/// The same from the left edge, where only these columns fold, between words where there is room: the others hold what people
/// copy.
pub(super) fn grid_folding(
    view: View,
    heading: &[&str],
    rows: Vec<Vec<String>>,
    folds: &[&str],
) -> String {
    let mut table = Table::new(view.palette);
    if let Some(width) = view.width {
        table.fold(width);
    }
    table.heading(heading.iter().copied());
    let least: Vec<_> = (0..heading.len())
        .map(|at| {
            let of =
                if folds.contains(&heading[at]) { longest_word } else { |text: &str| text.width() };
            let widest =
                rows.iter().map(|row| of(&row[at])).chain([heading[at].width()]).max().unwrap_or(0);
            widest + if at + 1 < heading.len() { GAP } else { 0 }
        })
        .collect();
    rows.into_iter().for_each(|row| table.row(row));
    let Some(width) = view.width else { return table.text(0) };
    let has_room = least.iter().sum::<usize>() <= width;
    for ((column, heading), least) in table.cells.column_iter_mut().zip(heading).zip(least) {
        match folds.contains(heading) {
            false => column.set_constraint(ColumnConstraint::Absolute(fixed(least))),
            true if has_room => {
                column.set_constraint(ColumnConstraint::LowerBoundary(fixed(least)))
            }
            true => continue,
        };
    }
    table.text(0)
}

fn longest_word(text: &str) -> usize {
    text.split_whitespace().map(|word| word.width().min(MOST_WORD)).max().unwrap_or(0)
}

fn fixed(width: usize) -> Width {
    Width::Fixed(u16::try_from(width).unwrap_or(u16::MAX))
}
