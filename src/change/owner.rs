//! In whose name a lock is completed or released.

use anyhow::Result;
use uuid::Uuid;

use crate::context::Context;
use crate::domain::record::Record;
use crate::domain::schema::Step;
use crate::exit::{Exit, Stop};
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
) -> Result<String> {
    let holder = record.owner().map(|owner| String::from_utf8_lossy(owner).into_owned());
    match given {
        Some(given) if step.checks_owner => Ok(given.to_owned()),
        None if step.checks_owner && !dry_run => ask(context, record, holder.as_deref()),
        None => Ok(holder.unwrap_or_default()),
        Some(given) => match &holder {
            Some(holder) if holder == given => Ok(given.to_owned()),
            Some(holder) => Err(Stop::new(
                Exit::No,
                format!("the lock is {}'s, not {}'s; nothing was done", shown(holder), shown(given)),
            )
            .into()),
            None => Err(no_owners(record).into()),
        },
    }
}

/// The owner of a lock that is taken anew: the owner that was given, else the record's where `keep`, else a new UUID. Empty
/// where the schema knows no owners.
pub fn of_new(record: &Record, given: Option<&str>, keep: bool) -> Result<String, Stop> {
    let stored = record.owner().filter(|_| keep).map(|owner| String::from_utf8_lossy(owner).into_owned());
    match (record.schema.names_owner(), given) {
        (false, Some(_)) => Err(no_owners(record)),
        (false, None) => Ok(String::new()),
        (true, given) => Ok(given.map(str::to_owned).or(stored).unwrap_or_else(|| Uuid::new_v4().to_string())),
    }
}

fn no_owners(record: &Record) -> Stop {
    Stop::usage(format!("--owner: locks of {} name no owner", record.schema.name)).hint("leave it out")
}

fn ask(context: &mut Context, record: &Record, holder: Option<&str>) -> Result<String> {
    let name = &record.schema.name;
    if !context.ui.is_interactive() {
        let holder = holder.map(|holder| format!("; it is {}'s", shown(holder))).unwrap_or_default();
        return Err(Stop::usage(format!("{name} lets only the lock's owner do this{holder}"))
            .hint("--owner ID says in whose name")
            .into());
    }
    let held = holder.map(|holder| format!(" (it is held by {})", shown(holder))).unwrap_or_default();
    let place = context.place(&context.settings.target().to_string());
    let question = format!("{name} lets only the lock's owner do this. Whose lock is it?{held} ({place})");
    let typed = context.ui.ask_for(&question)?;
    match typed.trim() {
        "" => Err(Stop::usage("no owner was given; nothing was changed").into()),
        owner => Ok(owner.to_owned()),
    }
}

fn shown(owner: &str) -> String {
    escape::text(owner.as_bytes())
}
