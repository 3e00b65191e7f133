//! One scan of the keyspace, shared by every command that scans. It selects records, counts those
//! that it leaves out, shows progress, stops at Ctrl-C, and reports how it ended.
//!
//! The table in docs/architecture.md lists what each command does for each end.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;

use crate::domain::covered::Covered;
use crate::domain::diagnosis::{self, Thresholds};
use crate::domain::record::{Candidate, FieldSet, Record, TimeLeft, ValueField};
use crate::domain::schema::{Catalog, Schema};
use crate::domain::select::{Coverage, Selected, Selection, contradiction};
use crate::exit::{CommandError, Exit};
use crate::interrupt::Interrupt;
use crate::render::{coverage, words};
use crate::session::Session;
use crate::store::{KeyspaceScan, MAX_WHOLE, ReadLimit, RecordDecoder, RecordReader, StoreError};
use crate::terminal::frame::ProgressLine;

/// What a scan reads.
pub struct ScanQuery<'a> {
    pub catalog: &'a Catalog,
    pub thresholds: Thresholds,
    /// How much of each value is read at least.
    pub first_read: ReadLimit,
    /// The fields that the command selects by or shows. Values are read until these are known.
    pub needed: FieldSet,
    pub lengths: Lengths,
}

/// The records whose lengths are read if their values are longer than the part that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lengths {
    /// Every record, because the lengths decide which records are selected or what is counted.
    All,
    /// The selected records, because their lengths are shown.
    Selected,
    None,
}

/// Which records a command selects from a scan.
pub trait RecordFilter {
    /// What the command plans for a selected record.
    type Plan;

    /// False if the idempotency key alone excludes the record, so that its value need not be read.
    fn passes_key(&self, _key: &[u8]) -> bool {
        true
    }

    /// False if the filters that need no TTL already reject the record. A default TTL that such a
    /// record contradicts is then irrelevant.
    fn is_about(&self, _record: &Record) -> bool {
        true
    }

    /// Whether the record is selected, and what the command plans for it.
    fn select(&self, record: &Record) -> Selected<Self::Plan>;
}

impl RecordFilter for Selection {
    type Plan = ();

    fn passes_key(&self, key: &[u8]) -> bool {
        Self::passes_key(self, key)
    }

    fn is_about(&self, record: &Record) -> bool {
        Self::is_about(self, record)
    }

    fn select(&self, record: &Record) -> Selected {
        self.selects(record)
    }
}

/// How a scan ended.
#[derive(Debug)]
pub enum ScanEnd {
    /// Every node was read completely, or until the command had enough.
    Complete,
    /// Some nodes, slots or records of a cluster could not be read; the others were read.
    Incomplete(StoreError),
    /// The user pressed Ctrl-C.
    Interrupted,
    /// An error ended the scan early.
    Failed(StoreError),
}

/// A scan in progress.
pub struct Scan<'a> {
    query: ScanQuery<'a>,
    keyspace: KeyspaceScan,
    interrupt: Interrupt,
    progress: ProgressLine,
    coverage: Coverage,
    /// `None` while there may be another page.
    end: Option<ScanEnd>,
    /// The totals of the databases before the current one.
    earlier: ScanCounts,
}

/// The totals of a scan over one or more databases.
#[derive(Default)]
struct ScanCounts {
    keys: u64,
    iterated: u64,
    forbidden: Option<String>,
    schemas: Vec<Arc<Schema>>,
}

/// A page of a scan.
pub struct SelectedPage<T> {
    /// How many records of the schemas the page contains, selected or not.
    pub records: usize,
    /// The selected records, each with what the command plans for it.
    pub selected: Vec<(Record, T)>,
}

/// What a scan read and left out, and how it ended.
pub struct ScanReport {
    pub end: ScanEnd,
    /// The records that were left out, and the default TTLs that the records contradict.
    pub coverage: Coverage,
    /// How many Redis keys SCAN returned, or, in a purge of named keys, how many keys were read.
    pub keys: u64,
    /// The approximate number of Redis keys that the servers iterated over, including those that
    /// matched no pattern.
    pub iterated: u64,
    /// A warning about records that the Redis user may not read.
    pub forbidden: Option<String>,
    /// The number of Redis keys per schema that were not read because other schemas were named.
    pub keys_of_other_schemas: BTreeMap<String, u64>,
}

