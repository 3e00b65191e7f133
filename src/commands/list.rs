//! `idemctl list`: the records of the chosen schemas.

mod rows;

use anyhow::Result;
use clap::Args as ClapArgs;

use self::rows::{How, Kept, Rows};
use crate::args::{FollowArgs, Format, SchemaArgs, SelectArgs, ShowArgs, Sort, ThresholdArgs, WalkArgs};
use crate::change::{say_coverage, say_elsewhere};
use crate::context::Context;
use crate::domain::diagnosis::{self, FindingCode};
use crate::domain::record::Record;
use crate::domain::schema::{Catalog, State};
use crate::domain::select::awaited::{Awaited, Waiting};
use crate::domain::select::top_n::Order;
use crate::domain::select::{Coverage, Selected, Selection};
use crate::exit::{Exit, Stop};
use crate::interrupt::Interrupt;
use crate::render::{coverage, words};
use crate::store::read::records;
use crate::store::{ReadLimit, Reader, StoreError, Walk};
use crate::watch::{self, Watch};

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

    /// End after this many records
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "until")]
    limit: Option<u64>,

    /// List the records of every database of the server, each with its database
    #[arg(long)]
    all_dbs: bool,

    /// With -o name: write raw names, each ended by NUL
    #[arg(short = '0', long)]
    null: bool,

    /// Read values whole, response bodies included
    #[arg(long)]
    full: bool,

    /// Show Authorization, Cookie, Set-Cookie and their like
    #[arg(long)]
    reveal: bool,

    #[command(flatten)]
    thresholds: ThresholdArgs,

    #[command(flatten)]
    select: SelectArgs,

    #[command(flatten)]
    follow: FollowArgs,

    #[command(flatten)]
    walk: WalkArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

pub async fn run(context: &mut Context, args: Args) -> Result<Exit> {
    let catalog = context.catalog(&args.schemas)?;
    if catalog.scanned().is_empty() {
        return Err(Stop::usage("no schema to list").hint("name one with --schema").into());
    }
    if args.null && args.show.output != Format::Name {
        return Err(Stop::usage("-0 says how names end, and no names are written").hint("add `-o name`").into());
    }
    let selection = args.select.selection()?;
    let is_table = matches!(args.show.output, Format::Table | Format::Wide);
    let watch = Watch::of(context, &args.follow, is_table)?;
    check_watch(&args, watch.as_ref(), &selection)?;
    args.select.filter.remark(&catalog).iter().for_each(|remark| context.ui.status(remark));
    let places = places(context, &args).await?;
    let interrupt = Interrupt::listen()?;
    let look = Look { args: &args, catalog: &catalog, selection: &selection, places: &places, interrupt: &interrupt };
    let Some(watch) = watch else { return look.list(context).await.map(|_| Exit::Done) };
    let mut waiting = Waiting::default();
    let judged = async |context: &mut Context| {
        let states = look.list(context).await?;
        Ok(watch.until().map_or(Awaited::NotYet, |until| waiting.judge(until, &states)))
    };
    watch.follow(context, &interrupt, judged).await
}

/// # Errors
/// Usage: a watch that could never end as it should.
fn check_watch(args: &Args, watch: Option<&Watch>, selection: &Selection) -> Result<()> {
    if watch.is_some() && args.show.output == Format::Json {
        return Err(watch::endless());
    }
    let until = watch.and_then(Watch::until).filter(|until| *until != State::Absent);
    match until.filter(|until| !selection.states.is_empty() && !selection.states.contains(until)) {
        Some(until) => Err(Stop::usage(format!("--until {}: --state lists none of those", until.as_str())).into()),
        None => Ok(()),
    }
}

/// A database whose keyspace is walked; its number where several are.
struct Place {
    db: Option<i64>,
    reader: Reader,
}

async fn places(context: &mut Context, args: &Args) -> Result<Vec<Place>> {
    let reader = context.reader().await?.walking(args.walk.scan_options());
    if !args.all_dbs {
        return Ok(vec![Place { db: None, reader }]);
    }
    let all = reader.of_all_databases().await?;
    Ok(all.into_iter().map(|(db, reader)| Place { db: Some(db), reader }).collect())
}

/// What a look at the records needs.
struct Look<'a> {
    args: &'a Args,
    catalog: &'a Catalog,
    selection: &'a Selection,
    places: &'a [Place],
    interrupt: &'a Interrupt,
}

