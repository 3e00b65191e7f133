//! The table of `list`: columns of fixed width, so that rows can be shown as they come; the key last, whole.

use anstyle::Style;
use comfy_table::Cell;
use unicode_width::UnicodeWidthStr as _;

use super::columns::Column;
use super::escape;
use super::style::{Palette, View, severity_style, state_style};
use super::table::{GAP, Table, styled};
use crate::domain::record::Record;

/// Columns that a layout leaves for the key: a UUID fits.
const KEY_COLUMNS: usize = 36;

/// Columns that a key has at least, in several lines.
const LEAST_KEY_COLUMNS: usize = KEY_COLUMNS / 2;

/// The columns before the key, the most generous layout first.
const LAYOUTS: [&[Column]; 5] = [
    &[Column::State, Column::Schema, Column::Ttl, Column::Age, Column::Size, Column::Owner, Column::Findings],
    &[Column::State, Column::Schema, Column::Ttl, Column::Age, Column::Size, Column::Findings],
    &[Column::State, Column::Schema, Column::Ttl, Column::Age],
    &[Column::State, Column::Schema, Column::Ttl],
    &[Column::State, Column::Ttl],
];

/// Columns that a cell takes at least; longer ones move the columns behind them where lines have no end.
fn width_of(column: Column, schema_columns: usize) -> usize {
    match column {
        Column::State => "in-progress".len(),
        Column::Schema => schema_columns,
        Column::Ttl => "23h 59m".len(),
        Column::Age => "~23h 59m".len(),
        Column::Size => "999.9 KiB".len(),
        Column::Findings => "~short-result-ttl".len(),
        Column::Status => "STATUS".len(),
        Column::Db => "DB".len(),
        Column::CreatedAt | Column::ExpiresAt => "2026-01-01T00:00:00.000Z".len(),
        Column::Key | Column::Owner | Column::Fingerprint | Column::RedisKeys => KEY_COLUMNS,
    }
}

/// Lays out rows. On a terminal the rows fit its width: where there is no room for a column of findings, the findings stand
/// below the key. Elsewhere, and for columns that the operator names, each record is one line, and nothing is cut.
#[derive(Debug, Clone)]
pub struct Listing {
    palette: Palette,
    columns: Vec<Column>,
    widths: Vec<usize>,
    /// Columns of the key; `None` for lines without end.
    key_width: Option<usize>,
}

impl Listing {
    /// Chooses the layout that fits for schema names of at most `schema_columns` columns, with these columns before all others.
    pub fn new(view: View, schema_columns: usize, first: &[Column]) -> Self {
        let Some(width) = view.width else {
            return Self::of(view.palette, &[first, LAYOUTS[0], &[Column::Key]].concat(), schema_columns);
        };
        let width_of = |column: &Column| width_of(*column, schema_columns);
        let taken = |columns: &[Column]| columns.iter().map(|column| width_of(column) + GAP).sum::<usize>();
        let fitting = |key: usize| LAYOUTS.into_iter().find(|of| taken(first) + taken(of) + key <= width);
        let layout = fitting(KEY_COLUMNS).or_else(|| fitting(LEAST_KEY_COLUMNS)).unwrap_or(LAYOUTS[LAYOUTS.len() - 1]);
        let columns = [first, layout].concat();
        Self {
            palette: view.palette,
            widths: columns.iter().map(width_of).collect(),
            key_width: Some(width.saturating_sub(taken(&columns)).max(LEAST_KEY_COLUMNS)),
            columns,
        }
    }

    /// These columns, however long the lines.
    pub fn of(palette: Palette, columns: &[Column], schema_columns: usize) -> Self {
        let widths = columns.iter().map(|column| width_of(*column, schema_columns)).collect();
        Self { palette, columns: columns.to_vec(), widths, key_width: None }
    }

    pub fn heading(&self) -> String {
        let names: Vec<_> = self.columns.iter().map(|column| column.heading()).collect();
        match self.key_width {
            Some(width) => self.lay_out(width, |table| table.heading(names.iter().map(String::as_str).chain(["KEY"]))),
            None => self.line(names.into_iter().map(|name| (self.palette.bold(&name), name))),
        }
    }

    pub fn rows(&self, records: &[Record]) -> String {
        match self.key_width {
            Some(width) => self.lay_out(width, |table| records.iter().for_each(|record| table.row(self.row(record)))),
            None => records
                .iter()
                .map(|record| self.line(self.columns.iter().map(|of| self.painted(*of, record))))
                .collect(),
        }
    }

    /// Cells, each as it is written and as wide as its plain text, padded to their columns.
    fn line(&self, cells: impl Iterator<Item = (String, String)>) -> String {
        let mut line = String::new();
        for ((painted, plain), width) in cells.zip(&self.widths) {
            line.push_str(&painted);
            let room = width.saturating_sub(plain.width()) + GAP;
            line.extend(std::iter::repeat_n(' ', room));
        }
        line.truncate(line.trim_end().len());
        line + "\n"
    }

    fn painted(&self, column: Column, record: &Record) -> (String, String) {
        let plain = column.shown(record);
        let painted = match column {
            Column::State => self.palette.state(record.state),
            Column::Findings => self.palette.paint(worst_style(record), &plain),
            _ => plain.clone(),
        };
        (painted, plain)
    }

    fn row(&self, record: &Record) -> Vec<Cell> {
        let mut cells: Vec<_> = self.columns.iter().map(|column| self.cell(*column, record)).collect();
        let mut key = escape::text(&record.key);
        if !self.columns.contains(&Column::Findings) && !record.findings.is_empty() {
            key.push_str("\n  ");
            key.push_str(&Column::Findings.shown(record));
        }
        cells.push(Cell::new(key));
        cells
    }

    fn cell(&self, column: Column, record: &Record) -> Cell {
        match column {
            Column::State => styled(self.palette, column.shown(record), state_style(record.state)),
            Column::Findings => styled(self.palette, column.shown(record), worst_style(record)),
            Column::Owner => Cell::new(cut(&column.shown(record), KEY_COLUMNS)),
            other => Cell::new(other.shown(record)),
        }
    }

    fn lay_out(&self, key_width: usize, fill: impl FnOnce(&mut Table)) -> String {
        let mut table = Table::new(self.palette);
        fill(&mut table);
        self.widths.iter().enumerate().for_each(|(column, width)| table.fix_width(column, width + GAP));
        table.fix_width(self.widths.len(), key_width);
        table.text(0)
    }
}

fn worst_style(record: &Record) -> Style {
    let worst = record.findings.iter().map(|finding| finding.severity).max();
    worst.map(severity_style).unwrap_or_default()
}

fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns - 1).chain(['…']).collect()
}
