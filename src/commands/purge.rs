//! `idemctl purge`: many records, counted, confirmed by name, and removed as long as they are what was seen.

mod choice;
mod limit;

use std::time::Duration;

use anyhow::Result;
use clap::Args as ClapArgs;

use self::choice::{ChoiceArgs, PurgeRule};
use self::limit::LimitArgs;
use crate::args::{ChangeArgs, Output, PageArgs, SchemaArgs, ThresholdArgs};
use crate::change::bulk::{BulkOptions, BulkRule as _, BulkRun};
use crate::change::{came_to_its_end, exit_after, say_read_back, say_too_large, write_report};
use crate::context::Context;
use crate::domain::change::outcome::{Account, Ended};
use crate::domain::select::Rate;
use crate::domain::select::named_keys::NamedKeys;
use crate::exit::{CommandError, Exit};
use crate::render::{change, coverage, name};
use crate::scan::{explain_nothing, show_coverage};

/// Remove many records, each only if it is still what was seen
///
/// Counts what is chosen and shows a sample; then the server's name (host:port/db) or the context's has to be typed, and
/// a second scan backs up and removes what is chosen then, never more than was counted or --max allows. With --yes and
/// no --max there is nobody to count for: one scan does it all, and what was found is shown at its end. A record that
/// completes, is renewed or taken anew between look and removal stays. A record's state is told by the beginning of its
/// value, as `list` tells it. Without --state only completed records are
/// purged: locks are left alone unless --state in-progress is said, unreadable values unless --state unreadable or
/// --finding unreadable is, with --schema and --prefix, a --match that has a literal part, or keys. A value of a
/// form that the schema does not write is never purged. Schemas without a literal prefix (go-chi) are purged only when
/// named with --schema, and with --prefix, such a --match or keys. Exit status 3 where a key that is named has no record, or
/// one that is locked or of another form, unless options choose among the keys.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(flatten)]
    limit: LimitArgs,

    /// Remove at most so many records a second, e.g. 500/s
    #[arg(long, value_name = "N/s", value_parser = Rate::parse, allow_negative_numbers = true)]
    rate: Option<Rate>,

    /// How to show what was found and done; both kinds of JSON are one object, jsonl in one line
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    thresholds: ThresholdArgs,

    #[command(flatten)]
    choice: ChoiceArgs,

    #[command(flatten)]
    page: PageArgs,

    #[command(flatten)]
    change: ChangeArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

pub async fn run(context: &mut Context, args: Args) -> Result<Exit> {
    let reads_all = args.limit.max_percent.is_some();
    let choice = PurgeRule::new(context, &args.choice, &args.schemas, &args.thresholds, reads_all)?;
    args.choice.remark(&choice).iter().for_each(|remark| context.ui.status(remark));
    let key_file = args.choice.open_key_file(context)?;
    if !args.change.confirmed.dry_run {
        choice.check_narrow(&args.choice, &args.schemas)?;
    }
    let leave = (!args.change.confirmed.dry_run).then_some(&args.change.confirmed);
    let mut purge =
        BulkRun::open(context, &choice, leave, args.page.scan_options(), key_file).await?;
    let mut limit = u64::MAX;
    if counts_first(context, &args) {
        purge.count(context, true).await?;
        show(context, &args, &choice, &purge, purge.found.missed.is_none()).await?;
        limit = args.limit.most(purge.found.tally.total(), purge.found.records)?;
    }
    if args.change.confirmed.dry_run || limit == 0 {
        report(context, &args, &choice, &purge)?;
        let (named, given) = (purge.found.coverage.named.clone(), purge.found.keys);
        return exit_of(purge.end_unchanged(context)?, &named, given, args.choice.filters());
    }
    confirm(context, &args, &purge)?;
    let how = BulkOptions {
        command: "purge",
        what: "purged",
        removes: true,
        rate: args.rate,
        grace: Duration::ZERO,
        owners: None,
        limit,
    };
    let ended = purge.change(context, &args.change, how).await;
    if purge.account.outcome == Ended::Shown {
        return ended.map(|()| Exit::Done);
    }
    let exit = account(context, &args, &choice, &purge, ended).await?;
    exit_of(exit, &purge.found.coverage.named, purge.found.keys, args.choice.filters())
}

/// Keys that were not found, are ambiguous, or were left alone make what is done a part of what was asked for.
///
/// # Errors
/// Usage: each of the given keys is ambiguous.
fn exit_of(exit: Exit, named: &NamedKeys, given: u64, is_filtered: bool) -> Result<Exit> {
    if named.ambiguous > 0 && named.ambiguous == given {
        let each = if given == 1 { "the key names" } else { "each key names" };
        return Err(CommandError::usage(format!(
            "{each} more than one record; nothing was changed"
        ))
        .hint(name::HINT)
        .into());
    }
    let is_part = named.has_left_any(is_filtered) && exit == Exit::Done;
    Ok(if is_part { Exit::Partial } else { exit })
}

