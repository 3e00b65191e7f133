//! The table of `list`: columns of fixed width, so that rows can be printed as they are found. The
//! key comes first, unabridged. comfy-table lays out only tables of which all rows are known.

use anstyle::Style;
use comfy_table::Cell;
use unicode_width::UnicodeWidthStr as _;

use super::columns::Column;
use super::escape;
use super::style::{View, severity_style};
use super::table::{GAP, Table, styled};
use crate::domain::record::Record;

/// The columns that a layout reserves for the key; a UUID fits.
const KEY_COLUMNS: usize = 36;

/// The smallest width at which a terminal fits keys of any usual length.
const WIDE: usize = 120;

/// The widest column for keys if lines have no fixed end. Longer keys move the next columns to the
/// right.
const MAX_KEY_COLUMNS: usize = 100;

/// The least columns for a key that is folded into several lines.
const MIN_KEY_COLUMNS: usize = KEY_COLUMNS / 2;

/// The columns after the key, the widest layout first.
const LAYOUTS: [&[Column]; 6] = [
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
    &[Column::State, Column::Schema, Column::Ttl, Column::Age, Column::Findings],
    &[Column::State, Column::Schema, Column::Ttl, Column::Age],
    &[Column::State, Column::Schema, Column::Ttl],
    &[Column::State, Column::Ttl],
];

/// The width of a column. If lines have no fixed end, longer cells move the next columns to the
/// right.
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

/// The columns of `-o wide` that a terminal always shows.
const WIDE_AT_LEAST: [Column; 5] =
    [Column::Key, Column::Db, Column::State, Column::Schema, Column::Ttl];

/// The other columns of `-o wide`, the most important first. A terminal shows each one that fits.
const WIDE_MORE: [Column; 9] = [
    Column::Findings,
    Column::Age,
    Column::Size,
    Column::Owner,
    Column::Status,
    Column::ExpiresAt,
    Column::CreatedAt,
    Column::Fingerprint,
    Column::RedisKeys,
];

/// Columns that a table omits if no record has a value for them. In all other columns a `-` has a
/// meaning: an unknown age, or no finding.
const OPTIONAL: [Column; 5] =
    [Column::Owner, Column::Status, Column::Fingerprint, Column::CreatedAt, Column::ExpiresAt];

/// Lays out rows. On a terminal the rows fit its width, and findings move below the key if they
/// have no column. Elsewhere, and for columns that the operator names, each record is one line, and
/// no cell is cut.
#[derive(Debug, Clone)]
pub struct Listing {
    view: View,
    columns: Columns,
    laid_out: LaidOut,
    /// Columns with values for which the terminal has no room.
    without_room: Vec<Column>,
}

/// Which columns are shown.
#[derive(Debug, Clone)]
enum Columns {
    /// The key, these, and the others that fit.
    Fitting(Vec<Column>),
    /// As many of these columns as fit without folding.
    Wide(Vec<Column>),
    /// The columns that the operator named.
    Named(Vec<Column>),
}

/// The columns and their widths.
#[derive(Debug, Clone, Default)]
struct LaidOut {
    columns: Vec<Column>,
    widths: Vec<usize>,
    /// True if cells fold at the width of the terminal.
    folds: bool,
}

/// The records that determine the widths of columns.
#[derive(Debug, Clone, Copy)]
struct Sample<'a> {
    records: &'a [Record],
    /// True if more rows follow, whose widths are unknown.
    more_follow: bool,
}

impl Sample<'_> {
    /// False for an optional column without a value in any record.
    fn has(self, column: Column) -> bool {
        self.more_follow
            || !OPTIONAL.contains(&column)
            || self.records.iter().any(|record| !column.plain(record).is_empty())
    }

    /// The width of the longest cell or of the heading.
    fn longest(self, column: Column) -> usize {
        let mut longest = column.heading().width();
        for record in self.records {
            longest = longest.max(column.shown(record).width());
        }
        longest
    }

    /// The width of a column that keeps every row in one line.
    fn whole(self, column: Column) -> usize {
        let longest = self.longest(column);
        if self.more_follow && column != Column::Key {
            longest.max(width_of(column))
        } else {
            longest
        }
    }

    /// The usual width of a column. It is the same for most lists, so that lists can be compared.
    fn usual(self, column: Column) -> usize {
        match column {
            Column::Key if !self.more_follow => self.longest(column).min(MAX_KEY_COLUMNS),
            Column::Key => self.longest(column).min(KEY_COLUMNS),
            Column::Schema => self.longest(column),
            Column::Owner if self.more_follow => KEY_COLUMNS,
            Column::Owner => self.longest(column).min(KEY_COLUMNS),
            Column::Fingerprint | Column::RedisKeys => width_of(column),
            column => self.longest(column).max(width_of(column)),
        }
    }
}

