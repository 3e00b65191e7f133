//! `idemctl stats`: the number of records, their sizes, ages and remaining TTLs.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args as ClapArgs, ValueEnum};

use crate::args::{
    FollowArgs, ScanArgs, SchemaArgs, SelectArgs, TabularOutput, ThresholdArgs, WatchArgs,
};
use crate::domain::record::{FieldSet, ValueField};
use crate::domain::schema::Catalog;
use crate::domain::select::Selection;
use crate::domain::select::awaited::Awaited;
use crate::domain::stats::{Stats, StatsDimension};
use crate::exit::{self, CommandError, Exit};
use crate::files;
use crate::interrupt::Interrupt;
use crate::render::columns::Separated;
use crate::render::{coverage, document, stats, words};
use crate::scan::{self, Lengths, Scan, ScanEnd, ScanQuery, ScanReport};
use crate::session::Session;
use crate::store::{ReadLimit, RecordReader};
use crate::watch::{self, Watch};

/// How many owners are named, those with the most locks first.
const OWNERS: usize = 10;

/// Count records by schema and state, with sizes and ages
///
/// Scans the keyspace and changes nothing. BYTES is the length of all values. MEMORY is the
/// server's own measure, estimated from a sample of the records (`~`). Ages that depend on a
/// schema's default TTL are also estimates (`~`).
///
/// If the server cannot be read, --prometheus writes only `idemctl_up 0` and the time.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Count by schema and this
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    by: ByArg,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: TabularOutput,

    /// Do not put a ' before csv and tsv cells that begin with = + - @
    #[arg(long)]
    raw_csv: bool,

    /// Write metrics in Prometheus's text format to FILE, or to stdout without FILE
    ///
    /// FILE is replaced atomically and is readable by others.
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        default_missing_value = "-",
        conflicts_with = "output"
    )]
    prometheus: Option<PathBuf>,

    #[command(flatten)]
    thresholds: ThresholdArgs,

    #[command(flatten)]
    select: SelectArgs,

    #[command(flatten)]
    watch: WatchArgs,

    #[command(flatten)]
    scan: ScanArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

/// `--by`.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum ByArg {
    /// The record's state.
    #[default]
    State,
    /// The owner of the lock.
    Owner,
    /// The Redis key up to its last colon.
    Prefix,
    /// The HTTP status of the stored response.
    Status,
    /// The finding; a record with two findings counts twice.
    Finding,
}

impl From<ByArg> for StatsDimension {
    fn from(arg: ByArg) -> Self {
        match arg {
            ByArg::State => Self::State,
            ByArg::Owner => Self::Owner,
            ByArg::Prefix => Self::Prefix,
            ByArg::Status => Self::Status,
            ByArg::Finding => Self::Finding,
        }
    }
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    let ended = figures(session, &args).await;
    // If the server cannot be read, an old file would look like current figures. A usage error or
    // Ctrl-C says nothing about the server.
    let is_down = match &ended {
        Ok(exit) => *exit == Exit::Partial,
        Err(error) => !matches!(exit::of(error), Exit::Usage | Exit::Interrupted),
    };
    if let Some(file) = &args.prometheus
        && is_down
    {
        let down = exposition(session, stats::down);
        if let Err(error) = write(session, file, &down) {
            session.ui.warning(&format!("{error:#}"));
        }
    }
    ended
}

async fn figures(session: &mut Session, args: &Args) -> Result<Exit> {
    let catalog = session.catalog(&args.schemas)?;
    if catalog.scanned().is_empty() {
        return Err(CommandError::usage("no schema to count")
            .hint("name one with --schema")
            .into());
    }
    let mut selection = args.select.selection(session, &catalog, &args.thresholds)?;
    // A record of unknown owner or status belongs to no group.
    match args.by {
        ByArg::Owner => selection.known.insert(ValueField::Owner),
        ByArg::Status => selection.known.insert(ValueField::Status),
        ByArg::State | ByArg::Prefix | ByArg::Finding => {}
    }
    if let Some(remark) = args.select.filter.remark(&catalog) {
        session.ui.status(&remark);
    }
    let is_table = args.output == TabularOutput::Text && args.prometheus.is_none();
    let watch =
        Watch::of(session, &FollowArgs::of(args.watch.clone()), is_table)?.map(Watch::scanning);
    if watch.is_some() && args.output == TabularOutput::Json {
        return Err(watch::endless());
    }
    let reader = session.connect_reader().await?.scanning(args.scan.scan_options());
    let interrupt = Interrupt::listen()?;
    let counting = Counting {
        args,
        catalog: &catalog,
        selection: &selection,
        reader: &reader,
        interrupt: &interrupt,
    };
    let Some(watch) = watch else {
        return counting.run(session).await;
    };
    let count_again = async |session: &mut Session| {
        counting.run(session).await?;
        Ok(Awaited::NotYet)
    };
    watch.follow(session, &interrupt, count_again).await
}

/// What one count needs; a watch counts again and again.
struct Counting<'a> {
    args: &'a Args,
    catalog: &'a Catalog,
    selection: &'a Selection,
    reader: &'a RecordReader,
    interrupt: &'a Interrupt,
}

