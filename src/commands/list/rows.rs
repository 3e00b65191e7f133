//! The rows of `list`: shown page by page, or sorted after the scan.

use std::io;

use clap::Args as ClapArgs;
use serde_json::{Map, Value};

use crate::args::{Format, ShowArgs, Sort};
use crate::domain::record::{Record, RecordName};
use crate::domain::select::top_n::{Order, Top};
use crate::render::columns::{self, RecordColumn, Separated};
use crate::render::document::Streamed;
use crate::render::listing::Listing;
use crate::render::{record_json, words};
use crate::session::Session;

/// The most rows of a table for a terminal that are held until the scan ends, so that its columns
/// fit all of them and problems come first. They are bounded so that memory does not grow with the
/// number of records.
const MAX_HELD: usize = 2_000;

/// The most rows that are held for a file or a pipe. They are fewer, because a program gets the rows
/// in the order of the scan, so that only the columns depend on them.
const MAX_HELD_FOR_PIPE: usize = 1_000;

/// How many rows of a table are formatted before they are written.
const WRITTEN_AT_ONCE: usize = 200;

/// Rows that `--sort` keeps unless `--limit` says otherwise. They are kept in memory until the scan
/// ends.
const SORTED_ROWS: usize = 1_000;

/// Which rows are shown, and what of them.
#[derive(Debug, ClapArgs)]
pub(super) struct RowArgs {
    #[command(flatten)]
    pub(super) show: ShowArgs,

    /// Stop after this many records
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..),
        conflicts_with = "until"
    )]
    pub(super) limit: Option<u64>,

    /// List the records of all databases, with the database number
    #[arg(long)]
    pub(super) all_dbs: bool,

    /// With -o name: write unescaped names, each followed by NUL
    #[arg(short = '0', long)]
    pub(super) null: bool,

    /// Read whole values, response bodies included
    #[arg(long)]
    pub(super) full: bool,

    /// Show Authorization, Cookie, Set-Cookie and similar headers
    #[arg(long)]
    pub(super) reveal: bool,
}

pub(super) struct ListRows<'a> {
    args: &'a RowArgs,
    columns: Vec<&'static RecordColumn>,
    listing: Listing,
    document: Streamed,
    top: Option<Top>,
    /// Rows that are held until the scan ends, so that columns without a value are left out and, on
    /// a terminal, problems come first; `None` if rows are shown page by page.
    held: Option<Vec<Record>>,
    max_held: usize,
    /// True after the last page of the scan.
    knows_all: bool,
    limit: usize,
    shown: usize,
    cut: bool,
    /// True if a shown record has a finding.
    has_findings: bool,
    /// The text of the last page. The next page reuses its memory.
    page: String,
}

impl<'a> ListRows<'a> {
    /// Without rows yet. Rows show their database if several are listed. `by_status` is true if the
    /// operator selected records by their status.
    pub(super) fn new(session: &Session, args: &'a RowArgs, by_status: bool) -> Self {
        let RowArgs { show, all_dbs, .. } = args;
        let limit = args.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let mut top = None;
        let limit = match show.sort {
            Some(sort) => {
                let limit = limit.unwrap_or(SORTED_ROWS);
                top = Some(Top::new(Order::from(sort), show.reverse, limit));
                limit
            }
            None => limit.unwrap_or(usize::MAX),
        };
        let view = session.ui.view();
        let output = show.output;
        let is_for_people = matches!(output, Format::Text | Format::Wide);
        let mut columns = show.columns.clone();
        if columns.is_empty() {
            // A table shows the field that selected the records. Programs always get the same
            // columns, with the key at the end.
            let by_idle = matches!(show.sort, Some(Sort::Idle));
            columns = match output {
                Format::Text => columns::of_table(*all_dbs, by_status, by_idle),
                _ => columns::all(*all_dbs, by_idle),
            };
            if !is_for_people {
                columns.rotate_left(1);
            }
        }
        let listing = Listing::new(view, columns.clone(), !show.columns.is_empty());
        let held = if is_for_people && top.is_none() { Some(Vec::new()) } else { None };
        let is_terminal = session.ui.out_is_terminal();
        Self {
            held,
            max_held: if is_terminal { MAX_HELD } else { MAX_HELD_FOR_PIPE },
            args,
            columns,
            listing,
            document: Streamed::new("records"),
            top,
            knows_all: false,
            limit,
            shown: 0,
            cut: false,
            has_findings: false,
            page: String::new(),
        }
    }

    pub(super) fn shown(&self) -> usize {
        self.shown
    }

    /// True when no more rows are wanted.
    pub(super) fn are_full(&self) -> bool {
        self.args.show.sort.is_none() && self.taken() >= self.limit
    }

    /// Rows that are shown, or will be.
    fn taken(&self) -> usize {
        match &self.held {
            Some(held) => self.shown + held.len(),
            None => self.shown,
        }
    }

    /// The --limit, if the scan ended because of it.
    pub(super) fn limit_reached(&self) -> Option<usize> {
        if self.are_full() { Some(self.limit) } else { None }
    }

    /// The limit of the rows, if there may be more records.
    pub(super) fn limit_that_cut(&self) -> Option<u64> {
        let is_cut = match &self.top {
            Some(top) => top.was_cut(),
            None => self.are_full(),
        };
        if is_cut { Some(self.limit as u64) } else { None }
    }

