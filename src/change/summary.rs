//! How a run that changes many records ends.

use anyhow::Result;
use serde_json::Value;

use crate::args::Output;
use crate::domain::change::outcome_counts::{Ended, OutcomeCounts};
use crate::exit::{self, CommandError};
use crate::render::{coverage, document, words};
use crate::session::Session;

/// What a dry run says at its end.
pub(crate) const DRY_RUN: &str = "dry run: nothing was changed";

/// What is said of a lock or a record that is no longer as it was shown.
pub(super) const CHANGED: &str = "changed since it was shown; nothing was done";

/// The hint then.
pub(super) const INSPECT_AGAIN: &str = "inspect it again; its worker may still be running";

/// Writes what was found and done, if JSON is wanted: one object, which is one line with `jsonl`.
///
/// # Errors
/// Stdout cannot be written.
pub fn write_report(session: &mut Session, output: Output, value: &Value) -> Result<()> {
    let text = match output {
        Output::Text => return Ok(()),
        Output::Json => document::pretty(value),
        Output::Jsonl => document::line(value),
    };
    session.ui.data(text)?;
    Ok(session.ui.flush()?)
}

/// The file of the backup, behind a semicolon.
pub fn in_backup(file: Option<&str>) -> String {
    match file {
        Some(file) => format!("; backup: {file}"),
        None => String::new(),
    }
}

/// Prints the way back to a person; the output of a script need not repeat it.
pub fn print_way_back(session: &mut Session) {
    if session.ui.out_is_terminal() {
        session.ui.hint("`idemctl undo` takes this back");
    }
}

/// Prints how many changes were made whose replies were lost, as reading back showed.
pub fn print_read_back(session: &mut Session, count: u64) {
    if count > 0 {
        session.ui.status(&format!(
            "Made, as reading back shows, although the reply was lost: {}.",
            words::counted(count, "change")
        ));
    }
}

/// Prints why records, or locks, were left alone: those of `more`, and those whose values do not
/// tell what they are.
pub fn print_left(
    session: &mut Session,
    noun: &str,
    outcomes: &OutcomeCounts,
    more: &[(u64, &str)],
) {
    let example = coverage::example(outcomes.first_unrecognised.as_ref());
    let unrecognised = format!("with a value that matches no format of the schema{example}");
    let too_large = "with a value larger than 16 MiB, which was not read completely";
    let values = [(outcomes.unrecognised, unrecognised.as_str()), (outcomes.too_large, too_large)];
    for (count, why) in values.iter().chain(more) {
        if *count > 0 {
            let left = words::counted(*count, noun);
            session.ui.status(&format!("Left unchanged: {left} {why}"));
        }
    }
}

/// Passes if the run finished, after `done` changes.
///
/// # Errors
/// Interrupted, or the error that stopped the run; both say how far the run got and how to go on.
pub fn require_finished(ended: Result<()>, outcome: Ended, done: u64, so_far: &str) -> Result<()> {
    if let Err(error) = ended {
        return Err(exit::between(&error, done > 0, so_far).into());
    }
    if outcome == Ended::Interrupted {
        return Err(CommandError::interrupted(format!("interrupted: {so_far}"))
            .hint(exit::GOES_ON)
            .into());
    }
    Ok(())
}
