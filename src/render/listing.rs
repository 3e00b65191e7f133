//! The table of `list`: columns of fixed width, so that rows can be printed as they are found. The
//! key comes first, and each record is one line.

use anstyle::Style;
use unicode_width::UnicodeWidthStr as _;

use super::columns::RecordColumn;
use super::style::{View, severity_style};
use super::table::{self, GAP, Room};
use crate::domain::record::Record;

/// The least columns of a key on a narrow terminal. Longer ones are shortened in the middle.
const KEY_COLUMNS: usize = 20;

/// The width from which keys are whole, and other columns are left out for them.
const WIDE: usize = 120;

/// The widest column. Longer cells move the next columns to the right.
const MAX_COLUMNS: usize = 100;

/// Lays out rows. A terminal shows the columns that fit. Elsewhere, and for columns that the operator
/// names, every column is shown in full.
#[derive(Debug, Clone)]
pub struct Listing {
    view: View,
    columns: Vec<&'static RecordColumn>,
    /// True if the operator named the columns.
    are_named: bool,
    /// The columns that are shown, with their widths.
    shown: Vec<(&'static RecordColumn, usize)>,
    /// Columns with values for which the terminal has no room.
    without_room: Vec<&'static RecordColumn>,
    /// True if a key was shortened.
    shortened_a_key: bool,
}

impl Listing {
    /// A list with these columns, the key first.
    pub fn new(view: View, columns: Vec<&'static RecordColumn>, are_named: bool) -> Self {
        Self {
            view,
            columns,
            are_named,
            shown: Vec::new(),
            without_room: Vec::new(),
            shortened_a_key: false,
        }
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
            && self.is_fitted()
        {
            self.leave_out(width);
        }
    }

    /// Leaves out the columns that do not fit the terminal.
    fn leave_out(&mut self, width: usize) {
        let mut rooms = Vec::with_capacity(self.shown.len());
        for (column, natural) in &self.shown {
            let is_cut = column.name == "key" && width < WIDE;
            let least = if is_cut { KEY_COLUMNS.min(*natural) } else { *natural };
            rooms.push(Room { natural: *natural, least, rank: column.rank });
        }
        let widths = table::fit(Some(width), &rooms);
        for ((column, _), width) in std::mem::take(&mut self.shown).into_iter().zip(widths) {
            match width {
                Some(width) => self.shown.push((column, width)),
                None => self.without_room.push(column),
            }
        }
    }

    /// True if a key was shortened, so that it cannot be copied.
    pub fn shortened_a_key(&self) -> bool {
        self.shortened_a_key
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
    pub fn rows(&mut self, records: &[Record]) -> String {
        let mut lines = String::new();
        for record in records {
            let cells =
                self.shown.iter().map(|(column, width)| self.painted(column, *width, record));
            lines.push_str(&self.line(cells));
            if let Some((column, width)) = self.shown.first()
                && self.is_fitted()
            {
                self.shortened_a_key |= column.shown(record).width() > *width;
            }
        }
        lines
    }

    /// True on a terminal, unless the operator named the columns.
    fn is_fitted(&self) -> bool {
        self.view.width.is_some() && !self.are_named
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
    fn painted(&self, column: &RecordColumn, width: usize, record: &Record) -> (String, String) {
        let mut plain = column.shown(record);
        if column.name == "key" && self.is_fitted() {
            plain = table::shortened(&plain, width);
        }
        let mut style = Style::default();
        if ["state", "findings"].contains(&column.name)
            && let Some(worst) = record.findings.iter().map(|finding| finding.severity).max()
        {
            style = severity_style(worst);
        }
        (self.view.palette.paint(style, &plain), plain)
    }
}
