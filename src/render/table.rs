//! The only builder of tables: columns side by side, with the width of their longest cell or a
//! given width.

use std::borrow::Cow;

use anstyle::{Effects, Style};
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ContentArrangement, Table as Cells, TableStyle,
};

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::fold::fold;
use super::style::{Palette, View};

/// The columns between two columns of a table.
pub(super) const GAP: usize = 2;

/// The least columns of a cell that is shortened.
const SHORT: usize = 16;

/// The least columns of a cell that is folded. Narrower text is hard to read.
const FOLDED: usize = 22;

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

type Heading = Cow<'static, str>;

/// A column of a table about values of one type.
pub(crate) struct Column<T> {
    heading: Heading,
    /// Columns of the highest rank are the first that a narrow terminal leaves out. Those of rank 0
    /// always stay.
    rank: u8,
    fit: Fit,
    cell: fn(&T) -> String,
    style: fn(&T) -> Style,
}

/// What becomes of a cell that has less room than it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// It gets the room, or the column is left out.
    Whole,
    /// A number, aligned to the right; else like `Whole`.
    Right,
    /// Its middle is left out, because both ends tell keys apart.
    Middle,
    /// It continues on further lines.
    Fold,
}

impl<T> Column<T> {
    fn new(heading: Heading, rank: u8, fit: Fit, cell: fn(&T) -> String) -> Self {
        Self { heading, rank, fit, cell, style: |_| Style::new() }
    }

    pub(crate) fn text(heading: impl Into<Heading>, rank: u8, cell: fn(&T) -> String) -> Self {
        Self::new(heading.into(), rank, Fit::Whole, cell)
    }

    pub(crate) fn number(heading: impl Into<Heading>, rank: u8, cell: fn(&T) -> String) -> Self {
        Self::new(heading.into(), rank, Fit::Right, cell)
    }

    pub(crate) fn shortened(heading: impl Into<Heading>, rank: u8, cell: fn(&T) -> String) -> Self {
        Self::new(heading.into(), rank, Fit::Middle, cell)
    }

    pub(crate) fn folded(heading: impl Into<Heading>, rank: u8, cell: fn(&T) -> String) -> Self {
        Self::new(heading.into(), rank, Fit::Fold, cell)
    }

    pub(crate) fn painted(self, style: fn(&T) -> Style) -> Self {
        Self { style, ..self }
    }
}

/// One row per value, at the width of the view; empty without values. A file or a pipe gets every
/// column and every cell in full.
pub(crate) fn of_columns<T>(view: View, columns: &[Column<T>], values: &[T]) -> String {
    if values.is_empty() {
        return String::new();
    }
    let mut rooms = Vec::with_capacity(columns.len());
    for column in columns {
        let mut natural = column.heading.width();
        for value in values {
            natural = natural.max((column.cell)(value).width());
        }
        let least = match column.fit {
            Fit::Whole | Fit::Right => natural,
            Fit::Middle => natural.min(SHORT).max(column.heading.width()),
            Fit::Fold => natural.min(FOLDED).max(column.heading.width()),
        };
        rooms.push(Room { natural, least, rank: column.rank });
    }
    let widths = fit(view.width, &rooms);
    let shown: Vec<_> = columns.iter().zip(widths).filter_map(|(of, w)| Some((of, w?))).collect();
    let mut table = Table::new(view.palette);
    table.heading(shown.iter().map(|(column, _)| &*column.heading));
    for value in values {
        let mut cells = Vec::with_capacity(shown.len());
        for (column, width) in &shown {
            let text = (column.cell)(value);
            let text = match column.fit {
                Fit::Whole | Fit::Right => text,
                Fit::Middle => shortened(&text, *width),
                Fit::Fold if text.width() <= *width => text,
                Fit::Fold => fold(&text, Some(*width)).join("\n"),
            };
            cells.push(styled(view.palette, text, (column.style)(value)));
        }
        table.row(cells);
    }
    for (index, (column, _)) in shown.iter().enumerate() {
        if column.fit == Fit::Right {
            table.align_right(index);
        }
    }
    table.text(0)
}

/// The room that a column wants, in columns of the terminal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    /// Its widest cell.
    pub(super) natural: usize,
    /// What it needs at least.
    pub(super) least: usize,
    pub(super) rank: u8,
}

/// The width of each column; `None` for a column that is left out. In the order of the ranks, each
/// column for whose least width there is room is shown. The remaining room is then divided in the
/// same order among the columns that want more.
pub(super) fn fit(width: Option<usize>, rooms: &[Room]) -> Vec<Option<usize>> {
    let Some(width) = width else { return rooms.iter().map(|room| Some(room.natural)).collect() };
    let mut by_rank: Vec<usize> = (0..rooms.len()).collect();
    by_rank.sort_by_key(|index| rooms[*index].rank);
    // The last column needs no gap.
    let mut left = width + GAP;
    let mut widths = vec![None; rooms.len()];
    for index in &by_rank {
        let Room { least, rank, .. } = rooms[*index];
        if rank == 0 || least + GAP <= left {
            widths[*index] = Some(least);
            left = left.saturating_sub(least + GAP);
        }
    }
    for index in &by_rank {
        if let Some(width) = &mut widths[*index] {
            let more = (rooms[*index].natural - *width).min(left);
            *width += more;
            left -= more;
        }
    }
    widths
}

/// A text of at most this many columns, with `…` in place of its middle.
pub(super) fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let half = width.saturating_sub(1) / 2;
    let mut tail = String::new();
    for character in text.chars().rev() {
        if tail.width() + character.width().unwrap_or(0) > half {
            break;
        }
        tail.insert(0, character);
    }
    let mut head = String::new();
    for character in text.chars() {
        if head.width() + character.width().unwrap_or(0) + 1 + tail.width() > width {
            break;
        }
        head.push(character);
    }
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_table_leaves_out_by_rank_and_shortens() {
        let room = |natural, least, rank| Room { natural, least, rank };
        let rooms = [room(40, 16, 0), room(10, 10, 2), room(12, 12, 1)];
        assert_eq!(fit(None, &rooms), [Some(40), Some(10), Some(12)]);
        assert_eq!(fit(Some(66), &rooms), [Some(40), Some(10), Some(12)]);
        assert_eq!(fit(Some(60), &rooms), [Some(34), Some(10), Some(12)]);
        assert_eq!(fit(Some(42), &rooms), [Some(16), Some(10), Some(12)]);
        assert_eq!(fit(Some(41), &rooms), [Some(27), None, Some(12)]);
        // The column of rank 0 stays also where it does not fit.
        assert_eq!(fit(Some(10), &rooms), [Some(16), None, None]);
    }

    #[test]
    fn both_ends_of_a_shortened_text_stay() {
        let cases = [
            ("order-1", 7, "order-1"),
            ("order-10117", 7, "ord…117"),
            ("order-10117", 8, "orde…117"),
            // Wide characters count twice: this text has 12 columns.
            ("日本語日本語", 7, "日本…語"),
            ("abc", 1, "…"),
        ];
        for (text, width, expected) in cases {
            assert_eq!(shortened(text, width), expected, "{text} {width}");
        }
    }
}
