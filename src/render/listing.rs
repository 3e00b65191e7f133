//! The table of `list`: columns of fixed width, so that rows can be shown as they come; the key first, whole.

use anstyle::Style;
use comfy_table::Cell;
use unicode_width::UnicodeWidthStr as _;

use super::columns::Column;
use super::escape;
use super::style::{View, severity_style};
use super::table::{GAP, Table, styled};
use crate::domain::record::Record;

/// Columns that a layout leaves for the key: a UUID fits.
const KEY_COLUMNS: usize = 36;

/// Columns that a key has at least, in several lines.
const LEAST_KEY_COLUMNS: usize = KEY_COLUMNS / 2;

/// The columns behind the key, the most generous layout first.
const LAYOUTS: [&[Column]; 5] = [
    &[
        Column::State,
        Column::Schema,
        Column::Ttl,
        Column::Age,
        Column::Size,
        Column::Owner,
        Column::Findings,
    ],
    &[Column::State, Column::Schema, Column::Ttl, Column::Age, Column::Size, Column::Findings],
    &[Column::State, Column::Schema, Column::Ttl, Column::Age],
    &[Column::State, Column::Schema, Column::Ttl],
    &[Column::State, Column::Ttl],
];

/// Columns that a cell takes at least; longer ones move the columns behind them where lines have no end.
fn width_of(column: Column) -> usize {
    match column {
        Column::State => "in-progress".len(),
        Column::Ttl => "23h 59m".len(),
        Column::Age => "~23h 59m".len(),
        Column::Size => "999.9 KiB".len(),
        Column::Findings => "~short-result-ttl".len(),
        Column::Status => "STATUS".len(),
        Column::Db => "DB".len(),
        Column::CreatedAt | Column::ExpiresAt => "2026-01-01T00:00:00.000Z".len(),
        Column::Key | Column::Schema | Column::Owner | Column::Fingerprint | Column::RedisKeys => {
            KEY_COLUMNS
        }
    }
}

/// Lays out rows. On a terminal the rows fit its width: where there is no room for a column of findings, the findings stand
/// below the key. Elsewhere, and for columns that the operator names, each record is one line, and nothing is cut.
#[derive(Debug, Clone)]
pub struct Listing {
    view: View,
    columns: Columns,
    laid_out: LaidOut,
}

/// Which columns are shown.
#[derive(Debug, Clone)]
enum Columns {
    /// The key, these, and what fits.
    Fitting(Vec<Column>),
    Named(Vec<Column>),
}

/// The columns and their widths.
#[derive(Debug, Clone, Default)]
struct LaidOut {
    columns: Vec<Column>,
    widths: Vec<usize>,
    /// True where lines end at the width of the terminal, and cells fold.
    folds: bool,
}

impl Listing {
    /// The key, these columns right behind it, and as many others as fit.
    pub fn new(view: View, second: &[Column]) -> Self {
        Self { view, columns: Columns::Fitting(second.to_vec()), laid_out: LaidOut::default() }
    }

    /// These columns, however long the lines.
    pub fn of(view: View, columns: &[Column]) -> Self {
        Self { view, columns: Columns::Named(columns.to_vec()), laid_out: LaidOut::default() }
    }

    /// Lays the columns out for rows of which these are the first. Longer keys that come later fold, or push the columns behind
    /// them where lines have no end.
    pub fn fit(&mut self, records: &[Record]) {
        let keys = records.iter().map(|record| escape::key(&record.key).width()).max().unwrap_or(0);
        let schemas = records.iter().map(|record| record.schema.name.width()).max().unwrap_or(0);
        let width_of = |column: &Column| match column {
            Column::Key => keys.clamp("KEY".len(), KEY_COLUMNS),
            Column::Schema => schemas.max("SCHEMA".len()),
            column => width_of(*column),
        };
        let (second, width) = match (&self.columns, self.view.width) {
            (Columns::Named(columns), _) => {
                self.laid_out = LaidOut::of(columns.clone(), width_of);
                return;
            }
            (Columns::Fitting(second), None) => {
                self.laid_out =
                    LaidOut::of([&[Column::Key], &second[..], LAYOUTS[0]].concat(), width_of);
                return;
            }
            (Columns::Fitting(second), Some(width)) => (second, width),
        };
        let taken =
            |columns: &[Column]| columns.iter().map(|column| width_of(column) + GAP).sum::<usize>();
        let fitting = |key: usize| {
            LAYOUTS.into_iter().find(|of| key.min(keys.max(3)) + taken(second) + taken(of) <= width)
        };
        let layout = fitting(KEY_COLUMNS)
            .or_else(|| fitting(LEAST_KEY_COLUMNS))
            .unwrap_or(LAYOUTS[LAYOUTS.len() - 1]);
        let room = width.saturating_sub(taken(second) + taken(layout)).max(LEAST_KEY_COLUMNS);
        let mut laid_out = LaidOut::of([&[Column::Key], &second[..], layout].concat(), width_of);
        laid_out.folds = true;
        let below = if laid_out.columns.contains(&Column::Findings) {
            0
        } else {
            longest_findings(records)
        };
        laid_out.widths[0] = keys.max(below).clamp("KEY".len(), room);
        self.laid_out = laid_out;
    }

