//! The rows of `list`: shown as they come, or the first of an order once all are known.

use std::io;

use serde_json::{Map, Value};

use crate::args::{Format, ShowArgs};
use crate::context::Context;
use crate::domain::record::{Name, Record};
use crate::domain::schema::Catalog;
use crate::domain::select::top_n::{Order, Top};
use crate::render::columns::{self, Column, csv, tsv};
use crate::render::document::Streamed;
use crate::render::listing::Listing;
use crate::render::record_json;

/// Which rows are kept.
pub(super) enum Kept {
    First(usize),
    Sorted(Order, usize),
}

/// How rows are shown.
pub(super) struct How<'a> {
    pub(super) show: &'a ShowArgs,
    pub(super) reveal: bool,
    pub(super) all_dbs: bool,
    /// True if NUL ends each name.
    pub(super) null: bool,
}

pub(super) struct Rows {
    output: Format,
    has_header: bool,
    columns: Vec<Column>,
    reveal: bool,
    null: bool,
    listing: Listing,
    document: Streamed,
    top: Option<Top>,
    limit: usize,
    shown: usize,
    cut: bool,
    /// The last page, kept for its memory.
    page: String,
}

impl Rows {
    /// Rows, with the database of each before all others where there are several.
    pub(super) fn new(context: &Context, catalog: &Catalog, how: How<'_>, kept: Kept) -> Self {
        let How { show, reveal, all_dbs, null } = how;
        let first: &[Column] = if all_dbs { &[Column::Db] } else { &[] };
        let schema_columns = catalog.chosen().iter().map(|schema| schema.name.len()).max().unwrap_or(0).max(6);
        let (limit, top) = match kept {
            Kept::First(limit) => (limit, None),
            Kept::Sorted(order, limit) => (limit, Some(Top::new(order, show.reverse, limit))),
        };
        let (view, output) = (context.ui.view(), show.output);
        let columns = if show.columns.is_empty() { [first, &columns::ALL].concat() } else { show.columns.clone() };
        let listing = match output {
            Format::Table if show.columns.is_empty() => Listing::new(view, schema_columns, first),
            _ => Listing::of(view.palette, &columns, schema_columns),
        };
        let (has_header, document) = (!show.no_header, Streamed::new("records"));
        let page = String::new();
        Self { output, has_header, columns, reveal, null, listing, document, top, limit, shown: 0, cut: false, page }
    }

    pub(super) fn shown(&self) -> usize {
        self.shown
    }

    /// True when no more rows are wanted.
    pub(super) fn are_full(&self) -> bool {
        self.top.is_none() && self.shown >= self.limit
    }

    /// True when sorting left out rows beyond the default limit.
    pub(super) fn was_cut(&self) -> bool {
        self.cut
    }

    /// Takes a page of records.
    pub(super) fn add(&mut self, context: &mut Context, mut records: Vec<Record>) -> io::Result<()> {
        if let Some(top) = &mut self.top {
            records.into_iter().for_each(|record| top.add(record));
            return Ok(());
        }
        records.truncate(self.limit - self.shown);
        self.show(context, &records)
    }

    /// Shows what sorting kept, and closes the document with what the walk covered.
    pub(super) fn close(
        &mut self,
        context: &mut Context,
        whole: bool,
        mut covered: Map<String, Value>,
    ) -> io::Result<()> {
        if let Some(top) = self.top.take() {
            self.cut = top.was_cut();
            self.show(context, &top.into_sorted())?;
        }
        if self.output == Format::Json {
            covered.insert("complete".to_owned(), whole.into());
            context.ui.data(self.document.end(&covered))?;
        }
        context.ui.flush()
    }

    fn show(&mut self, context: &mut Context, records: &[Record]) -> io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        match self.output {
            Format::Table | Format::Wide => {
                if self.shown == 0 && self.has_header {
                    context.ui.page(self.listing.heading())?;
                }
                context.ui.page(self.listing.rows(records))?;
            }
            Format::Csv => self.separated(context, records, csv)?,
            Format::Tsv => self.separated(context, records, tsv)?,
            Format::Name => records.iter().try_for_each(|record| self.name(context, record))?,
            Format::Json => {
                context.ui.data(self.document.before_value())?;
                self.page = record_json::lines(records, ",\n", self.reveal, std::mem::take(&mut self.page));
                context.ui.data(&self.page)?;
            }
            Format::Jsonl => {
                self.page = record_json::lines(records, "\n", self.reveal, std::mem::take(&mut self.page));
                context.ui.data(&self.page)?;
                context.ui.data("\n")?;
            }
        }
        self.shown += records.len();
        // Each page goes out at once: the first row is seen while the walk goes on.
        context.ui.flush()
    }

    /// The record's name, which other commands read back. Raw bytes are for programs, and not for a terminal.
    fn name(&self, context: &mut Context, record: &Record) -> io::Result<()> {
        let name = Name::of(record);
        let is_raw = self.null && !context.ui.out_is_terminal();
        let mut name = if is_raw { name.raw() } else { name.text().into_bytes() };
        name.push(if self.null { 0 } else { b'\n' });
        context.ui.data(name)
    }

    /// Rows of fields for programs, below the names of the fields.
    fn separated(
        &self,
        context: &mut Context,
        records: &[Record],
        row: fn(&mut dyn Iterator<Item = String>) -> String,
    ) -> io::Result<()> {
        if self.shown == 0 && self.has_header {
            context.ui.data(row(&mut self.columns.iter().map(|column| column.field().to_owned())))?;
        }
        let fields = |record: &Record| row(&mut self.columns.iter().map(|column| column.plain(record)));
        records.iter().try_for_each(|record| context.ui.data(fields(record)))
    }
}