impl Listing {
    /// The key, then these columns, then the others that fit.
    pub fn new(view: View, second: &[Column]) -> Self {
        Self::with(view, Columns::Fitting(second.to_vec()))
    }

    /// As many of these columns as fit on a terminal; all of them elsewhere.
    pub fn wide(view: View, columns: &[Column]) -> Self {
        Self::with(view, Columns::Wide(columns.to_vec()))
    }

    /// These columns, with lines of any length.
    pub fn of(view: View, columns: &[Column]) -> Self {
        Self::with(view, Columns::Named(columns.to_vec()))
    }

    fn with(view: View, columns: Columns) -> Self {
        Self { view, columns, laid_out: LaidOut::default(), without_room: Vec::new() }
    }

    /// Lays out the columns for rows that begin with these records, or consist of them if
    /// `more_follow` is false. Longer cells in later rows fold, or move the next columns to the
    /// right.
    pub fn fit(&mut self, records: &[Record], more_follow: bool) {
        let sample = Sample { records, more_follow };
        let mut columns = match &self.columns {
            Columns::Named(columns) => columns.clone(),
            Columns::Fitting(second) => [&[Column::Key], &second[..], LAYOUTS[0]].concat(),
            Columns::Wide(columns) => columns.clone(),
        };
        // The operator wants the named columns even if they are empty.
        if !matches!(self.columns, Columns::Named(_)) {
            columns.retain(|column| sample.has(*column));
        }
        self.laid_out = match (&self.columns, self.view.width) {
            (Columns::Fitting(second), Some(width)) => fitting(sample, second, width),
            (Columns::Wide(_), Some(width)) => wide(sample, &columns, width),
            _ => LaidOut::of(columns.clone(), |column| sample.usual(column)),
        };
        self.without_room.clear();
        if let Columns::Wide(_) = self.columns {
            for column in columns {
                // Findings without a column are shown below the key.
                if !self.laid_out.columns.contains(&column) && column != Column::Findings {
                    self.without_room.push(column);
                }
            }
        }
    }

    /// The headings of columns of `-o wide` that have values and do not fit.
    pub fn without_room(&self) -> Vec<String> {
        self.without_room.iter().map(|column| column.heading()).collect()
    }

    /// The heading with its line end.
    pub fn heading(&self) -> String {
        let names: Vec<_> = self.laid_out.columns.iter().map(|column| column.heading()).collect();
        if self.laid_out.folds {
            return self.lay_out(|table| table.heading(names.iter().map(String::as_str)));
        }
        self.line(names.into_iter().map(|name| (self.view.palette.bold(&name), name)))
    }

    /// The rows of these records.
    pub fn rows(&self, records: &[Record]) -> String {
        if self.laid_out.folds {
            return self.lay_out(|table| {
                for record in records {
                    table.row(self.row(record));
                }
            });
        }
        let mut lines = String::new();
        for record in records {
            let cells = self.laid_out.columns.iter().map(|column| self.painted(*column, record));
            lines.push_str(&self.line(cells));
        }
        lines
    }

    /// One line of cells. Each cell has its printed text and its plain text, whose width determines
    /// the padding.
    fn line(&self, cells: impl Iterator<Item = (String, String)>) -> String {
        let mut line = String::new();
        for ((painted, plain), width) in cells.zip(&self.laid_out.widths) {
            line.push_str(&painted);
            let room = width.saturating_sub(plain.width()) + GAP;
            line.extend(std::iter::repeat_n(' ', room));
        }
        // Trailing spaces would wrap on narrow terminals and pollute copied text.
        line.truncate(line.trim_end().len());
        line + "\n"
    }

