//! `idemctl purge`: many records, counted, confirmed by name, and removed as long as they are what was seen.

mod choice;
mod report;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args as ClapArgs;

use self::choice::Choice;
use self::report::{finish, report, show};
use crate::args::{ChangeArgs, Output, PageArgs, SchemaArgs, StateArg, ThresholdArgs, finding_codes, parse_duration};
use crate::change::bulk::{Flow, KeyFile, Rule, Source, Supply, Survey};
use crate::change::{Journal, Pace};
use crate::context::Context;
use crate::domain::change::outcome::{Account, Ended};
use crate::domain::diagnosis::FindingCode;
use crate::domain::select::rate::Rate;
use crate::exit::{Exit, Stop};
use crate::interrupt::Interrupt;

/// Remove many records, each only if it is still what was seen
///
/// Counts what is chosen and shows a sample; then the server's name (host:port/db) or the context's has to be typed, and
/// a second walk backs up and removes what is chosen then, never more than was counted or --max allows. With --yes and
/// no --max there is nobody to count for: one walk does it all, and what was found is shown at its end. A record that
/// completes, is renewed or taken anew between look and removal stays. A record's state is told by the beginning of its
/// value, as `list` tells it. Without --state only completed records are
/// purged: locks are left alone unless --state in-progress is said, unreadable values unless --state unreadable or
/// --finding unreadable is, with --schema and --prefix, a --match that has a literal part, or --key-file. A value of a
/// form that the schema does not write is never purged. Schemas without a literal prefix (go-chi) are purged only when
/// named with --schema, and with --prefix, such a --match or --key-file.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Only records in this state [default: completed]
    #[arg(long, value_name = "STATE", value_enum, value_delimiter = ',')]
    state: Vec<StateArg>,

    /// Only records known to be at least this old
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    older_than: Option<Duration>,

    /// Only idempotency keys that match this glob (`*`, `?`, `[a-z]`, `\` escapes)
    #[arg(long = "match", value_name = "GLOB")]
    key_glob: Option<OsString>,

    /// Only records with this finding
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = finding_codes(FindingCode::ALL))]
    finding: Vec<FindingCode>,

    /// Only the records of the idempotency keys or Redis keys in this file (`-`: stdin), one a line
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,

    /// Keys in the file end with NUL instead of a newline
    #[arg(short = '0', long, requires = "key_file")]
    null: bool,

    /// All records that are completed, where nothing else chooses
    #[arg(long)]
    all: bool,

    /// Refuse when more records are chosen than this, and never remove more
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    max: Option<u64>,

    /// Refuse when more than this part of the schemas' records is chosen, and never remove more
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent, conflicts_with = "key_file", allow_negative_numbers = true)]
    max_percent: Option<f64>,

    /// Remove at most so many records a second, e.g. 500/s
    #[arg(long, value_name = "N/s", value_parser = Rate::parse, allow_negative_numbers = true)]
    rate: Option<Rate>,

    /// How to show what was found and done; both kinds of JSON are one object, jsonl in one line
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    page: PageArgs,

    #[command(flatten)]
    thresholds: ThresholdArgs,

    #[command(flatten)]
    change: ChangeArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

/// What a purge finds, by schema and state.
type Found = Survey<<Choice as Rule>::Group>;

