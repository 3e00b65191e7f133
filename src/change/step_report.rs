//! How a step done by hand ended.

use anyhow::Result;

use super::step::Played;
use crate::args::{Output, StepArgs};
use crate::context::Context;
use crate::domain::record::identity::Identity;
use crate::exit::Exit;
use crate::render::change::step;
use crate::render::change::step::{Done, Report};
use crate::render::words;

/// Ends a dry run: what was foretold, and that nothing was changed.
///
/// # Errors
/// When stdout cannot be written.
pub fn rehearsed(context: &mut Context, args: &StepArgs, report: &Report<'_>) -> Result<Exit> {
    write(context, args.output, report)?;
    context.ui.status(&format!("dry run: nothing was changed; foretold: {}", report.foretold.as_str()));
    Ok(Exit::Done)
}

/// Says what the service answered, and what the next request gets now. No unless the step did what it is for.
///
/// # Errors
/// When stdout cannot be written.
pub fn told(context: &mut Context, args: &StepArgs, report: Report<'_>, played: &Played) -> Result<Exit> {
    let done =
        Done { means: played.means, reply: played.reply.as_ref(), now: &played.now, backup: played.backup.as_ref() };
    write(context, args.output, &Report { done: Some(done), ..report })?;
    let name = &report.record.schema.name;
    let kept = played.backup.as_ref().map(|file| format!("; backup: {}", file.display())).unwrap_or_default();
    let word = played.means.map_or("its schema does not list this reply", |meaning| meaning.as_str());
    let left = match played.is_done() {
        true => "",
        false if !Identity::of(&report.record.seen).differs(&played.now.seen) => "; nothing was changed",
        false => "; it changed the record all the same",
    };
    context.ui.status(&match &played.reply {
        Some(reply) => format!("{name} answers {}: {word}{left}{kept}", words::reply(reply)),
        None => format!("The reply was lost; reading back shows that it was done: {word}{kept}"),
    });
    context.ui.status(&format!("Read back: {}.", words::then(&played.now)));
    Ok(if played.is_done() { Exit::Done } else { Exit::No })
}

fn write(context: &mut Context, output: Output, report: &Report<'_>) -> Result<()> {
    if output != Output::Table {
        context.ui.data(step::report(report, output == Output::Jsonl))?;
        context.ui.flush()?;
    }
    Ok(())
}
