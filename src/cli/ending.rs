//! Reports the end of a run that failed.

use std::io;

use crate::args::Output;
use crate::domain::diagnosis::health::Status;
use crate::exit::{self, Exit};
use crate::render::{document, plugin};
use crate::terminal::ui::Ui;

/// The exit code of a check that did not find out.
pub(super) const UNKNOWN: Exit = Exit::Command(Status::Unknown.code());

/// The exit code of a run that finished. It is not 0 if the run could not write its report.
pub(super) fn settle(ui: &mut Ui, exit: Exit) -> Exit {
    let Some(why) = ui.unwritten() else { return exit };
    let message = format!("done, but the report could not be written: {why}");
    ui.error(&message);
    if exit.code() == Exit::Done.code() { Exit::Partial } else { exit }
}

/// Monitoring reads one line or JSON on stdout, and the exit codes of plugins.
///
/// # Errors
/// Stdout cannot be written. Monitoring still gets the exit code.
pub(super) fn unknown(ui: &mut Ui, why: &str, output: Output) -> io::Result<()> {
    let text = match output {
        Output::Text => plugin::unknown(why),
        Output::Json => document::pretty(&plugin::unknown_json(why)),
        Output::Jsonl => document::line(&plugin::unknown_json(why)),
    };
    ui.data(text)?;
    ui.flush()
}

/// Reports why a run ended early, and returns its exit code. `check` is the `--output` option of
/// `check`, if that command ran.
pub(super) fn report(ui: &mut Ui, error: &anyhow::Error, check: Option<Output>) -> Exit {
    if exit::is_unread(error) && ui.ends_quietly() {
        return Exit::Done;
    }
    // The incomplete frame is dropped, and the previous one remains on the terminal.
    let _ = ui.end_frame(false);
    let message = format!("{error:#}");
    // The line of a check has the error, so stderr does not repeat it. The exception is a message
    // with `|`, which the line cannot have.
    let mut is_reported = false;
    if let Some(output) = check {
        is_reported = unknown(ui, &message, output).is_ok() && !message.contains('|');
    }
    if !is_reported {
        ui.error(&message);
    }
    if let Some(hint) = exit::hint_of(error) {
        ui.hint(&hint);
    }
    if check.is_some() { UNKNOWN } else { exit::of(error) }
}
