//! `idemctl diff`: what happened to records between two snapshots.

mod snapshot;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args as ClapArgs;

use self::snapshot::{Snapshot, records};
use crate::args::{Output, ScanArgs, SchemaArgs, SelectArgs};
use crate::domain::diagnosis::Thresholds;
use crate::domain::record::{FieldSet, Record};
use crate::domain::select::{Selected, Selection};
use crate::domain::snapshot::{
    DifferenceCounts, DifferenceKind, ListScope, ListedRecord, SnapshotIndex, Summary, how_it_went,
};
use crate::exit::{CommandError, Exit};
use crate::interrupt::Interrupt;
use crate::render::difference::{self, DifferenceRow};
use crate::render::document::Streamed;
use crate::render::record_json::RecordJson;
use crate::scan::{Lengths, RecordFilter, Scan, ScanEnd, ScanQuery, ScanReport, show_coverage};
use crate::session::Session;
use crate::store::ReadLimit;

/// Compare two snapshots of the records, or one with now
///
/// A snapshot is a file that `idemctl list --full -o json` wrote. Output of `list -o jsonl` also works,
/// but does not record whether it is complete. Two files need no server. Without B, diff reads all
/// current records of the selected schemas. Filters select the records that match in either
/// snapshot.
///
/// A record that is gone has `expired`, or was `removed` before its TTL ended. A record that
/// remains has another `state`, another value (`retaken`), or only another expiry (`renewed`).
///
/// Both snapshots must have the same server, database, schemas and filters. Exit status 0 if
/// nothing differs, 1 if something does, 3 if a snapshot is incomplete or contains only the
/// beginning of a value (`list --full` reads all of it).
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// First snapshot, a file of `list -o json`
    #[arg(value_name = "A")]
    before: PathBuf,

    /// Second snapshot, `-` for stdin [default: the current records]
    #[arg(value_name = "B")]
    after: Option<PathBuf>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    select: SelectArgs,

    #[command(flatten)]
    scan: ScanArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    let selection = args.select.selection_of_snapshot()?;
    if selection.reads_bodies() {
        return Err(CommandError::usage("--body-contains: a snapshot does not contain bodies")
            .hint("list both snapshots with --body-contains, and compare those lists")
            .into());
    }
    // Both snapshots are restricted to the schemas that --schema names.
    let schemas = args.schemas.schema.clone();
    snapshot::require_file(&args.before)?;
    let mut known = SnapshotIndex::default();
    let mut summary = Summary::default();
    let mut unproven = 0;
    let before = records(&args.before, |listed_record| {
        if !is_of_schemas(&listed_record, &schemas) {
            return Ok(());
        }
        let selected = listed_record.selected(&selection);
        let is_chosen = selected == Selected::Yes(());
        unproven += u64::from(matches!(selected, Selected::Unproven(_)));
        known.add(&listed_record, is_chosen);
        if is_chosen {
            summary.add(&listed_record, 0);
        }
        Ok(())
    })?;
    let mut diff = Diff {
        known,
        selection,
        unproven: [unproven, 0],
        summary,
        document: Streamed::new("differences"),
        counts: DifferenceCounts::default(),
        output: args.output,
        at: None,
        is_complete: true,
        is_unsure: false,
        knows_all: true,
    };
    diff.note_completeness(session, &args.before, &before);
    let interrupt = Interrupt::listen()?;
    let mut scanned = None;
    if let Some(file) = &args.after {
        let after = records(file, |listed_record| {
            if interrupt.is_raised() {
                return Err(interrupted().into());
            }
            if !is_of_schemas(&listed_record, &schemas) {
                return Ok(());
            }
            diff.meet(session, &listed_record)
        })?;
        diff.knows_all = diff.note_completeness(session, file, &after);
        if let (Some(before), Some(after)) = (&before.scope, &after.scope) {
            check_scopes(&before.restricted_to(&schemas), &after.restricted_to(&schemas))?;
        }
    } else {
        let report = diff.meet_now(session, &args, before.scope.as_ref(), &interrupt).await?;
        // A record that the scan did not return may still exist, on a node that was not read or
        // later in the keyspace.
        diff.knows_all = matches!(report.end, ScanEnd::Complete);
        scanned = Some(report);
    }
    if diff.knows_all {
        diff.miss_all(session, &args.before, &schemas)?;
    }
    let Some(report) = scanned else { return diff.end(session) };
    let is_nothing = !diff.knows_all && report.keys == 0;
    let exit = if is_nothing { Exit::Partial } else { diff.end(session)? };
    let so_far = format!("{} keys", report.keys);
    report.require_complete("the comparison is", &so_far)?;
    Ok(exit)
}