impl<'a> Scan<'a> {
    /// Connects to every node.
    ///
    /// # Errors
    /// No node can be reached; Ctrl-C.
    pub async fn start(
        reader: RecordReader,
        query: ScanQuery<'a>,
        interrupt: &Interrupt,
        progress: ProgressLine,
    ) -> Result<Self> {
        let Some(keyspace) = interrupt.unless_raised(open(reader, &query)).await else {
            return Err(CommandError::interrupted("interrupted: nothing was read").into());
        };
        Ok(Self {
            keyspace: keyspace?,
            query,
            interrupt: interrupt.clone(),
            progress,
            coverage: Coverage::default(),
            end: None,
            earlier: ScanCounts::default(),
        })
    }

    /// Also returns records whose values the schema does not recognise. Otherwise they are left
    /// out.
    #[must_use]
    pub fn with_unrecognised(mut self) -> Self {
        self.coverage.keeps_unrecognised = true;
        self
    }

    /// Also returns results with a field that their schema does not write. They still count as
    /// unrecognised.
    #[must_use]
    pub fn with_deviating(mut self) -> Self {
        self.coverage.keeps_deviating = true;
        self
    }

    /// Counts the results with such a field as left out that a filter by a field accepts. The
    /// filter reads the field from the whole value, which shows that the value deviates.
    #[must_use]
    pub fn reporting_deviating(mut self, selection: &Selection) -> Self {
        self.coverage.reports_deviating = selection.reads_values();
        self
    }

    /// Reads deadlines first, which does not touch any key. [`Scan::next_deadlines`] returns the
    /// pages, and [`Scan::read_records`] the wanted records.
    #[must_use]
    pub fn deadlines_first(self) -> Self {
        Self { keyspace: self.keyspace.deadlines_first(), ..self }
    }

    /// Continues with another database if the previous one was read completely. False if there is
    /// nothing more to read.
    pub async fn continue_in(&mut self, reader: RecordReader) -> bool {
        if !matches!(self.end, Some(ScanEnd::Complete)) {
            return false;
        }
        let opened = self.interrupt.unless_raised(open(reader, &self.query)).await;
        let Some(keyspace) = self.settle(with_value(opened)) else {
            return false;
        };
        let before = std::mem::replace(&mut self.keyspace, keyspace);
        self.earlier.keys += before.keys_returned();
        self.earlier.iterated += before.keys_iterated();
        self.earlier.schemas.extend_from_slice(before.schemas_with_keys());
        self.earlier.forbidden = self.earlier.forbidden.take().or_else(|| before.forbidden());
        self.end = None;
        true
    }

    /// The records of the next page that the filter selects; `None` after the end of the scan.
    /// Records with insufficient data are counted as left out.
    pub async fn next_page<F: RecordFilter>(
        &mut self,
        filter: &F,
    ) -> Option<SelectedPage<F::Plan>> {
        if self.end.is_some() {
            return None;
        }
        let Self { query, keyspace, coverage, .. } = self;
        let read = async {
            let decoder = RecordDecoder {
                catalog: query.catalog,
                thresholds: &query.thresholds,
                needed: query.needed,
                coverage: &mut *coverage,
            };
            let Some(records) =
                keyspace.next_records(decoder, &|key| filter.passes_key(key)).await?
            else {
                return Ok(None);
            };
            let count = records.len();
            // `filter_map` instead of a loop: if `F::Plan` needs no memory, the collection reuses
            // the page's allocation, so a list does not copy a million records.
            let chosen = records.into_iter().filter_map(|mut record| {
                // A finding about the size may decide whether the record is selected.
                if query.lengths == Lengths::All {
                    diagnosis::add_oversized(&mut record, &query.thresholds);
                }
                // Few records contradict a TTL, so that this is asked before the filter.
                if contradiction::contradicts_default(&record) && filter.is_about(&record) {
                    coverage.contradictions.note(&record);
                }
                let selected = filter.select(&record);
                let planned = coverage.plan_or_count(&record, selected)?;
                Some((record, planned))
            });
            let mut selected: Vec<_> = chosen.collect();
            // Reading lengths costs the server time, so a command that only shows them reads them
            // after the selection.
            if query.lengths == Lengths::Selected {
                keyspace
                    .read_lengths(selected.iter_mut().map(|(record, _)| &mut record.seen))
                    .await?;
                for (record, _) in &mut selected {
                    diagnosis::add_oversized(record, &query.thresholds);
                }
            }
            for (record, _) in &mut selected {
                record.drop_guess_of_long_value();
            }
            Ok(Some(SelectedPage { records: count, selected }))
        };
        let read = self.interrupt.unless_raised(read).await;
        let page = self.settle(read);
        self.progress.set_position(self.keys());
        self.look_elsewhere().await;
        page
    }