    /// The columns of `-o wide` that have values and no room on the terminal, by their headings.
    pub(super) fn without_room(&self) -> Vec<String> {
        if self.args.show.output == Format::Wide { self.listing.without_room() } else { Vec::new() }
    }

    /// True if a shown record has a finding.
    pub(super) fn have_findings(&self) -> bool {
        self.has_findings
    }

    /// True if a key was shortened, so that it cannot be copied.
    pub(super) fn shortened_a_key(&self) -> bool {
        self.listing.shortened_a_key()
    }

    /// True when sorting left out rows beyond the default limit.
    pub(super) fn was_cut(&self) -> bool {
        self.cut
    }

    /// Takes a page of records.
    pub(super) fn add(
        &mut self,
        session: &mut Session,
        mut records: Vec<Record>,
    ) -> io::Result<()> {
        if let Some(top) = &mut self.top {
            for record in records {
                top.add(record);
            }
            return Ok(());
        }
        records.truncate(self.limit - self.taken());
        // Only JSON shows advice. A table would compute it in vain for each record.
        if matches!(self.args.show.output, Format::Json | Format::Jsonl) {
            session.fill_in_advice(&mut records);
        }
        let Some(held) = &mut self.held else { return self.show(session, &records) };
        if held.len() + records.len() <= self.max_held {
            held.append(&mut records);
            return Ok(());
        }
        let first = std::mem::take(held);
        self.held = None;
        if session.ui.out_is_terminal() {
            session.ui.status(&format!(
                "more than {} records, so they are shown in scan order, not problems first; select \
                with --finding, or order with --sort",
                words::count(self.max_held as u64)
            ));
        }
        self.show(session, &first)?;
        // Their memory is needed for the next page.
        drop(first);
        self.show(session, &records)
    }

    /// Shows the rows that were kept, and closes the document with what the scan covered.
    pub(super) fn close(
        &mut self,
        session: &mut Session,
        whole: bool,
        mut covered: Map<String, Value>,
    ) -> io::Result<()> {
        self.knows_all = true;
        if let Some(mut held) = self.held.take() {
            // A person sees problems first. A program gets the order of the scan, as from the other
            // formats.
            if session.ui.out_is_terminal() {
                held.sort_by_cached_key(|record| {
                    let severities = record.findings.iter().map(|finding| finding.severity);
                    std::cmp::Reverse(severities.max())
                });
            }
            self.show(session, &held)?;
        }
        if let Some(top) = self.top.take() {
            self.cut = top.was_cut();
            let mut records = top.into_sorted();
            session.fill_in_advice(&mut records);
            self.show(session, &records)?;
        }
        if self.args.show.output == Format::Json {
            covered.insert("complete".to_owned(), whole.into());
            session.ui.data(self.document.end(&covered))?;
        }
        session.ui.flush()
    }

    fn show(&mut self, session: &mut Session, records: &[Record]) -> io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        self.has_findings |= records.iter().any(|record| !record.findings.is_empty());
        match self.args.show.output {
            Format::Text | Format::Wide => {
                if self.shown == 0 {
                    self.listing.fit(records, !self.knows_all);
                    session.ui.page(self.listing.heading())?;
                }
                for some in records.chunks(WRITTEN_AT_ONCE) {
                    session.ui.page(self.listing.rows(some))?;
                }
            }
            Format::Csv => {
                self.separated(session, records, Separated::csv(self.args.show.raw_csv))?
            }
            Format::Tsv => {
                self.separated(session, records, Separated::tsv(self.args.show.raw_csv))?
            }
            Format::Name => {
                for record in records {
                    self.name(session, record)?;
                }
            }
            Format::Json => {
                session.ui.data(self.document.before_value())?;
                self.page = record_json::lines(
                    records,
                    ",\n",
                    self.args.reveal,
                    std::mem::take(&mut self.page),
                );
                session.ui.data(&self.page)?;
            }
            Format::Jsonl => {
                self.page = record_json::lines(
                    records,
                    "\n",
                    self.args.reveal,
                    std::mem::take(&mut self.page),
                );
                session.ui.data(&self.page)?;
                session.ui.data("\n")?;
            }
        }
        self.shown += records.len();
        // Each page is printed at once, so the first row appears while the scan continues.
        session.ui.flush()
    }

    /// Prints the record's name, which other commands accept. Quotes make it name this record
    /// alone. Without them it may also be the key of another record, because clients choose keys.
    /// Raw bytes are for programs, and never for a terminal.
    fn name(&self, session: &mut Session, record: &Record) -> io::Result<()> {
        let name = RecordName::of(record);
        let is_raw = self.args.null && !session.ui.out_is_terminal();
        let mut name = if is_raw { name.raw() } else { name.quoted().into_bytes() };
        name.push(if self.args.null { 0 } else { b'\n' });
        session.ui.data(name)
    }

    /// Prints rows of fields for programs, below the names of the fields.
    fn separated(
        &self,
        session: &mut Session,
        records: &[Record],
        separated: Separated,
    ) -> io::Result<()> {
        if self.shown == 0 {
            let names = self.columns.iter().map(|column| column.name.to_owned());
            session.ui.data(separated.row(names))?;
        }
        for record in records {
            let cells = self.columns.iter().map(|column| column.plain(record));
            session.ui.data(separated.row(cells))?;
        }
        Ok(())
    }
}
