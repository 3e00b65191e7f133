//! Whether what was taken at one place may come back at another.

use crate::domain::change::provenance::{Likeness, Provenance};
use crate::exit::CommandError;
use crate::render::escape;
use crate::session::Session;

/// Passes where `what`, taken from there, comes back to the place that it was taken from, or where
/// the operator allows another one.
///
/// # Errors
/// Refused for safety: it was taken somewhere else.
pub fn may_go_to(
    session: &mut Session,
    what: &str,
    from: &Provenance,
    here: &Provenance,
    elsewhere: bool,
) -> Result<(), CommandError> {
    let there = escape::text(from.to_string().as_bytes());
    let likeness = from.likeness(here);
    if likeness == Likeness::OtherProcess && from.was_taken_while_up(here, session.now()) {
        let why = format!(
            "{what} is from {there}, but this server is {here}, which was already running at that \
            time"
        );
        if elsewhere {
            session.ui.warning(&why);
            return Ok(());
        }
        return Err(CommandError::usage(format!(
            "{why}; it is another server at the same address"
        ))
        .hint(
            "nothing was restored; connect to the original server, or restore to this one with \
            --elsewhere",
        ));
    }
    match likeness {
        Likeness::Same => {}
        Likeness::OtherProcess => session.ui.warning(&format!(
            "{what} is from {there}, but this server is {here}. It restarted or failed over since, \
            or is another server at that address"
        )),
        Likeness::Elsewhere if elsewhere => {
            session.ui.warning(&format!("{what} is from {there}, and is restored to {here}"));
        }
        Likeness::Elsewhere => {
            return Err(CommandError::usage(format!(
                "{what} is from {there}, but this server is {here}"
            ))
            .hint(
                "nothing was restored; connect to the original server, or restore to this one with \
                --elsewhere",
            ));
        }
    }
    Ok(())
}
