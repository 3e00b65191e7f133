//! In whose name a lock is completed or released.

use anyhow::Result;
use uuid::Uuid;

use crate::context::Context;
use crate::domain::record::Record;
use crate::domain::schema::Step;
use crate::exit::{CommandError, Exit};
use crate::render::escape;

/// The owner in whose name a step is done to a lock. Where the service checks the owner: the owner that was given, or that
/// the operator names when asked. Else: the owner whom the lock names. A dry run asks nobody.
///
/// # Errors
/// Usage: none was given and nobody can be asked, or the schema knows no owners. No: it is not the lock's.
pub fn of_lock(
    context: &mut Context,
    record: &Record,
    step: &Step,
    given: Option<&str>,
    dry_run: bool,
) -> Result<Vec<u8>> {
    let holder = record.owner();
    match given {
        Some(given) if step.checks_owner => Ok(meant(given, holder)),
        None if step.checks_owner && !dry_run => ask(context, record, holder),
        None => Ok(holder.unwrap_or_default().to_vec()),
        Some(given) => match holder {
            Some(holder) if *meant(given, Some(holder)) == *holder => Ok(holder.to_vec()),
            Some(holder) => Err(CommandError::new(
                Exit::No,
                format!(
                    "the lock is {}'s, not {}'s; nothing was done",
                    escape::text(holder),
                    escape::text(given.as_bytes())
                ),
            )
            .into()),
            None => Err(no_owners(record).into()),
        },
    }
}

/// The owner of a lock that is taken anew: the owner that was given, else the record's where `keep`, else a new UUID. Empty
/// where the schema knows no owners.
pub fn of_new(record: &Record, given: Option<&str>, keep: bool) -> Result<Vec<u8>, CommandError> {
    let stored = record.owner().filter(|_| keep);
    match (record.schema.names_owner(), given) {
        (false, Some(_)) => Err(no_owners(record)),
        (false, None) => Ok(Vec::new()),
        (true, Some(given)) => Ok(given.as_bytes().to_vec()),
        (true, None) => {
            Ok(stored.map_or_else(|| Uuid::new_v4().to_string().into_bytes(), <[u8]>::to_vec))
        }
    }
}

/// The owner that an operator names: nobody types bytes that are no text, so the holder is named by what is shown of it, too.
fn meant(typed: &str, holder: Option<&[u8]>) -> Vec<u8> {
    holder.filter(|holder| escape::text(holder) == typed).unwrap_or(typed.as_bytes()).to_vec()
}

fn no_owners(record: &Record) -> CommandError {
    CommandError::usage(format!("--owner: locks of {} name no owner", record.schema.name))
        .hint("leave it out")
}

fn ask(context: &mut Context, record: &Record, holder: Option<&[u8]>) -> Result<Vec<u8>> {
    let name = &record.schema.name;
    if !context.ui.is_interactive() {
        let holder =
            holder.map(|holder| format!("; it is {}'s", escape::text(holder))).unwrap_or_default();
        return Err(CommandError::usage(format!(
            "{name} lets only the lock's owner do this{holder}"
        ))
        .hint("--owner ID says in whose name")
        .into());
    }
    let held = holder.map(|holder| format!(" ({})", escape::text(holder))).unwrap_or_default();
    let place = context.place(&context.settings.target().to_string());
    let question = format!(
        "{name} at {place} lets only the lock's owner do this. Type the owner's id to go ahead{held}"
    );
    let typed = context.ui.ask_for(&question)?;
    match typed.trim() {
        "" => Err(CommandError::usage("no owner was given; nothing was changed").into()),
        owner => Ok(meant(owner, holder)),
    }
}