    /// Like [`Scan::next_page`], for a scan that reads deadlines first. Only the values of records
    /// are read that `has_to_be_read` accepts by the expiries of their Redis keys.
    pub async fn next_page_by_deadline<F: RecordFilter>(
        &mut self,
        filter: &F,
        has_to_be_read: impl Fn(&Candidate, &[Option<TimeLeft>]) -> bool,
    ) -> Option<SelectedPage<F::Plan>> {
        let page = self.next_deadlines().await?;
        let count = page.len();
        let mut candidates = Vec::new();
        for (candidate, expiries) in page {
            if has_to_be_read(&candidate, &expiries) {
                candidates.push(candidate);
            }
        }
        let mut selected = Vec::new();
        // An empty page needs no round trip.
        if !candidates.is_empty() {
            let records = self.read_records(candidates, |record| filter.is_about(record)).await?;
            for record in records {
                let planned = filter.select(&record);
                if let Some(planned) = self.coverage.plan_or_count(&record, planned) {
                    selected.push((record, planned));
                }
            }
        }
        Some(SelectedPage { records: count, selected })
    }

    /// The expiry of each Redis key of the next page's records, `None` for an absent key. The outer
    /// `None` is the end of the scan.
    pub async fn next_deadlines(&mut self) -> Option<Vec<(Candidate, Vec<Option<TimeLeft>>)>> {
        if self.end.is_some() {
            return None;
        }
        let read =
            self.interrupt.unless_raised(self.keyspace.next_deadlines(self.query.catalog)).await;
        let page = self.settle(read);
        self.progress.set_position(self.keys());
        self.look_elsewhere().await;
        page
    }

    /// Notes after the last page whether only other databases have keys, so that the operator may
    /// have named the wrong one. Schemas that were named may have no keys yet.
    async fn look_elsewhere(&mut self) {
        let is_nothing = self.has_no_key() && self.keyspace.keys_of_other_schemas().is_empty();
        let is_named = self.query.catalog.names_schemas();
        if matches!(self.end, Some(ScanEnd::Complete)) && is_nothing && !is_named {
            self.coverage.is_elsewhere = !self.keyspace.reader.keys_elsewhere().await.is_empty();
        }
    }

    /// The records of these candidates. A default TTL is compared with the records that `is_about`
    /// accepts. Reachable nodes are still asked after the scan has ended, except after Ctrl-C.
    /// `None` if nothing could be read.
    pub async fn read_records(
        &mut self,
        candidates: Vec<Candidate>,
        is_about: impl Fn(&Record) -> bool,
    ) -> Option<Vec<Record>> {
        // The user wants the command to end, so no node is asked any more.
        if matches!(self.end, Some(ScanEnd::Interrupted)) {
            return None;
        }
        let Self { query, keyspace, coverage, .. } = self;
        let decoder = RecordDecoder {
            catalog: query.catalog,
            thresholds: &query.thresholds,
            needed: query.needed,
            coverage: &mut *coverage,
        };
        let read = self.interrupt.unless_raised(keyspace.read_records(decoder, candidates)).await;
        let records = self.settle(with_value(read))?;
        for record in &records {
            if is_about(record) {
                self.coverage.contradictions.note(record);
            }
        }
        Some(records)
    }

