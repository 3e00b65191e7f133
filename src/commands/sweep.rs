//! `idemctl sweep`: the locks that nobody will release, found and removed after two looks.

mod act;
mod owners;
mod seek;

use std::ffi::OsString;
use std::time::Duration;

use anyhow::Result;
use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args as ClapArgs, ValueEnum};

use self::act::{Actor, Deed};
use self::owners::Owners;
use self::seek::{Seeker, Survey};
use crate::args::{ChangeArgs, Output, SchemaArgs, WalkArgs, parse_duration};
use crate::change::{Journal, came_to_its_end, say_read_back, write_report};
use crate::context::Context;
use crate::domain::age;
use crate::domain::bulk::{Ended, Swept};
use crate::domain::diagnosis::Thresholds;
use crate::domain::orphan::{ORPHANED, OVERDUE, UNREADABLE};
use crate::exit::{Exit, Stop};
use crate::interrupt::Interrupt;
use crate::render::change;
use crate::render::style::Palette;
use crate::store::{Reader, StoreError, Writer};

/// Find locks that nobody will release, and remove them after two looks
///
/// Counts the orphaned locks of the chosen schemas and asks; then waits --grace, reads each again, and leaves alone
/// what changed or got more time, for somebody is at it. What is left is backed up and removed, each only if it is
/// still what the second look saw. A stored result is never removed. Schemas without a literal prefix (go-chi) are
/// swept only when named with --schema.
///
/// For cron and monitoring: --check prints one line, as monitoring plugins do, and ends with exit status 1 when
/// anything is found; a wrapper that wants CRITICAL maps 1 to 2.
#[derive(Debug, ClapArgs)]
#[command(group = ArgGroup::new("sought").args(["orphaned", "older_than", "include"]).required(true).multiple(true))]
pub struct Args {
    /// Locks with any of these findings: all three where none is named
    #[arg(
        long,
        value_name = "CODE",
        value_delimiter = ',',
        num_args = 0..=1,
        default_missing_values = ORPHANED,
        value_parser = PossibleValuesParser::new(ORPHANED)
    )]
    orphaned: Vec<String>,

    /// Locks known to be held longer than this (`overdue`)
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    older_than: Option<Duration>,

    /// Values in a lock's place that do not decode
    #[arg(long, value_name = "WHAT", value_parser = [UNREADABLE])]
    include: Option<String>,

    /// How long to wait between the two looks
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true, default_value = "2s")]
    grace: Duration,

    /// Leave locks alone whose owner is alive: a shell command that gets the owner as $1 and in IDEMCTL_OWNER, and
    /// ends with exit status 0 for one that is. One that takes longer than 10s counts as alive; locks of schemas that
    /// keep no owner are not asked about
    #[arg(long, value_name = "CMD")]
    owner_alive: Option<OsString>,

    /// What to do to the locks
    #[arg(long, value_name = "ACTION", value_enum, default_value_t = ActionArg::Unlock)]
    action: ActionArg,

    /// Say in one line what is found, change nothing, and end with exit status 1 when it is anything
    #[arg(long)]
    check: bool,

    /// How to show what was found and done; both kinds of JSON are one object, jsonl in one line
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    walk: WalkArgs,

    #[command(flatten)]
    change: ChangeArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

/// `--action`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ActionArg {
    /// Remove the lock: the next request executes.
    Unlock,
    /// Give it the schema's lock TTL, so that a worker still at it can finish; never more time than it has.
    Expire,
}

impl From<ActionArg> for Deed {
    fn from(arg: ActionArg) -> Self {
        match arg {
            ActionArg::Unlock => Self::Unlock,
            ActionArg::Expire => Self::Expire,
        }
    }
}

/// Runs `idemctl sweep`.
///
/// # Errors
/// Usage and refusals, interrupted, and whatever the server says.
pub async fn run(context: &mut Context, args: Args) -> Result<Exit> {
    let seeker = seeker(context, &args)?;
    let only_shows = args.check || args.change.dry_run;
    if args.walk.gait().from_replicas && !only_shows {
        return Err(
            Stop::usage("--read-from replica goes with --check or --dry-run: no change relies on a replica").into()
        );
    }
    let writer = if only_shows { None } else { Some(context.writer(&args.change).await?) };
    let interrupt = Interrupt::listen()?;
    let reader = context.reader().await?.walking(args.walk.gait());
    let mut survey = seeker.survey(context, reader.clone(), &interrupt).await?;
    let mut missed = survey.missed.take();
    if let Some(forbidden) = &survey.forbidden {
        context.ui.warning(forbidden);
    }
    let mut swept = Swept { keys: survey.keys, ..Swept::default() };
    if args.check {
        let exit = check(context, &args, &seeker, &survey, &swept)?;
        return Ok(missed.map_or(Ok(exit), Err)?);
    }
    show(context, &args, &survey, &reader)?;
    let Some(writer) = writer.filter(|_| survey.tally.total() > 0) else {
        report(context, &args, &seeker, &survey, &swept)?;
        if only_shows {
            context.ui.status("dry run: nothing was changed");
        }
        return Ok(missed.map_or(Ok(Exit::Done), Err)?);
    };
    args.change.confirm(context, &question(&args, survey.tally.total()), &writer.name())?;
    let ended = sweep(context, &args, &seeker, (reader, writer), (&survey, &mut missed), &interrupt, &mut swept).await;
    let ended = ended.and_then(|()| Ok(missed.map_or(Ok(()), Err)?));
    let shown = report(context, &args, &seeker, &survey, &swept);
    // How it ended comes before a stdout that nobody reads.
    let exit = finish(context, survey.tally.total(), &swept, ended)?;
    shown.map(|()| exit)
}