/// True if --schema names the record's schema, or is not given.
fn is_of_schemas(listed_record: &ListedRecord, schemas: &[String]) -> bool {
    schemas.is_empty() || schemas.contains(&listed_record.schema)
}

/// Selects every current record, because filters select the records that match in either snapshot.
/// Only those that match now are compared with a default TTL.
struct EveryRecord(Selection);

impl RecordFilter for EveryRecord {
    type Plan = ();

    fn is_about(&self, record: &Record) -> bool {
        self.0.is_about(record)
    }

    fn select(&self, _record: &Record) -> Selected {
        Selected::Yes(())
    }
}

struct Diff {
    known: SnapshotIndex,
    selection: Selection,
    /// Records of each snapshot that the filter leaves out because their age is not proven.
    unproven: [u64; 2],
    summary: Summary,
    document: Streamed,
    counts: DifferenceCounts,
    output: Output,
    /// When the last record of the second snapshot was read, by its server's clock.
    at: Option<u64>,
    /// False if a snapshot may lack records that existed.
    is_complete: bool,
    /// True if a snapshot does not show whether it is complete.
    is_unsure: bool,
    /// False if the second snapshot is not complete, so that it is unknown which records are gone.
    knows_all: bool,
}

impl Diff {
    /// Notes whether a snapshot is complete, and warns if it is not. False if it certainly is not.
    fn note_completeness(
        &mut self,
        session: &mut Session,
        file: &Path,
        snapshot: &Snapshot,
    ) -> bool {
        let limit = snapshot.scope.as_ref().and_then(|scope| scope.limit);
        let is_complete = limit.is_none() && snapshot.is_complete != Some(false);
        self.is_complete &= is_complete;
        let file = file.display();
        match snapshot.is_complete {
            Some(true) if limit.is_none() => {}
            Some(_) => {
                session.ui.warning(&format!(
                    "{file} is not complete; records that it lacks may appear as added or gone"
                ));
            }
            None => {
                self.is_unsure = true;
                let text = format!(
                    "{file}: JSON lines do not show whether a list is complete; `list -o json` does"
                );
                session.ui.status(&text);
            }
        }
        is_complete
    }

    /// Compares a record of the second snapshot with the first one.
    fn meet(&mut self, session: &mut Session, now: &ListedRecord) -> Result<()> {
        self.at = self.at.max(now.read_at_ms());
        let selected = now.selected(&self.selection);
        let is_chosen = selected == Selected::Yes(());
        self.unproven[1] += u64::from(matches!(selected, Selected::Unproven(_)));
        let Some(met) = self.known.meet(now, is_chosen) else { return Ok(()) };
        if is_chosen {
            self.summary.add(now, 1);
        }
        self.counts.add(met.what, met.is_partial);
        let Some(what) = met.what else { return Ok(()) };
        let row =
            DifferenceRow { what, how: None, before: met.before, after: Some(&now.state), of: now };
        self.show(session, &row)
    }

    /// Reports the records of the first snapshot that the second one does not have. The first
    /// snapshot is read a second time, because the index does not keep whole records.
    fn miss_all(&mut self, session: &mut Session, file: &Path, schemas: &[String]) -> Result<()> {
        records(file, |listed_record| {
            if !is_of_schemas(&listed_record, schemas) {
                return Ok(());
            }
            self.miss(session, &listed_record)
        })?;
        Ok(())
    }

    fn miss(&mut self, session: &mut Session, then: &ListedRecord) -> Result<()> {
        let is_chosen = then.selected(&self.selection) == Selected::Yes(());
        if !is_chosen || !self.known.is_gone(then) {
            return Ok(());
        }
        let how = how_it_went(then.ends_at_ms(), self.at);
        self.counts.add(Some(DifferenceKind::Went), false);
        self.counts.add_how(how);
        let what = DifferenceKind::Went;
        let row = DifferenceRow { what, how, before: Some(&then.state), after: None, of: then };
        self.show(session, &row)
    }

