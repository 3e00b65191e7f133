//! The table of `list`: columns of fixed width, so that rows can be shown as they come; the key last, whole.

use comfy_table::{Cell, Color};

use super::style::{Palette, View};
use super::table::{GAP, Table, colored};
use super::{escape, words};
use crate::domain::diagnosis::Severity;
use crate::domain::record::Record;
use crate::domain::schema::State;

/// Columns that a layout leaves for the key at least: a UUID fits.
const KEY_COLUMNS: usize = 36;

/// The columns before the key, the most generous layout first.
const LAYOUTS: [&[Column]; 4] = [
    &[Column::State, Column::Schema, Column::Ttl, Column::Age, Column::Size, Column::Owner, Column::Findings],
    &[Column::State, Column::Schema, Column::Ttl, Column::Age, Column::Size, Column::Findings],
    &[Column::State, Column::Schema, Column::Ttl, Column::Age],
    &[Column::State, Column::Schema, Column::Ttl],
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    State,
    Schema,
    Ttl,
    Age,
    Size,
    Owner,
    Findings,
}

impl Column {
    fn name(self) -> &'static str {
        match self {
            Self::State => "STATE",
            Self::Schema => "SCHEMA",
            Self::Ttl => "TTL",
            Self::Age => "AGE",
            Self::Size => "SIZE",
            Self::Owner => "OWNER",
            Self::Findings => "FINDINGS",
        }
    }

    fn width(self, schema_columns: usize) -> usize {
        match self {
            Self::State => "in-progress".len(),
            Self::Schema => schema_columns,
            Self::Ttl => "23h 59m".len(),
            Self::Age => "~23h 59m".len(),
            Self::Size => "999.9 KiB".len(),
            Self::Owner => 36,
            Self::Findings => "~short-result-ttl".len(),
        }
    }
}

/// Lays out rows for a width. Where there is no room for a column of findings, the findings stand below the key.
#[derive(Debug, Clone)]
pub struct Listing {
    palette: Palette,
    columns: &'static [Column],
    widths: Vec<usize>,
    key_width: Option<usize>,
}

impl Listing {
    /// Chooses the layout for schema names of at most `schema_columns` columns.
    pub fn new(view: View, schema_columns: usize) -> Self {
        let View { palette, width } = view;
        let taken = |columns: &[Column]| columns.iter().map(|column| column.width(schema_columns) + GAP).sum::<usize>();
        let fits = |columns: &&&[Column]| width.is_none_or(|width| taken(columns) + KEY_COLUMNS <= width);
        let columns = LAYOUTS.iter().find(fits).unwrap_or(&LAYOUTS[LAYOUTS.len() - 1]);
        Self {
            palette,
            columns,
            widths: columns.iter().map(|column| column.width(schema_columns)).collect(),
            key_width: width.map(|width| width.saturating_sub(taken(columns)).max(KEY_COLUMNS / 2)),
        }
    }

    pub fn heading(&self) -> String {
        self.lay_out(|table| table.heading(self.columns.iter().map(|column| column.name()).chain(["KEY"])))
    }

    pub fn rows(&self, records: &[Record]) -> String {
        self.lay_out(|table| records.iter().for_each(|record| table.row(self.row(record))))
    }

    fn row(&self, record: &Record) -> Vec<Cell> {
        let mut cells: Vec<_> = self.columns.iter().map(|column| self.cell(*column, record)).collect();
        let mut key = escape::text(&record.key);
        if !self.columns.contains(&Column::Findings) && !record.findings.is_empty() {
            key.push_str("\n  ");
            key.push_str(&codes(record));
        }
        cells.push(Cell::new(key));
        cells
    }

    fn cell(&self, column: Column, record: &Record) -> Cell {
        match column {
            Column::State => colored(self.palette, record.state.as_str(), state_color(record.state)),
            Column::Schema => Cell::new(&record.schema.name),
            Column::Ttl => Cell::new(record.expiry().map_or_else(|| "-".to_owned(), words::expiry)),
            Column::Age => Cell::new(record.age.map_or_else(|| "-".to_owned(), words::short_age)),
            Column::Size => Cell::new(record.size_bytes().map_or_else(|| "-".to_owned(), words::bytes)),
            Column::Owner => {
                Cell::new(record.owner().map_or_else(|| "-".to_owned(), |owner| cut(&escape::text(owner), 36)))
            }
            Column::Findings => colored(self.palette, codes(record), worst_color(record)),
        }
    }

    fn lay_out(&self, fill: impl FnOnce(&mut Table)) -> String {
        let mut table = Table::new(self.palette);
        fill(&mut table);
        self.widths.iter().enumerate().for_each(|(column, width)| table.fix_width(column, width + GAP));
        if let Some(width) = self.key_width {
            table.fix_width(self.widths.len(), width);
        }
        table.text(0)
    }
}

fn codes(record: &Record) -> String {
    let codes: Vec<_> =
        record.findings.iter().map(|finding| [finding.evidence.mark(), finding.code.as_str()].concat()).collect();
    if codes.is_empty() { "-".to_owned() } else { codes.join(" ") }
}

fn worst_color(record: &Record) -> Option<Color> {
    let worst = record.findings.iter().map(|finding| finding.severity).max()?;
    Some(match worst {
        Severity::Error => Color::Red,
        Severity::Warning => Color::Yellow,
        Severity::Info => Color::Cyan,
    })
}

fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns - 1).chain(['…']).collect()
}

fn state_color(state: State) -> Option<Color> {
    match state {
        State::Absent => None,
        State::InProgress => Some(Color::Yellow),
        State::Completed => Some(Color::Green),
        State::Unreadable => Some(Color::Red),
    }
}