    pub fn heading(&self) -> String {
        let names: Vec<_> = self.laid_out.columns.iter().map(|column| column.heading()).collect();
        if self.laid_out.folds {
            return self.lay_out(|table| table.heading(names.iter().map(String::as_str)));
        }
        self.line(names.into_iter().map(|name| (self.view.palette.bold(&name), name)))
    }

    pub fn rows(&self, records: &[Record]) -> String {
        if self.laid_out.folds {
            return self
                .lay_out(|table| records.iter().for_each(|record| table.row(self.row(record))));
        }
        let mut lines = String::new();
        for record in records {
            lines.push_str(
                &self.line(self.laid_out.columns.iter().map(|of| self.painted(*of, record))),
            );
        }
        lines
    }

    /// Cells, each as it is written and as wide as its plain text, padded to their columns.
    fn line(&self, cells: impl Iterator<Item = (String, String)>) -> String {
        let mut line = String::new();
        for ((painted, plain), width) in cells.zip(&self.laid_out.widths) {
            line.push_str(&painted);
            let room = width.saturating_sub(plain.width()) + GAP;
            line.extend(std::iter::repeat_n(' ', room));
        }
        line.truncate(line.trim_end().len());
        line + "\n"
    }

    /// A cell with its colours, and without: only what is wrong with a record has a colour.
    fn painted(&self, column: Column, record: &Record) -> (String, String) {
        let plain = column.shown(record);
        let painted = match column {
            Column::State | Column::Findings => {
                self.view.palette.paint(worst_style(record), &plain)
            }
            _ => plain.clone(),
        };
        (painted, plain)
    }

    fn row(&self, record: &Record) -> Vec<Cell> {
        self.laid_out.columns.iter().map(|column| self.cell(*column, record)).collect()
    }

    fn cell(&self, column: Column, record: &Record) -> Cell {
        match column {
            Column::Key => Cell::new(self.key_cell(record)),
            Column::State | Column::Findings => {
                styled(self.view.palette, column.shown(record), worst_style(record))
            }
            Column::Owner => Cell::new(cut(&column.shown(record), KEY_COLUMNS)),
            other => Cell::new(other.shown(record)),
        }
    }

    /// The key, and on a terminal without a column of findings the findings below.
    fn key_cell(&self, record: &Record) -> String {
        let mut cell = escape::key(&record.key);
        if !self.laid_out.columns.contains(&Column::Findings) && !record.findings.is_empty() {
            cell.push_str("\n  ");
            cell.push_str(&Column::Findings.shown(record));
        }
        cell
    }

    fn lay_out(&self, fill: impl FnOnce(&mut Table)) -> String {
        let mut table = Table::new(self.view.palette);
        fill(&mut table);
        let widths = &self.laid_out.widths;
        let last = widths.len().saturating_sub(1);
        for (column, width) in widths.iter().enumerate() {
            table.fix_width(column, if column == last { *width } else { width + GAP });
        }
        table.text(0)
    }
}

impl LaidOut {
    fn of(columns: Vec<Column>, width_of: impl Fn(&Column) -> usize) -> Self {
        let widths = columns.iter().map(width_of).collect();
        Self { columns, widths, folds: false }
    }
}

/// Columns that the findings of a record take below its key, at most.
fn longest_findings(records: &[Record]) -> usize {
    let indent = 2;
    let faulty = records.iter().filter(|record| !record.findings.is_empty());
    faulty.map(|record| indent + Column::Findings.shown(record).width()).max().unwrap_or(0)
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
