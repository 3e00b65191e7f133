//! `idemctl list`: the records of the chosen schemas.

mod rows;

use anyhow::Result;
use clap::Args as ClapArgs;

use self::rows::{Kept, Rows};
use crate::args::{Format, SchemaArgs, SelectArgs, ShowArgs, Sort, ThresholdArgs, WalkArgs};
use crate::change::{say_coverage, say_elsewhere};
use crate::context::Context;
use crate::domain::diagnosis::{self, FindingCode, Thresholds};
use crate::domain::record::Record;
use crate::domain::schema::Catalog;
use crate::domain::select::top_n::Order;
use crate::domain::select::{Coverage, Judged, Selection};
use crate::exit::{Exit, Stop};
use crate::interrupt::Interrupt;
use crate::render::coverage;
use crate::store::read::records;
use crate::store::{Head, StoreError, Walk};

/// Rows that `--sort` keeps unless `--limit` says otherwise.
const SORTED_ROWS: usize = 1_000;

/// List the records of the chosen schemas
///
/// Walks the keyspace with SCAN and shows records as they are found. Schemas without a literal prefix (go-chi) are
/// listed only when named with --schema. Of each value the beginning is read: response bodies are not shown unless
/// --full. A record that is written or removed during the walk may be missed or shown in its older state.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(flatten)]
    show: ShowArgs,

    #[command(flatten)]
    select: SelectArgs,

    /// End after this many records
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,

    /// Read values whole, response bodies included
    #[arg(long)]
    full: bool,

    /// Show Authorization, Cookie, Set-Cookie and their like
    #[arg(long)]
    reveal: bool,

    #[command(flatten)]
    walk: WalkArgs,

    #[command(flatten)]
    thresholds: ThresholdArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

pub async fn run(context: &mut Context, args: Args) -> Result<Exit> {
    let catalog = context.catalog(&args.schemas)?;
    if catalog.scanned().is_empty() {
        return Err(Stop::usage("no schema to list").hint("name one with --schema").into());
    }
    let selection = args.select.selection()?;
    args.select.filter.remark(&catalog).iter().for_each(|remark| context.ui.status(remark));
    let head = if args.full || selection.reads_bodies() { Head::Whole } else { Head::Bytes(0) };
    let reader = context.reader().await?.walking(args.walk.gait());
    let (server, elsewhere) = (reader.name(), reader.clone());
    let walk = Walk::start(reader, &catalog, head).await?;
    let walk = if chooses_by_size(&args) { walk } else { walk.without_lengths() };
    let thresholds = args.thresholds.thresholds();
    let mut rows = Rows::new(context, &catalog, &args.show, args.reveal, kept(&args));
    let mut listing = Listing { catalog: &catalog, selection, thresholds, walk, coverage: Coverage::default() };
    let ended = listing.show(context, &mut rows).await?;
    let Listing { walk, coverage, .. } = listing;
    let covered = coverage::fields(&coverage, &catalog, walk.looked_at());
    rows.close(context, matches!(ended, Ended::Whole), covered)?;
    say_coverage(context, &coverage, &catalog);
    if let (Some(forbidden), Ended::Whole | Ended::Interrupted) = (walk.forbidden(), &ended) {
        context.ui.warning(&forbidden);
    }
    let so_far = format!("{} records among {} keys of {server}", rows.shown(), walk.looked_at());
    match ended {
        Ended::Whole if rows.shown() == 0 => {
            context.ui.status(&format!("no such records among {} keys of {server}", walk.looked_at()));
            coverage::left_out(&catalog).iter().for_each(|line| context.ui.status(line));
            say_elsewhere(context, &elsewhere).await;
        }
        Ended::Whole if rows.was_cut() => context.ui.status(&format!("the first {}; --limit shows more", rows.shown())),
        Ended::Whole if matches!(args.show.output, Format::Table | Format::Wide) => {
            context.ui.status(&format!("{} records among {} keys of {server}", rows.shown(), walk.looked_at()));
        }
        Ended::Whole => {}
        Ended::Interrupted => return Err(Stop::interrupted(format!("interrupted: {so_far} so far")).into()),
        Ended::Broken(error) if walk.looked_at() == 0 || error.is_permission() => return Err(error.into()),
        Ended::Broken(error) => {
            let mut stop = Stop::new(Exit::Partial, format!("the list is not complete, {so_far}: {error}"));
            stop.hint = error.hint().map(str::to_owned);
            return Err(stop.into());
        }
    }
    Ok(Exit::Done)
}

enum Ended {
    Whole,
    Interrupted,
    Broken(StoreError),
}

/// A walk over the keyspace, and what the operator wants to see of it.
struct Listing<'a> {
    catalog: &'a Catalog,
    selection: Selection,
    thresholds: Thresholds,
    walk: Walk,
    coverage: Coverage,
}

impl Listing<'_> {
    async fn show(&mut self, context: &mut Context, rows: &mut Rows) -> Result<Ended> {
        let progress = context.ui.progress("keys looked at");
        let interrupt = Interrupt::listen()?;
        let ended = loop {
            let chosen = match interrupt.unless_raised(self.next_page()).await {
                Some(Ok(Some(chosen))) => chosen,
                Some(Ok(None)) => break Ended::Whole,
                Some(Err(error)) => break Ended::Broken(error),
                None => break Ended::Interrupted,
            };
            progress.set_position(self.walk.looked_at());
            if progress.suspend(|| rows.add(context, chosen))? {
                break Ended::Whole;
            }
        };
        progress.finish_and_clear();
        Ok(ended)
    }

    /// The records of the next page that the operator wants; `None` at the end. A value that two schemas read is listed once,
    /// under the first of them.
    async fn next_page(&mut self) -> Result<Option<Vec<Record>>, StoreError> {
        let Self { catalog, selection, thresholds, walk, coverage } = self;
        let page = records::next_page(walk, catalog, thresholds, coverage, |key| selection.passes_key(key)).await?;
        let Some(mut chosen) = page else { return Ok(None) };
        chosen.retain(|record| {
            coverage.contradictions.note(record);
            let judged = selection.judge(record);
            if let Judged::Unproven(missing) = judged {
                coverage.unproven.add(missing);
            }
            judged == Judged::Passes
        });
        walk.measure(chosen.iter_mut().map(|record| &mut record.seen)).await?;
        for record in &mut chosen {
            diagnosis::add_oversized(record, thresholds);
            // A few bytes of a body tell nobody anything: --full reads it.
            record.forget_cut_body();
        }
        Ok(Some(chosen))
    }
}

/// True when the lengths of values decide which records are shown: each length has to be asked for then.
fn chooses_by_size(args: &Args) -> bool {
    matches!(args.show.sort, Some(Sort::Size)) || args.select.finding.contains(&FindingCode::Oversized)
}

fn kept(args: &Args) -> Kept {
    let limit = args.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
    match args.show.sort {
        Some(sort) => Kept::Sorted(Order::from(sort), limit.unwrap_or(SORTED_ROWS)),
        None => Kept::First(limit.unwrap_or(usize::MAX)),
    }
}