impl Look<'_> {
    /// Lists the records, and gives the states that they have.
    async fn list(&self, context: &mut Context) -> Result<Vec<State>> {
        let Args { show, reveal, all_dbs, null, .. } = self.args;
        let by_status = !self.selection.statuses.is_empty();
        let how = How { show, reveal: *reveal, all_dbs: *all_dbs, by_status, null: *null };
        let mut rows = Rows::new(context, how, kept(self.args));
        let mut listing = Listing::default();
        let mut ended = Ended::Whole;
        for place in self.places {
            ended = listing.walk(context, self, place, &mut rows).await?;
            if rows.are_full() || !matches!(ended, Ended::Whole) {
                break;
            }
        }
        let covered = coverage::fields(&listing.coverage, self.catalog, listing.looked_at);
        let is_complete = matches!(ended, Ended::Whole) && listing.forbidden.is_none();
        rows.close(context, is_complete, covered)?;
        say_coverage(context, &listing.coverage, self.catalog);
        if let (Some(forbidden), Ended::Whole | Ended::Interrupted) = (&listing.forbidden, &ended) {
            context.ui.warning(forbidden);
        }
        self.end(context, &rows, &listing, ended).await.map(|()| listing.states)
    }

    /// Says how far the walk came.
    async fn end(&self, context: &mut Context, rows: &Rows, listing: &Listing, ended: Ended) -> Result<()> {
        let (shown, looked_at, server) = (rows.shown(), listing.looked_at, self.server());
        let records = if shown == 1 { "record" } else { "records" };
        let so_far = format!("{shown} {records} among {looked_at} keys of {server}");
        let is_for_people = matches!(self.args.show.output, Format::Table | Format::Wide);
        match ended {
            Ended::Whole if shown == 0 => {
                context.ui.status(&format!("no such records among {looked_at} keys of {server}"));
                coverage::left_out(self.catalog).iter().for_each(|line| context.ui.status(line));
                if let [Place { db: None, reader }] = self.places {
                    say_elsewhere(context, reader).await;
                }
            }
            Ended::Whole if is_for_people && let Some(limit) = rows.limit_reached() => {
                let scanned = self.scanned(listing.scanned).await;
                context.ui.status(&format!("{shown} shown (limit {limit}), about {scanned} keys scanned"));
            }
            Ended::Whole if rows.was_cut() => context.ui.status(&format!("the first {shown}; --limit shows more")),
            Ended::Whole if is_for_people => context.ui.status(&so_far),
            Ended::Whole => {}
            Ended::Interrupted => return Err(Stop::interrupted(format!("interrupted: {so_far} so far")).into()),
            Ended::Broken(error) if looked_at == 0 || error.is_permission() => return Err(error.into()),
            Ended::Broken(error) => {
                let mut stop = Stop::new(Exit::Partial, format!("the list is not complete, {so_far}: {error}"));
                stop.hint = error.hint().map(str::to_owned);
                return Err(stop.into());
            }
        }
        Ok(())
    }

    /// How many keys were scanned of how many, where the servers tell that.
    async fn scanned(&self, scanned: u64) -> String {
        let mut held = 0;
        for place in self.places {
            match place.reader.keys_held().await {
                Ok(keys) => held += keys,
                Err(_) => return words::count(scanned),
            }
        }
        format!("{} of {}", words::count(scanned.min(held)), words::count(held))
    }

    /// The server's name for people.
    fn server(&self) -> String {
        let name = self.places[0].reader.name();
        match (self.args.all_dbs, name.rsplit_once('/')) {
            (true, Some((server, _))) if self.places.len() == 1 => format!("1 database of {server}"),
            (true, Some((server, _))) => format!("{} databases of {server}", self.places.len()),
            _ => name,
        }
    }
}

enum Ended {
    Whole,
    Interrupted,
    Broken(StoreError),
}

/// What walks over keyspaces came to.
#[derive(Default)]
struct Listing {
    coverage: Coverage,
    looked_at: u64,
    /// About how many keys the servers went through.
    scanned: u64,
    forbidden: Option<String>,
    /// The states that the chosen records have.
    states: Vec<State>,
}

impl Listing {
    async fn walk(&mut self, context: &mut Context, look: &Look<'_>, place: &Place, rows: &mut Rows) -> Result<Ended> {
        let is_whole = look.args.full || look.selection.reads_bodies();
        let head = if is_whole { ReadLimit::Whole } else { ReadLimit::Bytes(0) };
        let walk = Walk::start(place.reader.clone(), look.catalog, head).await?;
        let mut walk = if chooses_by_size(look.args) { walk } else { walk.without_lengths() };
        let (before, progress) = (self.looked_at, context.ui.progress("keys looked at"));
        let ended = loop {
            let chosen = match look.interrupt.unless_raised(self.next_page(look, place, &mut walk)).await {
                Some(Ok(Some(chosen))) => chosen,
                Some(Ok(None)) => break Ended::Whole,
                Some(Err(error)) => break Ended::Broken(error),
                None => break Ended::Interrupted,
            };
            progress.set_position(before + walk.looked_at());
            progress.suspend(|| rows.add(context, chosen))?;
            if rows.are_full() {
                break walk.gap().map_or(Ended::Whole, Ended::Broken);
            }
        };
        progress.finish_and_clear();
        self.looked_at = before + walk.looked_at();
        self.scanned += walk.scanned();
        self.forbidden = self.forbidden.take().or_else(|| walk.forbidden());
        Ok(ended)
    }

    /// The records of the next page that the operator wants; `None` at the end. A value that two schemas read is listed once,
    /// under the first of them.
    async fn next_page(
        &mut self,
        look: &Look<'_>,
        place: &Place,
        walk: &mut Walk,
    ) -> Result<Option<Vec<Record>>, StoreError> {
        let (Self { coverage, states, .. }, Look { catalog, selection, .. }) = (self, look);
        let thresholds = look.args.thresholds.thresholds();
        let page = records::next_page(walk, catalog, &thresholds, coverage, |key| selection.passes_key(key)).await?;
        let Some(mut chosen) = page else { return Ok(None) };
        chosen.retain(|record| {
            if selection.is_about(record) {
                coverage.contradictions.note(record);
            }
            let selected = selection.selects(record);
            if let Selected::Unproven(missing) = selected {
                coverage.unproven.add(record, missing);
            }
            selected == Selected::Yes(())
        });
        walk.measure(chosen.iter_mut().map(|record| &mut record.seen)).await?;
        for record in &mut chosen {
            diagnosis::add_oversized(record, &thresholds);
            record.db = place.db;
            if !states.contains(&record.state) {
                states.push(record.state);
            }
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