/// Runs `idemctl purge`.
///
/// # Errors
/// Usage and refusals, interrupted, and whatever the server says.
pub async fn run(context: &mut Context, args: Args) -> Result<Exit> {
    let choice = Choice::new(context, &args)?;
    let temp_dir = context.settings.environment().temp_dir();
    let mut file = args.key_file.as_ref().map(|path| KeyFile::open(path, args.null, &temp_dir)).transpose()?;
    if !args.change.dry_run {
        choice.is_narrow(&args)?;
    }
    let writer = if args.change.dry_run { None } else { Some(context.writer(&args.change).await?) };
    let interrupt = Interrupt::listen()?;
    let reader = context.reader().await?.walking(args.page.gait());
    let (mut found, mut purged, mut limit) = (Found::default(), Account::default(), u64::MAX);
    let counted = counts_first(context, &args);
    if counted {
        let source = Source::open(&choice, reader.clone(), file.as_mut()).await?;
        found = Survey::take(context, &choice, source, &mut reader.clone(), (true, &interrupt)).await?;
        show(context, &args, &choice, &found, &reader.name())?;
        limit = most(&args, &found)?;
    }
    let Some(writer) = writer.filter(|_| limit > 0) else {
        report(context, (&args, &choice), &found, &purged)?;
        if args.change.dry_run {
            context.ui.status("dry run: nothing was changed");
        }
        return Ok(found.missed.map_or(Ok(Exit::Done), Err)?);
    };
    let records = match found.tally.total() {
        1 => "this record".to_owned(),
        total => format!("these {total} records"),
    };
    args.change.confirm_by_name(context, &format!("Purge {records}?"), &writer.name())?;
    interrupt.heed_terminate()?;
    let name = reader.name();
    let missed = found.missed.take();
    let supply = match found.places.take().filter(|_| counted) {
        Some(places) => Supply::Kept(places),
        None => Supply::Source(Box::new(Source::open(&choice, reader.clone(), file.as_mut()).await?)),
    };
    let mut journal = Journal::open(context, &args.change, "purge", true)?;
    let mut flow = Flow {
        rule: &choice,
        reader,
        writer,
        journal: &mut journal,
        what: "purged",
        pace: Pace::new(args.rate),
        grace: Duration::ZERO,
        owners: None,
        limit,
        uncounted: (!counted).then_some(&mut found),
        interrupt: &interrupt,
    };
    let ended = flow.run(context, supply, &mut purged).await;
    let (backup, ended) = journal.close(ended).await;
    let ended = ended.and_then(|ended| Ok(missed.map_or(Ok(ended), Err)?));
    purged.backup = backup.map(|file| file.display().to_string());
    purged.outcome = *ended.as_ref().unwrap_or(&Ended::Failed);
    // Where nothing could be read, nobody knows that there is nothing.
    let is_known = !counted && (ended.is_ok() || found.looked_at > 0);
    let shown = if is_known { show(context, &args, &choice, &found, &name) } else { Ok(()) };
    let shown = shown.and_then(|()| report(context, (&args, &choice), &found, &purged));
    // How it ended comes before a stdout that nobody reads.
    let exit = finish(context, counted, &found, &purged, ended.map(drop))?;
    shown.map(|()| exit)
}

/// True when somebody is to see, or an option to judge, how many records are chosen before any of them goes.
fn counts_first(context: &Context, args: &Args) -> bool {
    args.change.dry_run || args.change.asks_somebody(context) || args.max.is_some() || args.max_percent.is_some()
}

/// How many records may be removed: as many as were counted, or as --max and --max-percent allow, should there be more by
/// then.
///
/// # Errors
/// Refused: more than that are chosen.
fn most(args: &Args, found: &Found) -> Result<u64, Stop> {
    let (total, records) = (found.tally.total(), found.records);
    if total == 0 {
        return Ok(0);
    }
    let refuse = |allowed: u64, by: String| {
        Stop::usage(format!("{total} records are chosen, but {by} allows {allowed}; nothing was changed"))
            .hint("choose more narrowly, or allow more")
    };
    if let Some(max) = args.max.filter(|max| total > *max) {
        return Err(refuse(max, "--max".to_owned()));
    }
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a percentage of a count, rounded down"
    )]
    let part = args.max_percent.map(|percent| (records as f64 * percent / 100.0) as u64);
    if let Some((part, percent)) = part.zip(args.max_percent).filter(|(part, _)| total > *part) {
        return Err(refuse(part, format!("--max-percent {percent} of {records}")));
    }
    Ok(args.max.into_iter().chain(part).min().unwrap_or(total))
}

fn parse_count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a number of records is whole, and 0 or more".to_owned())
}

/// Parses `5`, `0.5` or `5%`.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
    number.ok_or_else(|| "a percentage is a number from 0 to 100".to_owned())
}
