//! `idemctl list`: the records of the chosen schemas.

mod rows;

use anyhow::Result;
use clap::Args as ClapArgs;
use serde_json::Map;

use self::rows::{ListRows, RowArgs};
use crate::args::{FollowArgs, Format, ScanArgs, SchemaArgs, SelectArgs, Sort, ThresholdArgs};
use crate::domain::diagnosis::FindingCode;
use crate::domain::record::{FieldSet, ValueField};
use crate::domain::schema::{Catalog, State};
use crate::domain::select::Selection;
use crate::domain::select::awaited::{Awaited, AwaitedState};
use crate::domain::snapshot::ListScope;
use crate::exit::{self, CommandError, Exit};
use crate::interrupt::Interrupt;
use crate::render::{coverage, words};
use crate::scan::{self, Lengths, Scan, ScanEnd, ScanQuery, ScanReport};
use crate::session::Session;
use crate::store::{ReadLimit, RecordReader};
use crate::watch::{self, Watch};

/// List the records of the selected schemas
///
/// Scans the keyspace and shows records as they are found. Schemas without a fixed prefix
/// (go-chi) are listed only if --schema names them. Reads only the beginning of each value; --full
/// also reads response bodies. A record that is written or removed during the scan may be missing,
/// or shown in its older state.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(flatten)]
    rows: RowArgs,

    #[command(flatten)]
    thresholds: ThresholdArgs,

    #[command(flatten)]
    select: SelectArgs,

    #[command(flatten)]
    follow: FollowArgs,

    #[command(flatten)]
    scan: ScanArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    let catalog = session.catalog(&args.schemas)?;
    if catalog.scanned().is_empty() {
        return Err(CommandError::usage("no schema to list").hint("name one with --schema").into());
    }
    if args.rows.null && args.rows.show.output != Format::Name {
        return Err(CommandError::usage(
            "-0 changes how names end, but this output writes no names",
        )
        .hint("add `-o name`")
        .into());
    }
    let selection = args.select.selection(session, &catalog, &args.thresholds)?;
    let is_table = matches!(args.rows.show.output, Format::Text | Format::Wide);
    let watch = Watch::of(session, &args.follow, is_table)?.map(Watch::scanning);
    check_watch(&args, watch.as_ref(), &selection)?;
    if let Some(remark) = args.select.filter.remark(&catalog) {
        session.ui.status(&remark);
    }
    let databases = databases(session, &args).await?;
    let interrupt = Interrupt::listen()?;
    let listing = ListRun {
        args: &args,
        catalog: &catalog,
        selection: &selection,
        databases: &databases,
        interrupt: &interrupt,
    };
    let Some(watch) = watch else {
        let (_, exit) = listing.run(session).await?;
        return Ok(exit);
    };
    let mut waiting = AwaitedState::default();
    let list_again = async |session: &mut Session| {
        let (states, exit) = listing.run(session).await?;
        match watch.until() {
            // What was not read may have another state.
            Some(_) if exit == Exit::Partial => Ok(Awaited::NotYet),
            Some(until) => Ok(waiting.judge(until, &states)),
            None => Ok(Awaited::NotYet),
        }
    };
    watch.follow(session, &interrupt, list_again).await
}

/// # Errors
/// Usage: a watch whose output never ends, or whose awaited state the filters exclude.
fn check_watch(args: &Args, watch: Option<&Watch>, selection: &Selection) -> Result<()> {
    if watch.is_some() && args.rows.show.output == Format::Json {
        return Err(watch::endless());
    }
    let Some(until) = watch.and_then(Watch::until) else { return Ok(()) };
    // `absent` is reached when no selected record exists, so it is possible with every --state.
    if until == State::Absent || selection.states.is_empty() || selection.states.contains(&until) {
        return Ok(());
    }
    Err(CommandError::usage(format!("--until {}: --state excludes this state", until.as_str()))
        .into())
}

