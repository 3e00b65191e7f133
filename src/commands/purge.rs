//! `idemctl purge`: many records, counted, confirmed by name, and removed as long as they are what was seen.

mod act;
mod choice;
mod key_file;
mod source;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args as ClapArgs;
use clap::builder::PossibleValuesParser;

use self::act::Remover;
use self::choice::Choice;
use self::key_file::KeyFile;
use self::source::{Page, Source};
use crate::args::{ChangeArgs, Output, SchemaArgs, StateArg, ThresholdArgs, parse_duration};
use crate::change::{Interrupt, Journal, Pace, Rate};
use crate::context::Context;
use crate::domain::bulk::{Ended, Purged};
use crate::domain::diagnosis::CODES;
use crate::domain::tally::Tally;
use crate::exit::{self, Exit, Stop};
use crate::render::change;
use crate::render::escape;
use crate::render::style::Palette;
use crate::store::{Reader, Writer};

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
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
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
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
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
    thresholds: ThresholdArgs,

    #[command(flatten)]
    change: ChangeArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

/// What was found by the walk that counts.
#[derive(Default)]
struct Survey {
    tally: Tally<(String, &'static str)>,
    /// Redis keys, or keys of the file, that were looked at.
    looked_at: u64,
    /// All records of the schemas, chosen or not; known where a percentage is asked for.
    records: u64,
}

impl Survey {
    fn add(&mut self, page: &Page, looked_at: u64) {
        self.records += page.records as u64;
        for record in &page.chosen {
            self.tally.add((record.schema.name.clone(), record.state.word()), record, record.age);
        }
        self.looked_at = looked_at;
    }
}

/// Runs `idemctl purge`.
///
/// # Errors
/// Usage and refusals, interrupted, and whatever the server says.
pub async fn run(context: &mut Context, args: Args) -> Result<Exit> {
    let choice = Choice::new(context, &args)?;
    let temp_dir = context.settings.environment().temp_dir();
    let mut file = args.key_file.as_ref().map(|path| KeyFile::open(path, args.null, &temp_dir)).transpose()?;
    let writer = if args.change.dry_run { None } else { Some(context.writer().await?) };
    let interrupt = Interrupt::listen()?;
    let reader = context.reader().await?;
    let mut found = Survey::default();
    let mut purged = Purged::default();
    let mut limit = u64::MAX;
    if counts_first(&args) {
        found = survey(context, &choice, reader.clone(), file.as_mut(), &interrupt).await?;
        show(context, &args, &choice, &found, &reader.name())?;
        limit = match found.tally.total() {
            0 => 0,
            total => most(&args, total, found.records)?,
        };
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
    let server = (reader, writer);
    let ended =
        purge(context, &args, &choice, server, file.as_mut(), (&interrupt, limit), (&mut found, &mut purged)).await;
    report(context, &args, &found, &purged)?;
    finish(context, &args, &found, &purged, ended)
}

/// True when somebody is to see, or an option to judge, how many records are chosen before any of them goes.
fn counts_first(args: &Args) -> bool {
    args.change.dry_run || !args.change.yes || args.max.is_some() || args.max_percent.is_some()
}

async fn survey(
    context: &Context,
    choice: &Choice,
    reader: Reader,
    file: Option<&mut KeyFile>,
    interrupt: &Interrupt,
) -> Result<Survey> {
    let progress = context.ui.progress("keys looked at");
    let mut source = Source::open(choice, reader, file).await?;
    let mut survey = Survey::default();
    loop {
        let next = interrupt.unless_raised(source.next(choice)).await;
        let Some(page) = next.ok_or_else(|| Stop::interrupted("interrupted; nothing was changed"))?? else { break };
        survey.add(&page, source.looked_at());
        progress.set_position(source.looked_at());
    }
    progress.finish_and_clear();
    Ok(survey)
}

/// What was counted, before anybody is asked.
fn show(context: &mut Context, args: &Args, choice: &Choice, survey: &Survey, server: &str) -> Result<()> {
    if survey.tally.total() == 0 {
        context.ui.status(&format!("no such records among {} keys of {server}", survey.looked_at));
        return Ok(());
    }
    if args.output == Output::Table {
        let palette = Palette::new(context.ui.is_colored());
        context.ui.data(change::records(&survey.tally, palette, context.ui.width()))?;
        context.ui.flush()?;
    }
    context.ui.status("The next request with each of these keys executes the operation.");
    if choice.takes_locks() {
        context.ui.status("Where a worker still runs, it executes twice.");
    }
    Ok(())
}

/// How many records may be removed: as many as were counted, or as --max and --max-percent allow, should there be more
/// by then.
fn most(args: &Args, total: u64, records: u64) -> Result<u64, Stop> {
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

async fn purge(
    context: &mut Context,
    args: &Args,
    choice: &Choice,
    (reader, writer): (Reader, Writer),
    file: Option<&mut KeyFile>,
    (interrupt, limit): (&Interrupt, u64),
    (found, purged): (&mut Survey, &mut Purged),
) -> Result<()> {
    let server = reader.name();
    let mut journal = Journal::open(context, &args.change, "purge", true)?;
    let mut remover = Remover {
        choice,
        reader: reader.clone(),
        writer,
        journal: &mut journal,
        pace: Pace::new(args.rate),
        interrupt,
        limit,
        uncounted: (!counts_first(args)).then_some(&mut *found),
    };
    let ended = match Source::open(choice, reader, file).await {
        Ok(source) => remover.remove_all(context, source, purged).await,
        Err(error) => Err(error),
    };
    let (backup, ended) = journal.close(ended).await;
    purged.backup = backup.map(|file| file.display().to_string());
    purged.outcome = *ended.as_ref().unwrap_or(&Ended::Failed);
    if !counts_first(args) {
        show(context, args, choice, found, &server)?;
    }
    ended.map(drop)
}

fn report(context: &mut Context, args: &Args, survey: &Survey, purged: &Purged) -> Result<()> {
    let value = change::purge(&survey.tally, purged);
    let text = match args.output {
        Output::Table => return Ok(()),
        Output::Json => serde_json::to_string_pretty(&value)?,
        Output::Jsonl => value.to_string(),
    };
    context.ui.data(format!("{}\n", escape::json(text)))?;
    Ok(context.ui.flush()?)
}

fn finish(context: &mut Context, args: &Args, found: &Survey, purged: &Purged, ended: Result<()>) -> Result<Exit> {
    let backup = purged.backup.as_ref().map(|file| format!("; backup: {file}")).unwrap_or_default();
    let knows_all = counts_first(args) || purged.outcome == Ended::Whole;
    let of_all = if knows_all { format!(" of {}", found.tally.total()) } else { String::new() };
    let so_far = format!("{}{of_all} records purged{backup}", purged.done);
    if let Err(error) = ended {
        return Err(exit::between(&error, purged.done > 0, &so_far).into());
    }
    if purged.outcome == Ended::Interrupted {
        return Err(Stop::interrupted(format!("interrupted: {so_far}"))
            .hint("the same command again goes on with the rest")
            .into());
    }
    if found.tally.total() > 0 {
        context.ui.status(&so_far);
    }
    if purged.changed > 0 {
        context.ui.status(&format!("Left alone: {} that changed since they were seen", purged.changed));
    }
    Ok(Exit::Done)
}

/// Parses `5`, `0.5` or `5%`.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok().filter(|percent| (0.0..=100.0).contains(percent));
    number.ok_or_else(|| "a percentage is a number from 0 to 100".to_owned())
}