    /// The memory in bytes that each of these records uses; `None` for a record if the server does
    /// not report it. The outer `None` means that the scan ended.
    pub async fn read_memory(&mut self, records: &[Vec<Vec<u8>>]) -> Option<Vec<Option<u64>>> {
        let read = self.interrupt.unless_raised(self.keyspace.read_memory(records)).await;
        self.settle(with_value(read))
    }

    /// Sets how much of each value the following pages read at least.
    pub fn set_first_read(&mut self, head: ReadLimit) {
        self.keyspace.set_first_read(head);
    }

    /// The following pages read whole values, and keep records whose deviation is behind the bytes
    /// that were read before.
    pub fn read_whole_to_change(&mut self) {
        self.set_first_read(ReadLimit::Bytes(MAX_WHOLE));
        self.coverage.keeps_deviating_behind_head = true;
    }

    /// Returns the counts so far and resets them.
    pub fn take_coverage(&mut self) -> Coverage {
        std::mem::take(&mut self.coverage)
    }

    /// How many Redis keys SCAN returned so far.
    pub fn keys(&self) -> u64 {
        self.earlier.keys + self.keyspace.keys_returned()
    }

    /// Checks that the scan was not interrupted and did not fail. Unreadable nodes are accepted,
    /// because the command continues with the records of the others; the report names them.
    ///
    /// # Errors
    /// Interrupted, or the error that ended the scan.
    pub fn require_end(&self) -> Result<()> {
        match &self.end {
            Some(ScanEnd::Interrupted) => Err(CommandError::interrupted("interrupted").into()),
            Some(ScanEnd::Failed(error)) => Err(error.clone().into()),
            None | Some(ScanEnd::Complete | ScanEnd::Incomplete(_)) => Ok(()),
        }
    }

    /// The approximate number of Redis keys that the servers iterated over so far, including those
    /// that matched no pattern.
    pub fn keys_iterated(&self) -> u64 {
        self.earlier.iterated + self.keyspace.keys_iterated()
    }

    /// The report of the scan. A scan that is still in progress ends here, because the command has
    /// enough.
    pub fn finish(mut self) -> ScanReport {
        self.progress.finish_and_clear();
        self.note_schemas_without_keys();
        let (keys, iterated) = (self.keys(), self.keys_iterated());
        let end = match self.end {
            None | Some(ScanEnd::Complete) => {
                // A node may have failed while records were read after the last page.
                match self.keyspace.gap() {
                    Some(gap) => ScanEnd::Incomplete(gap),
                    None => ScanEnd::Complete,
                }
            }
            Some(end) => end,
        };
        ScanReport {
            end,
            keys,
            iterated,
            forbidden: self.earlier.forbidden.or_else(|| self.keyspace.forbidden()),
            keys_of_other_schemas: self.keyspace.keys_of_other_schemas().clone(),
            coverage: self.coverage,
        }
    }

    /// True if no Redis key so far belongs to a schema.
    fn has_no_key(&self) -> bool {
        self.earlier.schemas.is_empty() && self.keyspace.schemas_with_keys().is_empty()
    }

    /// Notes the schemas of which no Redis key was found, if they are named or their prefix is set. A
    /// scan that did not read everything does not know that.
    fn note_schemas_without_keys(&mut self) {
        if !matches!(self.end, Some(ScanEnd::Complete)) || self.keyspace.gap().is_some() {
            return;
        }
        self.coverage.has_no_key = self.has_no_key();
        let names_schemas = self.query.catalog.names_schemas();
        let seen = self.earlier.schemas.iter().chain(self.keyspace.schemas_with_keys());
        for schema in self.query.catalog.scanned() {
            let has_keys = seen.clone().any(|seen| Arc::ptr_eq(seen, &schema));
            let is_stated = names_schemas || schema.prefix.is_set;
            if is_stated && !has_keys && schema.has_fixed_prefix() {
                let prefix = schema.keys[0].template.prefix().to_vec();
                self.coverage.without_keys.push((schema.name.clone(), prefix));
            }
        }
    }

