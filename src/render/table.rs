//! The only builder of tables: columns side by side, with the width of their longest cell or a
//! given width.

use anstyle::{Effects, Style};
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table as Cells,
    TableStyle, Width,
};

use unicode_width::UnicodeWidthStr as _;

use super::style::{Palette, View};

/// The columns between two columns of a table.
pub(super) const GAP: usize = 2;

/// Words up to this length are not folded if there is room.
const MAX_WORD: usize = 12;

/// A table that is being filled.
pub(super) struct Table {
    cells: Cells,
    palette: Palette,
}

impl Table {
    /// An empty table.
    pub(super) fn new(palette: Palette) -> Self {
        let mut cells = Cells::new();
        // comfy-table would detect a terminal by itself. The view already decided about width and
        // colours.
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

    /// Adds the heading.
    pub(super) fn heading<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        let mut cells = Vec::new();
        for name in names {
            let cell = Cell::new(name);
            let is_bold = self.palette.is_on();
            cells.push(if is_bold { cell.add_attribute(Attribute::Bold) } else { cell });
        }
        self.cells.add_row(cells);
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        let cells: Vec<Cell> = cells.into_iter().map(Into::into).collect();
        // A folded command line breaks: pasted into a shell, only its first line runs. Commands
        // belong in hints.
        debug_assert!(
            cells.iter().all(|cell| !cell.content().contains("`idemctl ")),
            "a command line in a table"
        );
        self.cells.add_row(cells);
    }

    /// Aligns a column of numbers to the right. Call it after all rows are added.
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
        let mut text = String::new();
        for line in self.cells.lines() {
            let line = if self.palette.is_on() { in_own_names(line) } else { line };
            // Trailing spaces would wrap on narrow terminals and pollute copied text.
            text += &format!("{indent}{}\n", line.trim_end());
        }
        text
    }
}

/// A cell in a style of the palette, if there are colours.
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

/// Replaces indexed colours with the basic ones. comfy-table uses the 256-colour palette, in which
/// terminals show other shades than the operator configured.
fn in_own_names(mut line: String) -> String {
    for color in 1..=6 {
        line = line.replace(&format!("\u{1b}[38;5;{color}m"), &format!("\u{1b}[3{color}m"));
    }
    line
}

/// Rows below a heading, `indent` columns from the left, folded at the width of the view. An empty
/// heading prints none.
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
    for row in rows {
        table.row(row);
    }
    table.text(indent)
}

/// Like [`grid`] at the left edge, but only the columns in `folds` fold, and between words if there
/// is room. The other columns contain text that people copy.
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
    // The least width of each column, with the gap after it.
    let mut min_widths = Vec::new();
    for (index, name) in heading.iter().enumerate() {
        let mut widest = name.width();
        for row in &rows {
            let cell = &row[index];
            let least = if folds.contains(name) { longest_word(cell) } else { cell.width() };
            widest = widest.max(least);
        }
        let gap = if index + 1 < heading.len() { GAP } else { 0 };
        min_widths.push(widest + gap);
    }
    for row in rows {
        table.row(row);
    }
    let Some(width) = view.width else { return table.text(0) };
    let has_room = min_widths.iter().sum::<usize>() <= width;
    for (index, column) in table.cells.column_iter_mut().enumerate() {
        let least = fixed(min_widths[index]);
        if !folds.contains(&heading[index]) {
            column.set_constraint(ColumnConstraint::Absolute(least));
        } else if has_room {
            column.set_constraint(ColumnConstraint::LowerBoundary(least));
        }
    }
    table.text(0)
}

fn longest_word(text: &str) -> usize {
    text.split_whitespace().map(|word| word.width().min(MAX_WORD)).max().unwrap_or(0)
}

fn fixed(width: usize) -> Width {
    Width::Fixed(u16::try_from(width).unwrap_or(u16::MAX))
}