    /// A cell with its colours and without them. Only problems of a record have a colour.
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
            // Owners can be long, and folding them would make each row high. `inspect` shows them
            // whole.
            Column::Owner => Cell::new(cut(&column.shown(record), self.width(column))),
            other => Cell::new(other.shown(record)),
        }
    }

    /// The width of a shown column.
    fn width(&self, column: Column) -> usize {
        for (index, shown) in self.laid_out.columns.iter().enumerate() {
            if *shown == column {
                return self.laid_out.widths[index];
            }
        }
        KEY_COLUMNS
    }

    /// The key, with the findings below it if they have no column.
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
    fn of(columns: Vec<Column>, width_of: impl Fn(Column) -> usize) -> Self {
        let widths = columns.iter().map(|column| width_of(*column)).collect();
        Self { columns, widths, folds: false }
    }
}

/// The widest layout that fits a terminal, with the columns of `second` after the key.
fn fitting(sample: Sample<'_>, second: &[Column], width: usize) -> LaidOut {
    let longest_key = sample.longest(Column::Key);
    // A wide terminal shows each key in one line. A narrow one shows more columns next to a folded
    // key.
    let mut key_widths = Vec::new();
    if width >= WIDE {
        key_widths.push(longest_key);
    }
    key_widths.extend([KEY_COLUMNS, MIN_KEY_COLUMNS]);
    let mut layout = Vec::new();
    'found: for key in key_widths {
        for columns in LAYOUTS {
            layout.clear();
            layout.extend(second.iter().chain(columns));
            layout.retain(|column| sample.has(*column));
            if key.min(longest_key.max("KEY".len())) + taken(sample, &layout) <= width {
                break 'found;
            }
        }
    }
    let room = width.saturating_sub(taken(sample, &layout)).max(MIN_KEY_COLUMNS);
    let columns = [&[Column::Key], &layout[..]].concat();
    let mut laid_out = LaidOut::of(columns, |column| sample.usual(column));
    laid_out.folds = true;
    let has_findings = laid_out.columns.contains(&Column::Findings);
    let below = if has_findings { 0 } else { longest_findings(sample.records) };
    laid_out.widths[0] = longest_key.max(below).clamp("KEY".len(), room);
    laid_out
}

/// The width of these columns, each with the gap before it.
fn taken(sample: Sample<'_>, columns: &[Column]) -> usize {
    columns.iter().map(|column| sample.usual(*column) + GAP).sum()
}

/// Those of these columns that fit a terminal with every cell in one line. Only a key that is too
/// long for the terminal folds.
fn wide(sample: Sample<'_>, columns: &[Column], width: usize) -> LaidOut {
    let of_key = sample.whole(Column::Key);
    let mut shown = Vec::new();
    let mut taken = 0;
    for column in columns.iter().copied() {
        if !WIDE_AT_LEAST.contains(&column) {
            continue;
        }
        shown.push(column);
        if column != Column::Key {
            taken += sample.whole(column) + GAP;
        }
    }
    let key = of_key.min(width.saturating_sub(taken)).max(MIN_KEY_COLUMNS.min(of_key));
    taken += key;
    for column in WIDE_MORE {
        let more = sample.whole(column) + GAP;
        if columns.contains(&column) && taken + more <= width {
            taken += more;
            shown.push(column);
        }
    }
    // The operator's order, not the order of importance.
    let columns = columns.iter().copied().filter(|column| shown.contains(column)).collect();
    let mut laid_out = LaidOut::of(columns, |column| sample.whole(column));
    laid_out.folds = true;
    if let Some(first) = laid_out.widths.first_mut() {
        let has_findings = laid_out.columns.contains(&Column::Findings);
        let below = if has_findings { 0 } else { longest_findings(sample.records) };
        *first = key.max(below.min(key + width.saturating_sub(taken)));
    }
    laid_out
}

/// The most columns that findings take below a key.
fn longest_findings(records: &[Record]) -> usize {
    let indent = 2;
    let mut longest = 0;
    for record in records {
        if !record.findings.is_empty() {
            longest = longest.max(indent + Column::Findings.shown(record).width());
        }
    }
    longest
}

fn worst_style(record: &Record) -> Style {
    match record.findings.iter().map(|finding| finding.severity).max() {
        Some(worst) => severity_style(worst),
        None => Style::default(),
    }
}

fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns - 1).chain(['…']).collect()
}