    /// The result of a read; if there is none, records how the scan ended. The first error is kept,
    /// because the later ones follow from it.
    fn settle<T>(&mut self, read: Option<Result<Option<T>, StoreError>>) -> Option<T> {
        let end = match ScanEnd::unless_read(read) {
            Ok(value) => return Some(value),
            Err(end) => end,
        };
        self.progress.finish_and_clear();
        let is_first = matches!(self.end, None | Some(ScanEnd::Complete));
        // Ctrl-C replaces an earlier error, because then no node is asked any more.
        if is_first || matches!(end, ScanEnd::Interrupted) {
            self.end = Some(end);
        }
        None
    }
}

impl<T> SelectedPage<T> {
    /// The selected records without the plans.
    pub fn into_records(self) -> Vec<Record> {
        self.selected.into_iter().map(|(record, _)| record).collect()
    }
}

impl ScanEnd {
    /// The result of a read, or how the scan ended with it. The outer `None` is Ctrl-C, as returned
    /// by [`Interrupt::unless_raised`], and the inner one is the end of the keyspace.
    pub fn unless_read<T>(read: Option<Result<Option<T>, StoreError>>) -> Result<T, Self> {
        match read {
            Some(Ok(Some(value))) => Ok(value),
            Some(Ok(None)) => Err(Self::Complete),
            Some(Err(error @ StoreError::Missed { .. })) => Err(Self::Incomplete(error)),
            Some(Err(error)) => Err(Self::Failed(error)),
            None => Err(Self::Interrupted),
        }
    }

    /// Checks that the scan is complete. `what` begins the message, e.g. "the list is"; `so_far`
    /// states the progress of the scan.
    ///
    /// # Errors
    /// Interrupted, or partial; the error of the scan itself if nothing was read or the user may
    /// not read.
    pub fn require_complete(self, what: &str, so_far: &str, is_nothing: bool) -> Result<()> {
        match self {
            Self::Complete => Ok(()),
            Self::Interrupted => {
                Err(CommandError::interrupted(format!("interrupted after {so_far}")).into())
            }
            Self::Failed(error) if is_nothing || error.is_permission() => Err(error.into()),
            Self::Failed(error) | Self::Incomplete(error) => {
                let mut stop = CommandError::new(
                    Exit::Partial,
                    format!("{what} not complete, {so_far}: {error}"),
                );
                stop.hint = error.hint().map(str::to_owned);
                Err(stop.into())
            }
        }
    }
}

impl ScanReport {
    /// True if everything was read. Records that the Redis user may not read may belong to the
    /// schemas, so a scan without them is incomplete even if it ended normally.
    pub fn is_complete(&self, catalog: &Catalog) -> bool {
        matches!(self.end, ScanEnd::Complete)
            && self.forbidden.is_none()
            && !self.coverage.is_elsewhere
            && catalog.covered().is_whole()
    }

    /// What an answer about all records of these schemas covers, if the scan came to its end.
    pub fn covered(&self, catalog: &Catalog) -> Covered {
        self.coverage.covered(Some(catalog), self.forbidden.as_deref())
    }

    /// Prints which records were left out, and which default TTLs the records contradict.
    pub fn show_coverage(&self, session: &mut Session, catalog: &Catalog) {
        show_coverage(session, &self.coverage, catalog);
        // The error of a scan that ended for lack of rights reports the same.
        let is_reported = matches!(&self.end, ScanEnd::Failed(error) if error.is_permission());
        if let Some(forbidden) = &self.forbidden
            && !is_reported
        {
            session.ui.warning(forbidden);
        }
    }

    /// Checks that the scan is complete, see [`ScanEnd::require_complete`].
    ///
    /// # Errors
    /// The errors of [`ScanEnd::require_complete`].
    pub fn require_complete(self, what: &str, so_far: &str) -> Result<()> {
        self.end.require_complete(what, so_far, self.keys == 0)
    }
}

