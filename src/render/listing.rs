//! The table of `list`: columns of fixed width, so that rows can be printed as they are found. The
//! key comes first, unabridged, and each record is one line.

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use super::columns::Column;
use super::style::{View, severity_style};
use super::table::GAP;
use crate::domain::record::Record;

/// The columns that a terminal reserves for the key; a UUID fits.
const KEY_COLUMNS: usize = 36;

/// The smallest width at which a terminal fits keys of any usual length.
const WIDE: usize = 120;

/// The widest column. Longer cells move the next columns to the right.
const MAX_COLUMNS: usize = 100;

/// Lays out rows. A terminal shows the columns that fit, with findings below the key if they have
/// no column. Elsewhere, and for columns that the operator names, every column is shown.
#[derive(Debug, Clone)]
pub struct Listing {
    view: View,
    columns: Vec<&'static Column>,
    /// True if the operator named the columns.
    are_named: bool,
    /// The columns that are shown, with their widths.
    shown: Vec<(&'static Column, usize)>,
    /// Columns with values for which the terminal has no room.
    without_room: Vec<&'static Column>,
}

impl Listing {
    /// A list with these columns, the key first.
    pub fn new(view: View, columns: Vec<&'static Column>, are_named: bool) -> Self {
        Self { view, columns, are_named, shown: Vec::new(), without_room: Vec::new() }
    }

    /// Lays out the columns for rows that begin with these records, or consist of them if
    /// `more_follow` is false.
    pub fn fit(&mut self, records: &[Record], more_follow: bool) {
        self.shown.clear();
        self.without_room.clear();
        for column in &self.columns {
            let is_empty = !more_follow
                && column.is_optional
                && records.iter().all(|record| column.plain(record).is_empty());
            // The operator wants the named columns even if they are empty.
            if !is_empty || self.are_named {
                let mut width = column.heading().width().max(column.usual_width());
                for record in records {
                    width = width.max(column.shown(record).width());
                }
                self.shown.push((column, width.min(MAX_COLUMNS)));
            }
        }
        if let Some(width) = self.view.width
            && !self.are_named
        {
            self.leave_out(width);
        }
    }

    /// Leaves out the columns that do not fit the terminal.
    fn leave_out(&mut self, width: usize) {
        let mut room = width;
        let mut fitting = Vec::new();
        let mut by_rank = self.shown.clone();
        by_rank.sort_by_key(|(column, _)| column.rank);
        for (column, needed) in by_rank {
            let needed = match column.name {
                "key" if width < WIDE => KEY_COLUMNS.min(needed),
                "key" => needed,
                _ => needed + GAP,
            };
            if needed <= room {
                room -= needed;
                fitting.push(column.name);
            }
        }
        for (column, columns) in std::mem::take(&mut self.shown) {
            if column.name == "key" && width < WIDE {
                self.shown.push((column, columns.min(KEY_COLUMNS + room)));
            } else if column.name == "key" || fitting.contains(&column.name) {
                self.shown.push((column, columns));
            } else if column.name != "findings" {
                // Findings without a column are shown below the key.
                self.without_room.push(column);
            }
        }
    }

    /// The headings of columns that have values and do not fit.
    pub fn without_room(&self) -> Vec<String> {
        self.without_room.iter().map(|column| column.heading()).collect()
    }

    /// The heading with its line end.
    pub fn heading(&self) -> String {
        let names = self.shown.iter().map(|(column, _)| column.heading());
        self.line(names.map(|name| (self.view.palette.bold(&name), name)))
    }

    /// The rows of these records.
    pub fn rows(&self, records: &[Record]) -> String {
        let findings = self.columns.iter().find(|column| column.name == "findings");
        let is_shown = self.shown.iter().any(|(column, _)| column.name == "findings");
        // The operator may have named other columns alone.
        let below = findings.filter(|_| !is_shown && !self.are_named);
        let mut lines = String::new();
        for record in records {
            let cells = self.shown.iter().map(|(column, _)| self.painted(column, record));
            lines.push_str(&self.line(cells));
            if let Some(column) = below
                && !record.findings.is_empty()
            {
                lines.push_str(&format!("  {}\n", self.painted(column, record).0));
            }
        }
        lines
    }

    /// One line of cells. Each cell has its printed text and its plain text, whose width determines
    /// the padding.
    fn line(&self, cells: impl Iterator<Item = (String, String)>) -> String {
        let mut line = String::new();
        for ((painted, plain), (_, width)) in cells.zip(&self.shown) {
            line.push_str(&painted);
            let room = width.saturating_sub(plain.width()) + GAP;
            line.extend(std::iter::repeat_n(' ', room));
        }
        // Trailing spaces would wrap on narrow terminals and pollute copied text.
        line.truncate(line.trim_end().len());
        line + "\n"
    }

    /// A cell with its colours and without them. Only problems of a record have a colour.
    fn painted(&self, column: &Column, record: &Record) -> (String, String) {
        let plain = column.shown(record);
        let mut style = Style::default();
        if ["state", "findings"].contains(&column.name)
            && let Some(worst) = record.findings.iter().map(|finding| finding.severity).max()
        {
            style = severity_style(worst);
        }
        (self.view.palette.paint(style, &plain), plain)
    }
}
