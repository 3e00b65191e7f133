//! `idemctl sweep`: the locks that nobody will release, found and removed after two looks.

mod orphans;
mod report;

use std::ffi::OsString;
use std::time::Duration;

use anyhow::Result;
use clap::{ArgGroup, Args as ClapArgs, ValueEnum};

use self::orphans::Orphans;
use self::report::{check, finish, question, report, show};
use crate::args::{ChangeArgs, Output, SchemaArgs, WalkArgs, finding_codes, parse_duration};
use crate::change::bulk::{Flow, Owners, Rule, Source, Supply, Survey};
use crate::change::{Journal, Pace, say_coverage};
use crate::context::Context;
use crate::domain::change::orphan::INCLUDABLE;
use crate::domain::change::outcome::{Account, Ended};
use crate::domain::diagnosis::FindingCode;
use crate::exit::{Exit, Stop};
use crate::interrupt::Interrupt;
use crate::store::{Reader, Writer};

/// Find locks that nobody will release, and remove them after two looks
///
/// Counts the orphaned locks of the chosen schemas and asks; then waits --grace, reads each again, and leaves alone
/// what changed or got more time, for somebody is at it. What is left is backed up and removed, each only if it is
/// still what the second look saw. A stored result is never removed, nor a value of a form that the schema does not
/// write. Schemas without a literal prefix (go-chi) are swept only when named with --schema, and with --prefix or a
/// --match that has a literal part.
///
/// Orphaned is a lock that will never end by itself, whatever TTLs the deployment sets. What only a schema's default TTL
/// tells of a lock selects nothing: such locks are counted, and the option is named that states the deployment's own.
///
/// For monitoring `idemctl check` prints a line in every case and has the exit codes of plugins; --check, which is deprecated,
/// prints one where the server answers, and ends with exit status 1 when anything is found.
#[derive(Debug, ClapArgs)]
#[command(group = ArgGroup::new("sought").args(["orphaned", "older_than", "include"]).required(true).multiple(true))]
pub struct Args {
    /// Locks without expiry (`no-expiry`), also beside a result: nothing but a person or a sweep ends them
    #[arg(long)]
    orphaned: bool,

    /// Locks known to be held longer than this (`overdue`)
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    older_than: Option<Duration>,

    /// Also locks with more time left than the lock TTL that is stated (`excess-ttl`), locks beside a result behind which no
    /// worker can be (`leftover-lock`), or values in a lock's place that do not decode (`unreadable`: with --schema, and
    /// --prefix or a --match that has a literal part)
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = finding_codes(&INCLUDABLE))]
    include: Vec<FindingCode>,

    /// Only idempotency keys that match this glob (`*`, `?`, `[a-z]`, `\` escapes)
    #[arg(long = "match", value_name = "GLOB")]
    key_glob: Option<OsString>,

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

    /// Deprecated, use `idemctl check`: say in one line what is found, change nothing, and end with exit status 1 when
    /// that is anything
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
    /// Give it the lock TTL that is stated, so that a worker still at it can finish; never more time than it has.
    Expire,
}

/// What a sweep finds, by finding.
type Found = Survey<<Orphans as Rule>::Group>;

/// Runs `idemctl sweep`.
///
/// # Errors
/// Usage and refusals, interrupted, and whatever the server says.
pub async fn run(context: &mut Context, args: Args) -> Result<Exit> {
    let orphans = Orphans::new(context, &args)?;
    let only_shows = args.check || args.change.dry_run;
    if args.walk.gait().from_replicas && !only_shows {
        return Err(
            Stop::usage("--read-from replica goes with --check or --dry-run: no change relies on a replica").into()
        );
    }
    if !only_shows {
        orphans.is_narrow(&args)?;
    }
    let writer = if only_shows { None } else { Some(context.writer(&args.change).await?) };
    let interrupt = Interrupt::listen()?;
    let reader = context.reader().await?.walking(args.walk.gait());
    let source = Source::open(&orphans, reader.clone(), None).await?;
    let asks_owners = args.owner_alive.is_some();
    let mut found = Survey::take(context, &orphans, source, &mut reader.clone(), (asks_owners, &interrupt)).await?;
    let mut swept = Account::default();
    if let Some(forbidden) = &found.forbidden {
        context.ui.warning(forbidden);
    }
    let catalog = &orphans.scope().catalog;
    if args.check {
        let exit = check(context, &args, &orphans, &found, &swept)?;
        say_coverage(context, &found.coverage, catalog);
        return Ok(found.missed.map_or(Ok(exit), Err)?);
    }
    let left = if asks_owners { 0 } else { found.ending };
    swept.left_to_expire = left;
    show(context, (&args, &orphans), &found, &reader, left)?;
    say_coverage(context, &found.coverage, catalog);
    let Some(writer) = writer.filter(|_| found.tally.total() > left) else {
        report(context, &args, &orphans, &found, &swept)?;
        if only_shows {
            context.ui.status("dry run: nothing was changed");
        }
        return Ok(found.missed.map_or(Ok(Exit::Done), Err)?);
    };
    args.change.confirm(context, &question(&args, found.tally.total() - left), &writer.name())?;
    let ended = sweep(context, &args, &orphans, (reader, writer), (&mut found, &interrupt), &mut swept).await;
    let shown = report(context, &args, &orphans, &found, &swept);
    // How it ended comes before a stdout that nobody reads.
    let exit = finish(context, found.tally.total(), &swept, ended)?;
    shown.map(|()| exit)
}

async fn sweep(
    context: &mut Context,
    args: &Args,
    orphans: &Orphans,
    (reader, writer): (Reader, Writer),
    (found, interrupt): (&mut Found, &Interrupt),
    swept: &mut Account,
) -> Result<()> {
    interrupt.heed_terminate()?;
    let missed = found.missed.take();
    let supply = match found.places.take() {
        Some(places) => Supply::Kept(places),
        None => Supply::Source(Box::new(Source::open(orphans, reader.clone(), None).await?)),
    };
    let mut journal = Journal::open(context, &args.change, "sweep", args.action == ActionArg::Unlock)?;
    let mut flow = Flow {
        rule: orphans,
        reader,
        writer,
        journal: &mut journal,
        what: if args.action == ActionArg::Unlock { "swept" } else { "expired" },
        pace: Pace::new(None),
        grace: args.grace,
        owners: args.owner_alive.clone().map(Owners::new),
        limit: u64::MAX,
        uncounted: None,
        interrupt,
    };
    let acted = flow.run(context, supply, swept).await;
    let (backup, acted) = journal.close(acted).await;
    let acted = acted.and_then(|ended| Ok(missed.map_or(Ok(ended), Err)?));
    swept.backup = backup.map(|file| file.display().to_string());
    swept.outcome = *acted.as_ref().unwrap_or(&Ended::Failed);
    acted.map(drop)
}