/// The result of a read that always has a value, in the form that [`Scan::settle`] takes.
fn with_value<T>(read: Option<Result<T, StoreError>>) -> Option<Result<Option<T>, StoreError>> {
    match read {
        Some(Ok(value)) => Some(Ok(Some(value))),
        Some(Err(error)) => Some(Err(error)),
        None => None,
    }
}

async fn open(reader: RecordReader, query: &ScanQuery<'_>) -> Result<KeyspaceScan, StoreError> {
    let mut keyspace = KeyspaceScan::start(reader, query.catalog, query.first_read).await?;
    if query.needed.contains(ValueField::Idle) {
        keyspace = keyspace.with_idle_times();
    }
    Ok(if query.lengths == Lengths::All { keyspace } else { keyspace.without_lengths() })
}

/// Prints which records were left out, and which default TTLs the records contradict.
pub fn show_coverage(session: &mut Session, of: &Coverage, catalog: &Catalog) {
    show_left_out(session, of, catalog);
    for note in coverage::contradicted_defaults(of) {
        session.ui.note(&note);
    }
}

/// Prints which records were left out, and the options that set the missing TTLs for the same
/// command.
pub fn show_left_out(session: &mut Session, of: &Coverage, catalog: &Catalog) {
    // Details only: on a server that other programs share, every run would print these lines.
    if let Some(line) = coverage::unrecognised(of) {
        session.ui.detail(&line);
    }
    for line in coverage::lines(of, catalog) {
        session.ui.status(&line);
    }
    // Only the operator knows the TTL of a deployment, so that the line has a condition.
    for options in coverage::stating(of, catalog) {
        let line = session.ui.invocation().again(&options);
        session.ui.hint(&format!("if your service sets {}: `{line}`", options[3]));
    }
}

/// Prints that a complete scan selected nothing, which `none` says, or what it did not cover. `keys`
/// were read.
pub async fn show_none(
    session: &mut Session,
    none: &str,
    covered: &Covered,
    coverage: &Coverage,
    keys: u64,
    reader: &RecordReader,
    server: &str,
) {
    let mut held = 0;
    if coverage.has_no_key {
        held = reader.keys_on_server().await.unwrap_or(0);
    }
    let line = if held == 0 {
        words::among(none, keys, server)
    } else {
        format!("{none}; none of the {held} Redis keys of {server} has a name of these schemas")
    };
    session.ui.status(&covered.answer(line));
}

/// Prints possible reasons why a complete scan found nothing: schemas that were left out, keys that
/// belong to `other_schemas`, and Redis keys in other databases.
pub async fn explain_nothing(
    session: &mut Session,
    catalog: &Catalog,
    reader: &RecordReader,
    other_schemas: &BTreeMap<String, u64>,
) {
    explain_left_out(session, catalog);
    for (schema, keys) in other_schemas {
        session
            .ui
            .hint(&format!("keys of the schema {schema}, which --schema {schema} reads: {keys}"));
    }
    show_other_databases(session, reader).await;
}

/// Prints which schemas a scan left out because neither --schema nor the context names them.
pub fn explain_left_out(session: &mut Session, catalog: &Catalog) {
    // Schemas that the context names are reported as skipped.
    if catalog.skipped().next().is_none()
        && let Some(line) = coverage::left_out(catalog)
    {
        session.ui.status(&line);
    }
}

/// At most this many other databases are listed, so that they do not hide the message before.
const MAX_DATABASES: usize = 3;

/// Prints which other databases of the server contain Redis keys, the largest first.
pub async fn show_other_databases(session: &mut Session, reader: &RecordReader) {
    let mut elsewhere = reader.keys_elsewhere().await;
    elsewhere.sort_by_key(|(_, keys)| Reverse(*keys));
    let more = elsewhere.len().saturating_sub(MAX_DATABASES);
    for (db, keys) in elsewhere.into_iter().take(MAX_DATABASES) {
        session.ui.hint(&format!("Redis keys in database {db} (-n {db}): {keys}"));
    }
    if more > 0 {
        session.ui.hint(&format!("{more} more databases have Redis keys"));
    }
}
