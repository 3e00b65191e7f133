//! What a sweep says.

use anyhow::Result;

use super::orphans::Orphans;
use super::{ActionArg, Args, Found};
use crate::args::Output;
use crate::change::bulk::Rule as _;
use crate::change::{came_to_its_end, say_read_back, write_report};
use crate::context::Context;
use crate::domain::change::outcome::Account;
use crate::exit::Exit;
use crate::render::{change, coverage, plugin};
use crate::store::Reader;

/// Says in one line what was found; no when it is anything.
///
/// # Errors
/// When stdout cannot be written.
pub(super) fn check(
    context: &mut Context,
    args: &Args,
    orphans: &Orphans,
    found: &Found,
    swept: &Account,
) -> Result<Exit> {
    match args.output {
        Output::Table => context.ui.data(plugin::orphans(&found.tally, &orphans.sought, found.looked_at))?,
        Output::Json | Output::Jsonl => report(context, args, orphans, found, swept)?,
    }
    Ok(if found.tally.total() == 0 { Exit::Done } else { Exit::No })
}

/// What was found, before anybody is asked; `left` of the locks end by themselves and are left alone.
///
/// # Errors
/// When stdout cannot be written.
pub(super) fn show(
    context: &mut Context,
    (args, orphans): (&Args, &Orphans),
    found: &Found,
    reader: &Reader,
    left: u64,
) -> Result<()> {
    let (total, catalog) = (found.tally.total(), &orphans.scope().catalog);
    if total == 0 {
        context.ui.status(&format!("no orphaned locks among {} keys of {}", found.looked_at, reader.name()));
        coverage::left_out(catalog).iter().for_each(|line| context.ui.status(line));
        return Ok(());
    }
    if args.output == Output::Table {
        context.ui.data(change::orphans(&found.tally, context.ui.view()))?;
        context.ui.flush()?;
    }
    if left > 0 {
        let locks = if left == 1 { "lock ends by itself and is" } else { "locks end by themselves and are" };
        context.ui.status(&format!(
            "{left} {locks} left alone: only word of its owner's death (--owner-alive) makes such a lock an orphan."
        ));
    }
    if total == left {
        return Ok(());
    }
    context.ui.status(match args.action {
        ActionArg::Unlock => {
            "The next request with each of these keys executes the operation, or gets the result where one is stored. Where a worker still runs, it executes twice."
        }
        ActionArg::Expire => "Each gets the lock TTL that is stated; those that have less time left are left alone.",
    });
    Ok(())
}

/// What is asked before so many locks are changed.
pub(super) fn question(args: &Args, total: u64) -> String {
    let locks = if total == 1 { "this lock".to_owned() } else { format!("these {total} locks") };
    match args.action {
        ActionArg::Unlock => format!("Remove {locks}?"),
        ActionArg::Expire => format!("Let {locks} expire?"),
    }
}

/// What was found and done, as JSON where that is wanted.
///
/// # Errors
/// When stdout cannot be written.
pub(super) fn report(
    context: &mut Context,
    args: &Args,
    orphans: &Orphans,
    found: &Found,
    swept: &Account,
) -> Result<()> {
    let covered = coverage::fields(&found.coverage, &orphans.scope().catalog, found.looked_at);
    write_report(context, args.output, &change::sweep(&found.tally, &orphans.sought, covered, swept))
}

/// How far the sweep got.
///
/// # Errors
/// How the sweep ended.
pub(super) fn finish(context: &mut Context, total: u64, swept: &Account, ended: Result<()>) -> Result<Exit> {
    let backup = swept.backup.as_ref().map(|file| format!("; backup: {file}")).unwrap_or_default();
    let so_far = format!("{} of {total} locks done{backup}", swept.done);
    say_read_back(context, swept.read_back);
    came_to_its_end(ended, swept.outcome, swept.done, &so_far)?;
    context.ui.status(&format!("Swept: {so_far}"));
    for (count, why) in [
        (swept.changed + swept.gone, "changed since the first look"),
        (swept.renewed, "were renewed or taken anew since the first look"),
        (swept.foreign, "have a form that the schema does not write, as the whole value told"),
        (swept.skipped_alive, "have an owner that is alive"),
        (swept.left_to_expire, "end by themselves"),
    ] {
        if count > 0 {
            context.ui.status(&format!("Left alone: {count} that {why}"));
        }
    }
    Ok(Exit::Done)
}
