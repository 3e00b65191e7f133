//! `idemctl stats`: how many records there are, how large, how old, and how long they stay.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args as ClapArgs, ValueEnum};

use crate::args::{FollowArgs, SchemaArgs, SelectArgs, ThresholdArgs, WalkArgs, WatchArgs};
use crate::change::{say_coverage, say_elsewhere};
use crate::context::Context;
use crate::domain::diagnosis;
use crate::domain::record::Record;
use crate::domain::schema::Catalog;
use crate::domain::select::awaited::Awaited;
use crate::domain::select::coverage::Coverage;
use crate::domain::select::selection::{Selected, Selection};
use crate::domain::stats::{By, Stats};
use crate::exit::{self, Exit, Stop};
use crate::files;
use crate::interrupt::Interrupt;
use crate::render::columns::Separated;
use crate::render::{coverage, document, stats};
use crate::store::read::records;
use crate::store::{ReadLimit, Reader, StoreError, Walk};
use crate::watch::{self, Watch};

/// Owners with the most locks that are named.
const OWNERS: usize = 10;

/// Count records by schema and state: how many, how large, how old
///
/// Walks the keyspace with SCAN. BYTES is the length of all values, MEMORY what the server says that they take, by a sample of
/// the records (`~`). Ages that only a schema's default TTL tells are estimates (`~`). Nothing is changed.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// What to count by, beside the schema
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    by: ByArg,

    /// How to show the figures
    #[arg(short, long, value_enum, default_value_t)]
    output: Figures,

    /// Write csv and tsv cells that begin with = + - @ without a ' in front
    #[arg(long)]
    raw_csv: bool,

    /// Write the figures in Prometheus's text format to this file, at once and for others to read, or to stdout without FILE;
    /// only `idemctl_up 0` and the time if the server cannot be read
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", conflicts_with = "output")]
    prometheus: Option<PathBuf>,

    #[command(flatten)]
    select: SelectArgs,

    #[command(flatten)]
    watch: WatchArgs,

    #[command(flatten)]
    walk: WalkArgs,

    #[command(flatten)]
    thresholds: ThresholdArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

/// `--output` of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Figures {
    /// For people.
    #[default]
    Table,
    /// Comma-separated values, for a spreadsheet: times in milliseconds, sizes in bytes.
    Csv,
    /// The same, separated by tabs.
    Tsv,
    /// One JSON document.
    Json,
    /// One JSON object a line.
    Jsonl,
}

/// `--by`.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum ByArg {
    /// The record's state.
    #[default]
    State,
    /// Who holds the lock.
    Owner,
    /// The Redis key up to its last colon.
    Prefix,
    /// The HTTP status of the stored response.
    Status,
    /// Each finding: a record with two counts twice.
    Finding,
}

impl From<ByArg> for By {
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

pub async fn run(context: &mut Context, args: Args) -> Result<Exit> {
    let ended = figures(context, &args).await;
    if let (Some(file), Err(error)) = (&args.prometheus, &ended)
        && !matches!(exit::of(error), Exit::Usage | Exit::Interrupted)
    {
        let down = exposition(context, stats::down);
        if let Err(error) = write(context, file, &down) {
            context.ui.warning(&format!("{error:#}"));
        }
    }
    ended
}

async fn figures(context: &mut Context, args: &Args) -> Result<Exit> {
    let catalog = context.catalog(&args.schemas)?;
    if catalog.scanned().is_empty() {
        return Err(Stop::usage("no schema to count").hint("name one with --schema").into());
    }
    let selection = args.select.selection()?;
    args.select.filter.remark(&catalog).iter().for_each(|remark| context.ui.status(remark));
    let is_table = args.output == Figures::Table && args.prometheus.is_none();
    let watch = Watch::of(context, &FollowArgs::of(args.watch.clone()), is_table)?;
    if watch.is_some() && args.output == Figures::Json {
        return Err(watch::endless());
    }
    let reader = context.reader().await?.walking(args.walk.scan_options());
    let interrupt = Interrupt::listen()?;
    let look = async |context: &mut Context| {
        count(context, args, &catalog, &selection, (&reader, &interrupt)).await.map(|()| Awaited::NotYet)
    };
    match watch {
        Some(watch) => watch.follow(context, &interrupt, look).await,
        None => look(context).await.map(|_| Exit::Done),
    }
}

/// Counts, and shows the figures.
async fn count(
    context: &mut Context,
    args: &Args,
    catalog: &Catalog,
    selection: &Selection,
    (reader, interrupt): (&Reader, &Interrupt),
) -> Result<()> {
    let head = if selection.reads_bodies() { ReadLimit::Whole } else { ReadLimit::Bytes(0) };
    let walk = Walk::start(reader.clone(), catalog, head).await?;
    let (stats, coverage) = (Stats::new(By::from(args.by)), Coverage::default());
    let mut census = Census { catalog, selection, args, walk, stats, coverage };
    let ended = census.take(context, interrupt).await;
    if ended.is_ok() || census.walk.looked_at() > 0 {
        census.show(context, ended.is_ok())?;
        if census.stats.total().records == 0 {
            say_elsewhere(context, reader).await;
        }
    }
    ended.map_err(|early| early.of(&reader.name(), census.walk.looked_at()))
}

/// Why a walk ended early.
enum Early {
    Interrupted,
    Broken(StoreError),
}

impl Early {
    /// The error of a walk that had looked at so many Redis keys.
    fn of(self, server: &str, looked_at: u64) -> anyhow::Error {
        match self {
            Self::Interrupted => Stop::interrupted(format!("interrupted: {looked_at} keys of {server} so far")).into(),
            Self::Broken(error) if looked_at == 0 || error.is_permission() => error.into(),
            Self::Broken(error) => {
                let message = format!("the figures are not complete, {looked_at} keys of {server} so far: {error}");
                let mut stop = Stop::new(Exit::Partial, message);
                stop.hint = error.hint().map(str::to_owned);
                stop.into()
            }
        }
    }
}

/// A walk, and what it has counted.
struct Census<'a> {
    catalog: &'a Catalog,
    selection: &'a Selection,
    args: &'a Args,
    walk: Walk,
    stats: Stats,
    coverage: Coverage,
}

