//! The table of `list`: columns of fixed width, so that rows can be shown as they come; the key last, whole.

use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Table, TableStyle, Width};

use super::escape;
use super::style::Palette;
use super::words;
use crate::domain::diagnosis::Severity;
use crate::domain::record::Record;
use crate::domain::schema::State;

/// Room for the key that a layout must leave: a UUID fits.
const KEY_COLUMNS: usize = 36;

/// What the columns beside the key take up, and the layout for it, the most generous first.
const LAYOUTS: [&[Column]; 4] = [
    &[Column::State, Column::Schema, Column::Ttl, Column::Age, Column::Size, Column::Owner, Column::Findings],
    &[Column::State, Column::Schema, Column::Ttl, Column::Age, Column::Size, Column::Findings],
    &[Column::State, Column::Schema, Column::Ttl, Column::Age],
    &[Column::State, Column::Schema, Column::Ttl],
];

/// Spaces between columns.
const GAP: usize = 2;

/// A column before the key.
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

/// Lays out rows for a width. Where there is no room for a column of findings they stand below the key.
#[derive(Debug, Clone)]
pub struct Listing {
    palette: Palette,
    columns: &'static [Column],
    widths: Vec<usize>,
    key_width: Option<usize>,
}

impl Listing {
    /// For a terminal this wide (`None`: lines of any length) and schema names of at most `schema_columns`.
    pub fn new(palette: Palette, width: Option<usize>, schema_columns: usize) -> Self {
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

    /// The heading line.
    pub fn heading(&self) -> String {
        let names = self.columns.iter().map(|column| column.name()).chain(["KEY"]);
        let cell = |name| {
            let cell = Cell::new(name);
            if self.palette.is_on() { cell.add_attribute(Attribute::Bold) } else { cell }
        };
        self.lay_out(vec![names.map(cell).collect()])
    }

    /// Rows.
    pub fn rows(&self, records: &[Record]) -> String {
        self.lay_out(records.iter().map(|record| self.row(record)).collect())
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
            Column::State => self.colored(record.state.as_str(), state_color(record.state)),
            Column::Schema => Cell::new(&record.schema.name),
            Column::Ttl => Cell::new(record.expiry().map_or_else(|| "-".to_owned(), words::expiry)),
            Column::Age => Cell::new(record.age.map_or_else(|| "-".to_owned(), words::short_age)),
            Column::Size => Cell::new(record.size_bytes().map_or_else(|| "-".to_owned(), words::bytes)),
            Column::Owner => {
                Cell::new(record.owner().map_or_else(|| "-".to_owned(), |owner| cut(&escape::text(owner), 36)))
            }
            Column::Findings => self.colored(codes(record), worst_color(record)),
        }
    }

    fn colored(&self, text: impl ToString, color: Option<Color>) -> Cell {
        let cell = Cell::new(text);
        match color.filter(|_| self.palette.is_on()) {
            Some(color) => cell.fg(color),
            None => cell,
        }
    }

    fn lay_out(&self, rows: Vec<Vec<Cell>>) -> String {
        if rows.is_empty() {
            return String::new();
        }
        let mut table = Table::new();
        table.load_style(TableStyle::new()).set_content_arrangement(ContentArrangement::Disabled);
        if self.palette.is_on() {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        table.add_rows(rows);
        let widths = self.widths.iter().map(|width| (Some(*width), GAP)).chain([(self.key_width, 0)]);
        for (index, (width, gap)) in widths.enumerate() {
            let Some(column) = table.column_mut(index) else { continue };
            column.set_padding((0, u16::try_from(gap).unwrap_or(0)));
            if let Some(width) = width {
                let width = u16::try_from(width + gap).unwrap_or(u16::MAX);
                column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
            }
        }
        let lines: Vec<_> = table.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        lines.concat()
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