fn seeker(context: &Context, args: &Args) -> Result<Seeker> {
    let catalog = context.catalog(&args.schemas)?;
    if catalog.scanned().is_empty() {
        return Err(Stop::usage("no schema to sweep").hint("name one with --schema").into());
    }
    let mut sought: Vec<_> =
        ORPHANED.into_iter().filter(|code| args.orphaned.iter().any(|asked| asked == code)).collect();
    sought.extend(args.older_than.map(|_| OVERDUE));
    sought.extend(args.include.as_ref().map(|_| UNREADABLE));
    let thresholds = Thresholds { overdue_ms: args.older_than.map(age::millis), ..Thresholds::default() };
    Ok(Seeker { catalog, sought, thresholds })
}

fn check(context: &mut Context, args: &Args, seeker: &Seeker, survey: &Survey, swept: &Swept) -> Result<Exit> {
    match args.output {
        Output::Table => context.ui.data(change::check(&survey.tally, &seeker.sought, survey.keys))?,
        Output::Json | Output::Jsonl => report(context, args, seeker, survey, swept)?,
    }
    Ok(if survey.tally.total() == 0 { Exit::Done } else { Exit::No })
}

/// What was found, before anybody is asked.
fn show(context: &mut Context, args: &Args, survey: &Survey, reader: &Reader) -> Result<()> {
    if survey.tally.total() == 0 {
        context.ui.status(&format!("no orphaned locks among {} keys of {}", survey.keys, reader.name()));
        return Ok(());
    }
    if args.output == Output::Table {
        let palette = Palette::new(context.ui.is_colored());
        context.ui.data(change::orphans(&survey.tally, palette, context.ui.width()))?;
        context.ui.flush()?;
    }
    context.ui.status(match args.action {
        ActionArg::Unlock => {
            "The next request with each of these keys executes the operation, or gets the result where one is stored. Where a worker still runs, it executes twice."
        }
        ActionArg::Expire => "Each gets the schema's lock TTL; those that have less time left are left alone.",
    });
    Ok(())
}

fn question(args: &Args, total: u64) -> String {
    let locks = if total == 1 { "this lock".to_owned() } else { format!("these {total} locks") };
    match args.action {
        ActionArg::Unlock => format!("Remove {locks}?"),
        ActionArg::Expire => format!("Let {locks} expire?"),
    }
}

async fn sweep(
    context: &mut Context,
    args: &Args,
    seeker: &Seeker,
    (reader, writer): (Reader, Writer),
    (survey, missed): (&Survey, &mut Option<StoreError>),
    interrupt: &Interrupt,
    swept: &mut Swept,
) -> Result<()> {
    interrupt.heed_terminate()?;
    let mut journal = Journal::open(context, &args.change, "sweep", args.action == ActionArg::Unlock)?;
    let mut actor = Actor {
        seeker,
        reader: reader.clone(),
        writer,
        journal: &mut journal,
        owners: args.owner_alive.clone().map(Owners::new),
        deed: args.action.into(),
        grace: args.grace,
        interrupt,
    };
    let acted = match &survey.places {
        Some(places) => actor.act(context, places, swept).await,
        None => in_chunks(context, &mut actor, reader, missed, swept).await,
    };
    let (backup, acted) = journal.close(acted).await;
    swept.backup = backup.map(|file| file.display().to_string());
    swept.outcome = match &acted {
        Ok(true) if missed.is_none() => Ended::Whole,
        Ok(false) => Ended::Interrupted,
        _ => Ended::Failed,
    };
    acted.map(drop)
}

/// Walks again, for more orphans were found than are kept: a chunk is found, looked at again and acted on.
async fn in_chunks(
    context: &Context,
    actor: &mut Actor<'_>,
    reader: Reader,
    missed: &mut Option<StoreError>,
    swept: &mut Swept,
) -> Result<bool> {
    let mut walk = actor.seeker.walk(reader).await?;
    loop {
        let Some(places) = actor.interrupt.unless_raised(actor.seeker.chunk(&mut walk, missed)).await else {
            return Ok(false);
        };
        let places = places?;
        if places.is_empty() {
            return Ok(true);
        }
        if !actor.act(context, &places, swept).await? {
            return Ok(false);
        }
    }
}

fn report(context: &mut Context, args: &Args, seeker: &Seeker, survey: &Survey, swept: &Swept) -> Result<()> {
    write_report(context, args.output, &change::sweep(&survey.tally, &seeker.sought, swept))
}

fn finish(context: &mut Context, total: u64, swept: &Swept, ended: Result<()>) -> Result<Exit> {
    let backup = swept.backup.as_ref().map(|file| format!("; backup: {file}")).unwrap_or_default();
    let so_far = format!("{} of {total} locks done{backup}", swept.done);
    say_read_back(context, swept.read_back);
    came_to_its_end(ended, swept.outcome, swept.done, &so_far)?;
    context.ui.status(&format!("Swept: {so_far}"));
    for (count, why) in [
        (swept.changed, "changed since the first look"),
        (swept.renewed, "got more time since the first look"),
        (swept.skipped_alive, "have an owner that is alive"),
        (swept.left_to_expire, "expire sooner by themselves"),
    ] {
        if count > 0 {
            context.ui.status(&format!("Left alone: {count} that {why}"));
        }
    }
    Ok(Exit::Done)
}
