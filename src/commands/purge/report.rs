//! What a purge says.

use anyhow::Result;

use super::choice::Choice;
use super::{Args, Found};
use crate::args::Output;
use crate::change::bulk::Rule as _;
use crate::change::{came_to_its_end, say_coverage, say_read_back, write_report};
use crate::context::Context;
use crate::domain::change::outcome::{Account, Ended};
use crate::exit::Exit;
use crate::render::{change, coverage};

/// What is chosen, before anybody is asked, or, where nobody is, after.
///
/// # Errors
/// When stdout cannot be written.
pub(super) fn show(context: &mut Context, args: &Args, choice: &Choice, survey: &Found, server: &str) -> Result<()> {
    if let Some(forbidden) = &survey.forbidden {
        context.ui.warning(forbidden);
    }
    let catalog = &choice.scope().catalog;
    if survey.tally.total() == 0 {
        context.ui.status(&format!("no such records among {} keys of {server}", survey.looked_at));
        coverage::left_out(catalog).iter().for_each(|line| context.ui.status(line));
    } else {
        show_chosen(context, args, choice, survey)?;
    }
    say_coverage(context, &survey.coverage, catalog);
    Ok(())
}

fn show_chosen(context: &mut Context, args: &Args, choice: &Choice, survey: &Found) -> Result<()> {
    if args.output == Output::Table {
        context.ui.data(change::records(&survey.tally, context.ui.view()))?;
        context.ui.flush()?;
    }
    context.ui.status("The next request with each of these keys executes the operation.");
    if choice.takes_locks() {
        context.ui.status("Where a worker still runs, it executes twice.");
    }
    Ok(())
}

/// What was found and done, as JSON where that is wanted.
///
/// # Errors
/// When stdout cannot be written.
pub(super) fn report(
    context: &mut Context,
    (args, choice): (&Args, &Choice),
    found: &Found,
    purged: &Account,
) -> Result<()> {
    let covered = coverage::fields(&found.coverage, &choice.scope().catalog, found.looked_at);
    write_report(context, args.output, &change::purge(&found.tally, covered, purged))
}

/// How far it got; `counted` is true when all that is chosen was counted before.
///
/// # Errors
/// How the purge ended.
pub(super) fn finish(
    context: &mut Context,
    counted: bool,
    found: &Found,
    purged: &Account,
    ended: Result<()>,
) -> Result<Exit> {
    let backup = purged.backup.as_ref().map(|file| format!("; backup: {file}")).unwrap_or_default();
    let knows_all = counted || purged.outcome == Ended::Whole;
    let of_all = if knows_all { format!(" of {}", found.tally.total()) } else { String::new() };
    let so_far = format!("{}{of_all} records purged{backup}", purged.done);
    say_read_back(context, purged.read_back);
    came_to_its_end(ended, purged.outcome, purged.done, &so_far)?;
    if found.tally.total() > 0 {
        context.ui.status(&so_far);
    }
    for (count, what) in [
        (purged.changed + purged.renewed, "left alone, for they changed since they were seen"),
        (purged.foreign, "left alone, for they have a form that the schema does not write, as the whole value told"),
        (purged.gone, "gone already, for they expired or somebody else removed them"),
    ] {
        if count > 0 {
            context.ui.status(&format!("{count} {what}"));
        }
    }
    Ok(Exit::Done)
}
