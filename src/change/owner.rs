//! In whose name a lock is completed or released.

use anyhow::Result;
use uuid::Uuid;

use super::confirm::MAX_ASKED;
use super::removal_hint::removal_hint;
use crate::domain::record::Record;
use crate::domain::schema::Step;
use crate::exit::{CommandError, Exit};
use crate::render::escape;
use crate::session::Session;

/// The owner in whose name a step is made on a lock. If the service checks the owner: the owner
/// that was given, or that the operator names when asked; a dry run asks nobody. Otherwise the
/// owner whom the lock names.
///
/// # Errors
/// Usage: none was given and nobody can be asked, or the schema knows no owners. No: it is not the
/// lock's.
pub fn owner_of_lock(
    session: &mut Session,
    record: &Record,
    step: &Step,
    given: Option<&str>,
    dry_run: bool,
) -> Result<Vec<u8>> {
    let holder = record.owner();
    let Some(given) = given else {
        check_owner_has_name(record, step)?;
        if step.checks_owner && !dry_run {
            return ask(session, record, holder);
        }
        if step.checks_owner {
            session.ui.note("the step itself needs --owner, because the service checks the owner");
        }
        return Ok(holder.unwrap_or_default().to_vec());
    };
    let owner = meant(given, holder);
    // The service decides; a wrong owner is reported as its refusal.
    if step.checks_owner {
        return Ok(owner);
    }
    let Some(holder) = holder else { return Err(no_owners(record).into()) };
    if owner != holder {
        let holder = escape::text(holder);
        let given = escape::text(given.as_bytes());
        let message = format!("the lock belongs to {holder}, not to {given}; nothing was done");
        return Err(CommandError::new(Exit::No, message).into());
    }
    Ok(owner)
}

/// Passes a lock whose owner an operator can name, if the service checks the owner.
///
/// # Errors
/// Usage: the owner in the lock is empty, which no `--owner` is.
pub fn check_owner_has_name(record: &Record, step: &Step) -> Result<(), CommandError> {
    if !step.checks_owner || record.owner() != Some(b"") {
        return Ok(());
    }
    let name = &record.schema.name;
    Err(CommandError::usage(format!(
        "{name} lets only the lock's owner do this, and the owner in this lock is empty"
    ))
    .hint(removal_hint(record)))
}

/// Why the service refuses a step in the name of this owner, if the lock tells, after a comma.
pub fn because_of_owner(record: &Record, owner: &[u8]) -> String {
    match record.owner() {
        Some(b"") => ", because the owner in the lock is empty".to_owned(),
        Some(holder) if holder != owner => {
            format!(", because the lock belongs to {}", escape::text(holder))
        }
        _ => String::new(),
    }
}

/// The owner of a new lock: the owner that was given, else the record's if `keep`, else a new UUID.
/// Empty if the schema knows no owners.
///
/// # Errors
/// Usage: an owner was given, and the schema knows none.
pub fn owner_of_new_lock(
    record: &Record,
    given: Option<&str>,
    keep: bool,
) -> Result<Vec<u8>, CommandError> {
    if !record.schema.names_owner() {
        return if given.is_some() { Err(no_owners(record)) } else { Ok(Vec::new()) };
    }
    if let Some(given) = given {
        return Ok(given.as_bytes().to_vec());
    }
    if let Some(stored) = record.owner()
        && keep
    {
        return Ok(stored.to_vec());
    }
    Ok(Uuid::new_v4().to_string().into_bytes())
}

/// The owner that an operator names. Nobody types bytes that are not text, so that what is shown of
/// the holder names it, too.
fn meant(typed: &str, holder: Option<&[u8]>) -> Vec<u8> {
    match holder {
        Some(holder) if escape::text(holder) == typed => holder.to_vec(),
        _ => typed.as_bytes().to_vec(),
    }
}

fn no_owners(record: &Record) -> CommandError {
    let name = &record.schema.name;
    CommandError::usage(format!("--owner: this lock of {name} stores no owner"))
        .hint("omit --owner")
}

fn ask(session: &mut Session, record: &Record, holder: Option<&[u8]>) -> Result<Vec<u8>> {
    let name = &record.schema.name;
    let held = holder.map(|holder| format!(" ({})", escape::text(holder))).unwrap_or_default();
    if !session.ui.is_interactive() {
        let message = format!("{name} lets only the lock's owner do this{held}");
        return Err(CommandError::usage(message).hint("pass the owner with --owner ID").into());
    }
    let place = session.server_label(&session.settings.target().to_string());
    let mut question = format!(
        "{name} at {place} lets only the lock's owner do this. Type the owner's ID to \
        continue{held}"
    );
    for _ in 0..MAX_ASKED {
        let typed = session.ui.ask_for(&question)?;
        let typed = typed.trim();
        if typed.is_empty() {
            break;
        }
        let owner = meant(typed, holder);
        if holder.is_none_or(|holder| owner == holder) {
            return Ok(owner);
        }
        let typed = escape::text(typed.as_bytes());
        question = format!(
            "You typed `{typed}`, which is not the lock's owner. Type the owner's ID to \
            continue{held}, or press Enter to stop"
        );
    }
    Err(CommandError::usage("no owner was given; nothing was changed").into())
}