impl Census<'_> {
    /// Counts all records that are selected.
    async fn take(&mut self, context: &Context, interrupt: &Interrupt) -> Result<(), Early> {
        let progress = context.ui.progress("keys looked at");
        loop {
            match interrupt.unless_raised(self.page()).await {
                Some(Ok(true)) => progress.set_position(self.walk.looked_at()),
                Some(Ok(false)) => break,
                Some(Err(error)) => return Err(Early::Broken(error)),
                None => return Err(Early::Interrupted),
            }
        }
        progress.finish_and_clear();
        Ok(())
    }

    /// Counts the records of the next page; false at the end.
    async fn page(&mut self) -> Result<bool, StoreError> {
        let Self { catalog, selection, args, walk, stats, coverage } = self;
        let thresholds = args.thresholds.thresholds();
        let page = records::next_page(walk, catalog, &thresholds, coverage, |key| selection.passes_key(key)).await?;
        let Some(mut records) = page else { return Ok(false) };
        records.iter_mut().for_each(|record| diagnosis::add_oversized(record, &thresholds));
        records.retain(|record| {
            if selection.is_about(record) {
                coverage.contradictions.note(record);
            }
            let selected = selection.selects(record);
            if let Selected::Unproven(missing) = selected {
                coverage.unproven.add(record, missing);
            }
            selected == Selected::Yes(())
        });
        let light: Vec<_> = stats.add(&records).into_iter().map(|index| &records[index]).collect();
        if !light.is_empty() {
            let redis_keys: Vec<_> = light.iter().map(|record| redis_keys(record)).collect();
            for (record, memory) in light.into_iter().zip(walk.weigh(&redis_keys).await?) {
                memory.iter().for_each(|bytes| stats.weigh(record, *bytes));
            }
        }
        Ok(true)
    }

    /// Shows the figures, as far as the walk came.
    fn show(&self, context: &mut Context, whole: bool) -> Result<()> {
        let counted = self.stats.rows().map(|(.., row)| row.records).sum::<u64>();
        let (walked, foreign) = (self.walk.looked_at(), self.coverage.foreign.values().sum());
        if let Some(file) = &self.args.prometheus {
            // A part of the figures would look like a drop.
            if whole {
                let text = exposition(context, |run| stats::exposition(&self.stats, walked, foreign, run));
                write(context, file, &text)?;
            }
        } else {
            self.figures(context, counted > 0, whole)?;
        }
        context.ui.flush()?;
        if counted == 0 {
            context.ui.status(&format!("no such records among {walked} keys"));
            coverage::left_out(self.catalog).iter().for_each(|line| context.ui.status(line));
        }
        say_coverage(context, &self.coverage, self.catalog);
        self.walk.forbidden().iter().for_each(|forbidden| context.ui.warning(forbidden));
        Ok(())
    }
}

impl Census<'_> {
    fn figures(&self, context: &mut Context, has_any: bool, whole: bool) -> Result<()> {
        let (rows, mut more) = stats::rows(&self.stats, OWNERS);
        let text = match self.args.output {
            Figures::Table if has_any => {
                return Ok(context.ui.page(stats::text(&self.stats, context.ui.view(), OWNERS))?);
            }
            Figures::Table => return Ok(()),
            Figures::Csv => stats::separated(&rows, By::from(self.args.by), Separated::csv(self.args.raw_csv)),
            Figures::Tsv => stats::separated(&rows, By::from(self.args.by), Separated::tsv(self.args.raw_csv)),
            Figures::Jsonl => rows.iter().map(document::line).collect(),
            Figures::Json => {
                more.extend(coverage::fields(&self.coverage, self.catalog, self.walk.looked_at()));
                let is_complete = whole && self.walk.forbidden().is_none();
                more.insert("complete".to_owned(), is_complete.into());
                document::document("rows", &rows, &more)
            }
        };
        Ok(context.ui.data(text)?)
    }
}

fn redis_keys(record: &Record) -> Vec<Vec<u8>> {
    record.seen.keys.iter().map(|key| key.redis_key.clone()).collect()
}

/// What is written of a run that ends now.
fn exposition(context: &Context, text: impl FnOnce(&stats::Run<'_>) -> String) -> String {
    let server = context.settings.target().to_string();
    let name = context.settings.context_name().unwrap_or_default();
    text(&stats::Run { server: &server, context: name, at_ms: context.now_ms() })
}

fn write(context: &mut Context, file: &Path, text: &str) -> Result<()> {
    if file == Path::new("-") {
        return Ok(context.ui.data(text)?);
    }
    let cannot = |error| Stop::usage(format!("{}: cannot write the figures: {error}", file.display()));
    Ok(files::publish(file, text.as_bytes()).map_err(cannot)?)
}
