//! How a run that came to no good end is told.

use crate::domain::diagnosis::health::Status;
use crate::exit::{self, Exit};
use crate::render::plugin;
use crate::terminal::ui::Ui;

/// Monitoring reads one line on stdout, and the exit codes of plugins.
pub(super) fn unknown(ui: &mut Ui, why: &str) -> Exit {
    // Monitoring that cannot read stdout still gets the exit code.
    let _ = ui.data(plugin::unknown(why)).and_then(|()| ui.flush());
    Exit::Command(Status::Unknown.code())
}

/// Says why a run ended early, and gives its exit code.
pub(super) fn report(ui: &mut Ui, error: &anyhow::Error, is_check: bool) -> Exit {
    if exit::is_closed_pipe(error) {
        return Exit::Done;
    }
    // Of a look that was given up, the one before stays on the terminal.
    let _ = ui.end_frame(false);
    if is_check {
        unknown(ui, &format!("{error:#}"));
    }
    ui.error(&format!("{error:#}"));
    if let Some(hint) = exit::hint_of(error) {
        ui.hint(&hint);
    }
    if is_check { Exit::Command(Status::Unknown.code()) } else { exit::of(error) }
}