/// True when somebody is to see, or an option to judge, how many records are chosen before any of them goes.
fn counts_first(context: &Context, args: &Args) -> bool {
    args.change.confirmed.dry_run
        || args.change.confirmed.asks_somebody(context)
        || args.limit.is_given()
}

/// Shows what is chosen, and says what its removal means. Only if the scan is complete there may be nothing.
async fn show(
    context: &mut Context,
    args: &Args,
    choice: &PurgeRule,
    purge: &BulkRun<'_, PurgeRule>,
    is_complete: bool,
) -> Result<()> {
    let (found, catalog) = (&purge.found, &choice.scope().catalog);
    if let Some(forbidden) = &found.forbidden {
        context.ui.warning(forbidden);
    }
    if found.tally.total() == 0 && is_complete {
        let none = if found.coverage.unproven.is_empty() {
            "no such records"
        } else {
            "no records were chosen"
        };
        context.ui.status(&format!("{none} among {} keys of {}", found.keys, purge.server));
        explain_nothing(context, catalog, &purge.reader).await;
    } else if found.tally.total() > 0 {
        if args.output == Output::Table {
            context.ui.page(change::records(&found.tally, context.ui.view()))?;
            context.ui.flush()?;
        }
        context.ui.status("The next request with each of these keys executes the operation.");
        if choice.takes_locks() {
            context.ui.status("Where a worker still runs, it executes twice.");
        }
    }
    say_too_large(context, found.too_large);
    show_coverage(context, &found.coverage, catalog);
    Ok(())
}

fn confirm(context: &mut Context, args: &Args, purge: &BulkRun<'_, PurgeRule>) -> Result<()> {
    let records = match purge.found.tally.total() {
        1 => "this record".to_owned(),
        total => format!("these {total} records"),
    };
    Ok(args.change.confirmed.confirm_by_name(
        context,
        &format!("Purge {records}?"),
        &purge.server,
    )?)
}

fn report(
    context: &mut Context,
    args: &Args,
    choice: &PurgeRule,
    purge: &BulkRun<'_, PurgeRule>,
) -> Result<()> {
    let covered =
        coverage::fields(&purge.found.coverage, &choice.scope().catalog, purge.found.keys);
    write_report(context, args.output, &change::purge(&purge.found.tally, covered, &purge.account))
}

/// Says how far the purge got, and of the records that were left alone, why.
///
/// # Errors
/// How the purge ended, which weighs more than a stdout that nobody reads.
async fn account(
    context: &mut Context,
    args: &Args,
    choice: &PurgeRule,
    purge: &BulkRun<'_, PurgeRule>,
    ended: Result<()>,
) -> Result<Exit> {
    // Where nothing could be read, nobody knows that there is nothing.
    let is_news = !purge.is_counted && (ended.is_ok() || purge.found.keys > 0);
    let is_complete = purge.account.outcome == Ended::Whole;
    let shown =
        if is_news { show(context, args, choice, purge, is_complete).await } else { Ok(()) };
    let shown = shown.and_then(|()| report(context, args, choice, purge));
    let (account, total) = (&purge.account, purge.found.tally.total());
    let backup =
        account.backup.as_ref().map(|file| format!("; backup: {file}")).unwrap_or_default();
    let knows_all = purge.is_counted || account.outcome == Ended::Whole;
    let of_all = if knows_all { format!(" of {total}") } else { String::new() };
    let so_far = format!("{}{of_all} records purged{backup}", account.done);
    say_read_back(context, account.read_back);
    say_partly(context, account);
    came_to_its_end(ended, account.outcome, account.done + account.partly.len() as u64, &so_far)?;
    if total > 0 {
        context.ui.status(&so_far);
    }
    for (count, what) in [
        (account.changed + account.renewed, "left alone, for they changed since they were seen"),
        (
            account.foreign,
            "left alone, for they have a form that the schema does not write, as the whole value told",
        ),
        (account.too_large, "left alone, for a value is larger than 16 MiB and was not read whole"),
        (account.gone, "gone already, for they expired or somebody else removed them"),
    ] {
        if count > 0 {
            context.ui.status(&format!("{count} {what}"));
        }
    }
    // What was promised is not all done, and the same command does not do the rest.
    let is_whole = account.partly.is_empty() && account.too_large == 0;
    shown?;
    let has_scanned = !args.choice.keys.are_given();
    Ok(if is_whole {
        exit_after(&purge.found.coverage, &choice.scope().catalog, has_scanned)
    } else {
        Exit::Partial
    })
}

/// Names the records of which only one Redis key was removed.
fn say_partly(context: &mut Context, account: &Account) {
    for name in &account.partly {
        context.ui.warning(&format!(
            "{name} was removed in part: the cluster keeps its Redis keys in two slots, and one of them is left; inspect the key"
        ));
    }
}
