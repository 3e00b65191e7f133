//! `idemctl purge`: many records, counted, confirmed by name, and removed as long as they are what was seen.

mod act;
mod choice;
mod key_file;
mod report;
mod source;
mod survey;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;

use self::act::Remover;
use self::choice::Choice;
use self::key_file::KeyFile;
use self::report::{finish, report, show};
use self::survey::Survey;
use crate::args::{ChangeArgs, Output, PageArgs, SchemaArgs, StateArg, ThresholdArgs, parse_duration};
use crate::change::{Journal, Pace};
use crate::context::Context;
use crate::domain::bulk::{Ended, Purged};
use crate::domain::diagnosis::CODES;
use crate::domain::rate::Rate;
use crate::exit::Exit;
use crate::interrupt::Interrupt;

/// Remove many records, each only if it is still what was seen
///
/// Counts what is chosen and shows a sample; then the server's name (host:port/db) or the context's has to be typed, and
/// a second walk backs up and removes what is chosen then, never more than was counted or --max allows. With --yes and
/// no --max there is nobody to count for: one walk does it all, and what was found is shown at its end. A record that
/// completes, is renewed or taken anew between look and removal stays. A record's state is told by the beginning of its
/// value, as `list` tells it. Without --state only completed records are
/// purged: locks are left alone unless --state in-progress is said, unreadable values unless --state unreadable or
/// --finding unreadable is. Schemas without a literal prefix (go-chi) are purged only when named with --schema.
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
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = PossibleValuesParser::new(CODES))]
    finding: Vec<String>,

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

/// Runs `idemctl purge`.
///
/// # Errors
/// Usage and refusals, interrupted, and whatever the server says.
pub async fn run(context: &mut Context, args: Args) -> Result<Exit> {
    let choice = Choice::new(context, &args)?;
    let temp_dir = context.settings.environment().temp_dir();
    let mut file = args.key_file.as_ref().map(|path| KeyFile::open(path, args.null, &temp_dir)).transpose()?;
    let writer = if args.change.dry_run { None } else { Some(context.writer(&args.change).await?) };
    let interrupt = Interrupt::listen()?;
    let reader = context.reader().await?.walking(args.page.gait());
    let mut found = Survey::default();
    let mut purged = Purged::default();
    let mut limit = u64::MAX;
    let counted = counts_first(context, &args);
    if counted {
        found = Survey::walk(context, &choice, reader.clone(), file.as_mut(), &interrupt).await?;
        show(context, &args, &choice, &found, &reader.name())?;
        limit = found.limit(&args)?;
    }
    let Some(writer) = writer.filter(|_| limit > 0) else {
        report(context, &args, &found, &purged)?;
        if args.change.dry_run {
            context.ui.status("dry run: nothing was changed");
        }
        return Ok(Exit::Done);
    };
    let records = match found.tally.total() {
        1 => "this record".to_owned(),
        total => format!("these {total} records"),
    };
    args.change.confirm_by_name(context, &format!("Purge {records}?"), &writer.name())?;
    interrupt.heed_terminate()?;
    let name = reader.name();
    let mut journal = Journal::open(context, &args.change, "purge", true)?;
    let mut remover = Remover {
        choice: &choice,
        reader,
        writer,
        journal: &mut journal,
        pace: Pace::new(args.rate),
        interrupt: &interrupt,
        limit,
        uncounted: (!counted).then_some(&mut found),
    };
    let ended = remover.remove_all(context, file.as_mut(), &mut purged).await;
    let (backup, ended) = journal.close(ended).await;
    purged.backup = backup.map(|file| file.display().to_string());
    purged.outcome = *ended.as_ref().unwrap_or(&Ended::Failed);
    // Where nothing could be read, nobody knows that there is nothing.
    let is_known = !counted && (ended.is_ok() || found.looked_at > 0);
    let shown = if is_known { show(context, &args, &choice, &found, &name) } else { Ok(()) };
    let shown = shown.and_then(|()| report(context, &args, &found, &purged));
    // How it ended comes before a stdout that nobody reads.
    let exit = finish(context, counted, &found, &purged, ended.map(drop))?;
    shown.map(|()| exit)
}

/// True when somebody is to see, or an option to judge, how many records are chosen before any of them goes.
fn counts_first(context: &Context, args: &Args) -> bool {
    args.change.dry_run || args.change.asks_somebody(context) || args.max.is_some() || args.max_percent.is_some()
}

fn parse_count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a number of records is whole, and 0 or more".to_owned())
}

/// Parses `5`, `0.5` or `5%`.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
    number.ok_or_else(|| "a percentage is a number from 0 to 100".to_owned())
}