impl Counting<'_> {
    /// The fields that the filters, the groups and the ages need. The selection has those of the
    /// filters and the groups.
    fn needed_fields(&self) -> FieldSet {
        let mut needed = self.selection.scanned_fields();
        needed.insert(ValueField::Time);
        needed
    }

    /// Counts the selected records, and shows the figures.
    async fn run(&self, session: &mut Session) -> Result<Exit> {
        let query = ScanQuery {
            catalog: self.catalog,
            thresholds: self.args.thresholds.thresholds(),
            first_read: if self.selection.reads_bodies() {
                ReadLimit::Whole
            } else {
                ReadLimit::Bytes(0)
            },
            needed: self.needed_fields(),
            lengths: Lengths::All,
        };
        let progress = session.ui.progress("keys scanned");
        let scan = Scan::start(self.reader.clone(), query, self.interrupt, progress).await?;
        let mut scan = scan.reporting_deviating(self.selection);
        let mut stats = Stats::new(StatsDimension::from(self.args.by));
        while let Some(page) = scan.next_page(self.selection).await {
            let records = page.into_records();
            // MEMORY USAGE of each key would take a third of the time again, so only a sample is
            // measured.
            let sample = stats.add(&records);
            if sample.is_empty() {
                continue;
            }
            let mut redis_keys = Vec::with_capacity(sample.len());
            for index in &sample {
                redis_keys.push(records[*index].redis_keys());
            }
            let Some(memory) = scan.read_memory(&redis_keys).await else { break };
            for (index, bytes) in sample.into_iter().zip(memory) {
                if let Some(bytes) = bytes {
                    stats.weigh(&records[index], bytes);
                }
            }
        }
        let report = scan.finish();
        let server = self.reader.name();
        let keys = report.keys;
        let is_complete = matches!(report.end, ScanEnd::Complete);
        // If nothing was read, the figures would look like those of an empty server.
        if is_complete || keys > 0 {
            self.show(session, &stats, &report)?;
        }
        if is_complete && counted(&stats) == 0 {
            let (none, covered) = ("no such records", report.covered(self.catalog));
            let of = &report.coverage;
            scan::show_none(session, none, &covered, of, keys, self.reader, &server).await;
            let others = &report.keys_of_other_schemas;
            scan::explain_nothing(session, self.catalog, self.reader, others).await;
        }
        if is_complete || keys > 0 {
            if !session.ui.is_verbose()
                && let Some(line) = coverage::unrecognised(&report.coverage)
            {
                session.ui.status(&line);
            }
            report.show_coverage(session, self.catalog);
        }
        let exit = exit::judged(false, &report.covered(self.catalog));
        let so_far = format!("{} of {server}", words::counted(keys, "key"));
        report.require_complete("the figures are", &so_far)?;
        Ok(exit)
    }

    /// Shows the figures, as far as the scan got.
    fn show(&self, session: &mut Session, stats: &Stats, report: &ScanReport) -> Result<()> {
        if let Some(file) = &self.args.prometheus {
            // In a graph, incomplete figures would look like a drop.
            if matches!(report.end, ScanEnd::Complete) && report.covered(self.catalog).is_whole() {
                let foreign = report.coverage.unrecognised.values().sum();
                let text =
                    exposition(session, |run| stats::exposition(stats, report.keys, foreign, run));
                write(session, file, &text)?;
            }
        } else {
            self.show_figures(session, stats, report)?;
        }
        Ok(session.ui.flush()?)
    }

    fn show_figures(
        &self,
        session: &mut Session,
        stats: &Stats,
        report: &ScanReport,
    ) -> Result<()> {
        let (rows, mut more) = stats::rows(stats, OWNERS);
        let text = match self.args.output {
            TabularOutput::Text if counted(stats) > 0 => {
                return Ok(session.ui.page(stats::text(stats, session.ui.view(), OWNERS))?);
            }
            TabularOutput::Text => return Ok(()),
            TabularOutput::Csv => stats::separated(
                &rows,
                StatsDimension::from(self.args.by),
                Separated::csv(self.args.raw_csv),
            ),
            TabularOutput::Tsv => stats::separated(
                &rows,
                StatsDimension::from(self.args.by),
                Separated::tsv(self.args.raw_csv),
            ),
            TabularOutput::Jsonl => rows.iter().map(document::line).collect(),
            TabularOutput::Json => {
                more.extend(coverage::fields(&report.coverage, self.catalog, report.keys));
                more.insert("complete".to_owned(), report.is_complete(self.catalog).into());
                document::document("rows", &rows, &more)
            }
        };
        Ok(session.ui.data(text)?)
    }
}

/// The records in the rows. With `--by finding`, records without findings are in no row.
fn counted(stats: &Stats) -> u64 {
    stats.rows().map(|(.., row)| row.records).sum()
}

/// The metrics of a run that ends now.
fn exposition(session: &Session, text: impl FnOnce(&stats::Run<'_>) -> String) -> String {
    let server = session.settings.target().to_string();
    let name = session.settings.context_name().unwrap_or_default();
    text(&stats::Run { server: &server, context: name, at_ms: session.now_ms() })
}

fn write(session: &mut Session, file: &Path, text: &str) -> Result<()> {
    if file == Path::new("-") {
        return Ok(session.ui.data(text)?);
    }
    // Replaced atomically, because the collector may read the file at any time.
    files::publish(file, text.as_bytes()).map_err(|error| {
        CommandError::usage(format!("{}: cannot write the figures: {error}", file.display()))
    })?;
    Ok(())
}
