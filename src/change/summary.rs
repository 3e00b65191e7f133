//! How a run that changes many records ends.

use anyhow::Result;
use serde_json::Value;

use crate::args::Output;
use crate::domain::change::outcome_counts::Ended;
use crate::domain::record::RecordName;
use crate::exit::{self, CommandError};
use crate::render::{coverage, document};
use crate::session::Session;

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

/// Prints how many of the selected records no change touches, because a value is larger than is
/// ever read.
pub fn print_too_large(session: &mut Session, count: u64) {
    if count > 0 {
        let records =
            if count == 1 { "1 of them has".to_owned() } else { format!("{count} of them have") };
        let message = format!(
            "{records} a value larger than 16 MiB, which idemctl does not read completely and will \
            skip."
        );
        session.ui.status(&message);
    }
}

/// Prints how many records only begin as those of the schema, and will not be changed, with the
/// first of them as an example, and how many of the selected ones may be such.
pub fn print_unrecognised(
    session: &mut Session,
    unrecognised: u64,
    first: Option<&RecordName>,
    unjudged: u64,
) {
    if unrecognised > 0 {
        let example = coverage::example(first);
        let records = if unrecognised == 1 {
            "1 record is not changed, because its whole value matches".to_owned()
        } else {
            format!("{unrecognised} records are not changed, because their whole values match")
        };
        session.ui.status(&format!("{records} no format of the schema{example}."));
    }
    match unjudged {
        0 => {}
        1 => session.ui.status(
            "Only the beginning of 1 of the values was read. If the whole value matches no format \
            of the schema, its record is not changed.",
        ),
        _ => session.ui.status(&format!(
            "Only the beginnings of {unjudged} of the values were read. Records whose whole values \
            match no format of the schema are not changed."
        )),
    }
}

/// Prints how many changes were made whose replies were lost, as reading back showed.
pub fn print_read_back(session: &mut Session, count: u64) {
    match count {
        0 => {}
        1 => {
            session.ui.status("1 reply was lost, but reading back shows that the change was made.")
        }
        _ => session.ui.status(&format!(
            "{count} replies were lost, but reading back shows that the changes were made."
        )),
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
            .hint("run the same command again to continue with the rest")
            .into());
    }
    Ok(())
}
