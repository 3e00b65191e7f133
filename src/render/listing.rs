//! The table of `list`: columns of fixed width, so that rows can be shown as they come; the key last, whole.

use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Table, TableStyle, Width};

use super::escape;
use super::style::Palette;
use super::words;
use crate::domain::diagnosis::Severity;
use crate::domain::duration;
use crate::domain::record::Record;
use crate::domain::schema::State;

/// Columns with room for an owner start here.
const WIDE: usize = 140;

/// The narrowest key column that is still of use.
const KEY_COLUMNS: usize = 16;

/// Lays out rows for a width.
#[derive(Debug, Clone)]
pub struct Listing {
    palette: Palette,
    width: Option<usize>,
    schema_columns: usize,
    owner: bool,
    findings: bool,
}

impl Listing {
    /// For a terminal this wide (`None`: lines of any length) and schema names of at most `schema_columns`.
    pub fn new(palette: Palette, width: Option<usize>, schema_columns: usize) -> Self {
        let wide = width.is_none_or(|width| width >= WIDE);
        Self { palette, width, schema_columns, owner: wide, findings: width.is_none_or(|width| width >= 60) }
    }

    /// The heading line.
    pub fn heading(&self) -> String {
        let names = self.columns().into_iter().map(|(name, _)| {
            let cell = Cell::new(name);
            if self.palette.is_on() { cell.add_attribute(Attribute::Bold) } else { cell }
        });
        self.lay_out(vec![names.collect()])
    }

    /// Rows.
    pub fn rows(&self, records: &[Record]) -> String {
        self.lay_out(records.iter().map(|record| self.row(record)).collect())
    }

    fn columns(&self) -> Vec<(&'static str, Option<usize>)> {
        let mut columns = vec![
            ("STATE", Some("in-progress".len())),
            ("SCHEMA", Some(self.schema_columns)),
            ("TTL", Some("23h 59m".len())),
            ("AGE", Some("23h 59m".len())),
            ("SIZE", Some("999.9 KiB".len())),
        ];
        if self.owner {
            columns.push(("OWNER", Some(36)));
        }
        if self.findings {
            columns.push(("FINDINGS", Some("short-result-ttl".len())));
        }
        columns.push(("KEY", None));
        columns
    }

    fn row(&self, record: &Record) -> Vec<Cell> {
        let mut cells = vec![
            self.colored(record.state.word(), state_color(record.state)),
            Cell::new(&record.schema.name),
            Cell::new(record.expiry().map_or_else(|| "-".to_owned(), words::expiry)),
            Cell::new(record.age.map_or_else(|| "-".to_owned(), |age| duration::short(age.millis))),
            Cell::new(words::bytes(record.size_bytes())),
        ];
        if self.owner {
            cells.push(Cell::new(record.owner().map_or_else(|| "-".to_owned(), |owner| cut(&escape::text(owner), 36))));
        }
        if self.findings {
            cells.push(self.codes(record));
        }
        cells.push(Cell::new(escape::text(&record.key)));
        cells
    }

    fn codes(&self, record: &Record) -> Cell {
        let codes: Vec<_> = record.findings.iter().map(|finding| finding.code).collect();
        let worst = record.findings.iter().map(|finding| finding.severity).max();
        let color = worst.map(|severity| match severity {
            Severity::Error => Color::Red,
            Severity::Warning => Color::Yellow,
            Severity::Info => Color::Cyan,
        });
        self.colored(if codes.is_empty() { "-".to_owned() } else { codes.join(" ") }, color)
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
        let columns = self.columns();
        let fixed: usize = columns.iter().filter_map(|(_, width)| *width).sum::<usize>() + (columns.len() - 1) * 2;
        let mut table = Table::new();
        table.load_style(TableStyle::new()).set_content_arrangement(ContentArrangement::Disabled);
        if self.palette.is_on() {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        for row in rows {
            table.add_row(row);
        }
        for (index, (_, width)) in columns.iter().enumerate() {
            let key = self.width.map(|whole| whole.saturating_sub(fixed).max(KEY_COLUMNS));
            let last = index + 1 == columns.len();
            if let Some(column) = table.column_mut(index) {
                column.set_padding((0, if last { 0 } else { 2 }));
                if let Some(content) = width.or(key) {
                    let columns = u16::try_from(content + if last { 0 } else { 2 }).unwrap_or(u16::MAX);
                    column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(columns)));
                }
            }
        }
        let lines: Vec<_> = table.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        lines.concat()
    }
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
