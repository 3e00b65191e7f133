//! The rows of `list`: shown as they come, or the first of an order once all are known.

use std::io;

use serde_json::{Map, Value};

use crate::args::Output;
use crate::context::Context;
use crate::domain::record::Record;
use crate::domain::schema::Catalog;
use crate::domain::select::top_n::{Order, Top};
use crate::render::document::Streamed;
use crate::render::listing::Listing;
use crate::render::record_json;

/// Which rows are kept.
pub(super) enum Kept {
    First(usize),
    Sorted(Order, usize),
}

pub(super) struct Rows {
    output: Output,
    reveal: bool,
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
    pub(super) fn new(context: &Context, catalog: &Catalog, output: Output, reveal: bool, kept: Kept) -> Self {
        let schema_columns = catalog.chosen().iter().map(|schema| schema.name.len()).max().unwrap_or(0).max(6);
        let (limit, top) = match kept {
            Kept::First(limit) => (limit, None),
            Kept::Sorted(order, limit) => (limit, Some(Top::new(order, limit))),
        };
        let listing = Listing::new(context.ui.view(), schema_columns);
        let document = Streamed::new("records");
        Self { output, reveal, listing, document, top, limit, shown: 0, cut: false, page: String::new() }
    }

    pub(super) fn shown(&self) -> usize {
        self.shown
    }

    /// True when sorting left out rows beyond the default limit.
    pub(super) fn was_cut(&self) -> bool {
        self.cut
    }

    /// Takes a page of records; true when no more are wanted.
    pub(super) fn add(&mut self, context: &mut Context, mut records: Vec<Record>) -> io::Result<bool> {
        if let Some(top) = &mut self.top {
            records.into_iter().for_each(|record| top.add(record));
            return Ok(false);
        }
        records.truncate(self.limit - self.shown);
        self.show(context, &records)?;
        Ok(self.shown >= self.limit)
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
        if self.output == Output::Json {
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
            Output::Table => {
                if self.shown == 0 {
                    context.ui.data(self.listing.heading())?;
                }
                context.ui.data(self.listing.rows(records))?;
            }
            Output::Json => {
                context.ui.data(self.document.before_value())?;
                self.page = record_json::lines(records, ",\n", self.reveal, std::mem::take(&mut self.page));
                context.ui.data(&self.page)?;
            }
            Output::Jsonl => {
                self.page = record_json::lines(records, "\n", self.reveal, std::mem::take(&mut self.page));
                context.ui.data(&self.page)?;
                context.ui.data("\n")?;
            }
        }
        self.shown += records.len();
        // Each page goes out at once: the first row is seen while the walk goes on.
        context.ui.flush()
    }
}