    async fn meet_now(
        &mut self,
        session: &mut Session,
        args: &Args,
        before: Option<&ListScope>,
        interrupt: &Interrupt,
    ) -> Result<ScanReport> {
        let catalog = session.catalog(&args.schemas)?;
        if catalog.scanned().is_empty() {
            return Err(CommandError::usage("no schema to compare")
                .hint("name one with --schema")
                .into());
        }
        if let Some(before) = before {
            let from = session.connect().await?.provenance().await.ok();
            // The filters of this command apply to both snapshots, so they are compared only if the
            // list was filtered, too.
            let mut filters = None;
            if before.filters.is_some() {
                filters = session.ui.invocation().selection();
            }
            let schemas = catalog.scanned_names();
            let now = ListScope { from, all_dbs: false, schemas, filters, limit: None };
            check_scopes(&before.restricted_to(&args.schemas.schema), &now)?;
        }
        let reader = session.connect_reader().await?.scanning(args.scan.scan_options());
        // Reads as much of each value as the list did. Otherwise long values and their findings
        // could not be compared.
        let first_read =
            if self.known.is_all_whole() { ReadLimit::Whole } else { ReadLimit::Bytes(0) };
        let query = ScanQuery {
            catalog: &catalog,
            thresholds: Thresholds::default(),
            first_read,
            needed: FieldSet::ALL,
            lengths: Lengths::Selected,
        };
        let progress = session.ui.progress("keys scanned");
        let mut scan = Scan::start(reader, query, interrupt, progress).await?;
        let every_record = EveryRecord(self.selection.clone());
        while let Some(page) = scan.next_page(&every_record).await {
            for record in &page.into_records() {
                self.at = self.at.max(record.seen.server_ms);
                // As a list has it, so that both snapshots are described in one way.
                let line = serde_json::to_vec(&RecordJson::of(record, false))?;
                self.meet(session, &serde_json::from_slice(&line)?)?;
            }
        }
        let report = scan.finish();
        self.is_complete &= report.is_complete(&catalog);
        if let Some(forbidden) = &report.forbidden {
            session.ui.warning(forbidden);
        }
        show_coverage(session, &report.coverage, &catalog);
        Ok(report)
    }

    fn show(&mut self, session: &mut Session, row: &DifferenceRow<'_>) -> Result<()> {
        match self.output {
            Output::Text => {
                if self.counts.differences() == 1 {
                    session.ui.page(difference::heading())?;
                }
                session.ui.page(difference::text(row))?;
            }
            Output::Json => {
                session.ui.data(self.document.before_value() + &difference::json(row))?;
            }
            Output::Jsonl => session.ui.data(difference::json(row) + "\n")?,
        }
        Ok(())
    }

    /// Whether both snapshots have all records; `None` if one of them does not show it.
    fn complete(&self) -> Option<bool> {
        if self.is_complete && self.is_unsure { None } else { Some(self.is_complete) }
    }

    fn end(self, session: &mut Session) -> Result<Exit> {
        match self.output {
            Output::Json => {
                let (counts, summary) = (&self.counts, &self.summary);
                let fields = difference::document_fields(counts, summary, self.complete());
                session.ui.data(self.document.end(&fields))?;
            }
            Output::Jsonl => {}
            // The counts of an incomplete scan would look as if records were gone.
            Output::Text if !self.knows_all => {}
            Output::Text => {
                if self.counts.differences() > 0 {
                    session.ui.page("\n")?;
                }
                session.ui.page(difference::summary_table(&self.summary, session.ui.view()))?;
            }
        }
        session.ui.flush()?;
        if !self.knows_all {
            session
                .ui
                .status("It is unknown which records are gone, because not all records were read.");
        }
        session.ui.status(&difference::summary(&self.counts));
        if let Some(line) = difference::unproven(self.unproven) {
            session.ui.status(&line);
        }
        Ok(match self.counts.differences() {
            _ if !self.is_complete || self.counts.partial > 0 => Exit::Partial,
            0 => Exit::Done,
            _ => Exit::No,
        })
    }
}

/// Passes if two lists have the same scope. Otherwise records outside the scope of one list would
/// appear as added or gone.
///
/// # Errors
/// Usage: the scopes differ.
fn check_scopes(before: &ListScope, after: &ListScope) -> Result<(), CommandError> {
    match before.differs_from(after) {
        None => Ok(()),
        Some(why) => Err(CommandError::usage(format!("cannot compare the two snapshots: {why}"))),
    }
}

fn interrupted() -> CommandError {
    CommandError::interrupted("interrupted")
}