/// A database whose records are listed; its number if several are.
struct Database {
    number: Option<i64>,
    reader: RecordReader,
}

async fn databases(session: &mut Session, args: &Args) -> Result<Vec<Database>> {
    let reader = session.connect_reader().await?.scanning(args.scan.scan_options());
    if !args.rows.all_dbs {
        return Ok(vec![Database { number: None, reader }]);
    }
    let mut databases = Vec::new();
    for (number, reader) in reader.of_all_databases().await? {
        databases.push(Database { number: Some(number), reader });
    }
    Ok(databases)
}

/// What one listing needs; a watch lists again and again.
struct ListRun<'a> {
    args: &'a Args,
    catalog: &'a Catalog,
    selection: &'a Selection,
    databases: &'a [Database],
    interrupt: &'a Interrupt,
}

impl ListRun<'_> {
    /// Lists the records, and returns the states that they have, and the exit code.
    async fn run(&self, session: &mut Session) -> Result<(Vec<State>, Exit)> {
        let RowArgs { show, all_dbs, .. } = &self.args.rows;
        // `diff` refuses lists of different servers. If the server does not identify itself, the
        // list is still useful.
        let mut from = None;
        if show.output == Format::Json {
            from = session.connect().await?.provenance().await.ok();
        }
        let by_status = !self.selection.statuses.is_empty();
        let mut rows = ListRows::new(session, &self.args.rows, by_status);
        let mut states = Vec::new();
        let progress = session.ui.progress("keys scanned");
        let mut scan =
            Scan::start(self.databases[0].reader.clone(), self.query(), self.interrupt, progress)
                .await?
                .reporting_deviating(self.selection);
        for (index, database) in self.databases.iter().enumerate() {
            if index > 0 && (rows.are_full() || !scan.continue_in(database.reader.clone()).await) {
                break;
            }
            while !rows.are_full()
                && let Some(page) = scan.next_page(self.selection).await
            {
                let mut records = page.into_records();
                for record in &mut records {
                    record.db = database.number;
                    if !states.contains(&record.state) {
                        states.push(record.state);
                    }
                    // Without --full, only the first bytes of the body were read, which are no use.
                    record.forget_cut_body();
                }
                rows.add(session, records)?;
            }
        }
        let mut report = scan.finish();
        // They were scanned, too.
        report.coverage.is_elsewhere &= !all_dbs;
        let scope = ListScope {
            from,
            all_dbs: *all_dbs,
            schemas: self.catalog.scanned_names(),
            filters: session.ui.invocation().selection(),
            limit: rows.limit_that_cut(),
        };
        let mut covered = Map::from_iter([("scope".to_owned(), serde_json::to_value(scope)?)]);
        covered.extend(coverage::fields(&report.coverage, self.catalog, report.keys));
        rows.close(session, report.is_complete(self.catalog), covered)?;
        report.show_coverage(session, self.catalog);
        let exit = exit::judged(false, &report.covered(self.catalog));
        self.end(session, &rows, report).await?;
        Ok((states, exit))
    }

    fn query(&self) -> ScanQuery<'_> {
        let first_read = if self.args.rows.full || self.selection.reads_bodies() {
            ReadLimit::Whole
        } else {
            ReadLimit::Bytes(0)
        };
        ScanQuery {
            catalog: self.catalog,
            thresholds: self.args.thresholds.thresholds(),
            first_read,
            needed: self.needed_fields(),
            lengths: if chooses_by_size(self.args) { Lengths::All } else { Lengths::Selected },
        }
    }

    /// The fields that the filters, the order and the output need.
    fn needed_fields(&self) -> FieldSet {
        let show = &self.args.rows.show;
        let shown = match show.output {
            Format::Name => FieldSet::NONE,
            Format::Text if show.columns.is_empty() => {
                FieldSet::of(&[ValueField::Owner, ValueField::Time])
            }
            Format::Text | Format::Csv | Format::Tsv if !show.columns.is_empty() => {
                let mut fields = FieldSet::NONE;
                for column in &show.columns {
                    if let Some(field) = column.field {
                        fields.insert(field);
                    }
                }
                fields
            }
            _ => FieldSet::ALL,
        };
        let mut needed = shown.union(self.selection.scanned_fields());
        if show.sort.is_some() {
            needed.insert(ValueField::Time);
        }
        if matches!(show.sort, Some(Sort::Idle)) {
            needed.insert(ValueField::Idle);
        }
        needed
    }

    /// Says how far the scan got.
    ///
    /// # Errors
    /// The scan is not complete.
    async fn end(
        &self,
        session: &mut Session,
        rows: &ListRows<'_>,
        report: ScanReport,
    ) -> Result<()> {
        let shown = rows.shown();
        let server = self.server();
        let so_far = words::among(&words::counted(shown as u64, "record"), report.keys, &server);
        let is_for_people = matches!(self.args.rows.show.output, Format::Text | Format::Wide);
        // After an incomplete scan, records may exist in the unread rest.
        if !matches!(report.end, ScanEnd::Complete) {
            return report.require_complete("the list is", &so_far);
        }
        if shown == 0 {
            let (none, covered) = ("no such records", report.covered(self.catalog));
            if let [Database { number: None, reader }] = self.databases {
                let (of, keys) = (&report.coverage, report.keys);
                scan::show_none(session, none, &covered, of, keys, reader, &server).await;
                let others = &report.keys_of_other_schemas;
                scan::explain_nothing(session, self.catalog, reader, others).await;
            } else {
                let none = words::among(none, report.keys, &server);
                session.ui.status(&covered.answer(none));
                // --all-dbs has scanned the other databases, so they explain nothing.
                if let Some(line) = coverage::left_out(self.catalog) {
                    session.ui.status(&line);
                }
            }
        } else if is_for_people && let Some(limit) = rows.limit_reached() {
            let scanned = words::count(report.iterated);
            session
                .ui
                .status(&format!("{shown} shown (limit {limit}), about {scanned} keys scanned"));
        } else if rows.was_cut() {
            session.ui.status(&format!("the first {shown}; --limit shows more"));
        } else if is_for_people {
            session.ui.status(&so_far);
        }
        let reads_idle_times = self.needed_fields().contains(ValueField::Idle);
        if shown > 0 && reads_idle_times && !self.databases[0].reader.keeps_idle_times() {
            session.ui.note(words::IDLE_TIMES);
        }
        // A watch would repeat the hint each time.
        let without_room = rows.without_room();
        let is_watch = self.args.follow.interval()?.is_some();
        if shown > 0 && !is_watch && !without_room.is_empty() {
            let names = without_room.join(", ");
            session.ui.hint(&format!(
                "no room for {names}; pipe the output into `less -S` to see all columns"
            ));
        }
        if rows.have_findings() && !is_watch && session.ui.out_is_terminal() {
            session.ui.hint("`idemctl inspect KEY` says what a finding means, and what to do");
        }
        if shown > 0 && !is_watch && rows.shortened_a_key() {
            session.ui.hint("some keys are shortened; -o name prints them whole");
        }
        Ok(())
    }

    /// The server's name for people.
    fn server(&self) -> String {
        let name = self.databases[0].reader.name();
        if !self.args.rows.all_dbs {
            return name;
        }
        // The name ends with the number of one database.
        let Some((server, _)) = name.rsplit_once('/') else { return name };
        format!("{} of {server}", words::counted(self.databases.len() as u64, "database"))
    }
}

/// True if the lengths of values decide which records are shown. The length of every record is then
/// read, and otherwise only those of the shown records, because each costs an extra command.
fn chooses_by_size(args: &Args) -> bool {
    matches!(args.rows.show.sort, Some(Sort::Size))
        || args.select.finding.contains(&FindingCode::Oversized)
}
