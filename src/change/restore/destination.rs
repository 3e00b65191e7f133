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
    let likeness = from.likeness(here);
    if likeness == Likeness::Same {
        return Ok(());
    }
    let there = escape::text(from.to_string().as_bytes());
    let mut why = format!("{what} is from {there}, but this server is {here}");
    let mut is_other = likeness == Likeness::Elsewhere;
    if likeness == Likeness::OtherProcess {
        is_other = from.was_taken_while_up(here, session.now());
        why += if is_other {
            ", which was already running at that time, so it is another server at the same address"
        } else {
            ". It restarted or failed over since, or is another server at that address"
        };
    }
    if is_other && !elsewhere {
        return Err(CommandError::usage(why).hint(
            "nothing was restored; connect to the original server, or restore to this one with \
            --elsewhere",
        ));
    }
    session.ui.warning(&why);
    Ok(())
}
