//! The one record that a step is done to.

use std::os::unix::ffi::OsStrExt as _;

use anyhow::Result;

use crate::args::{Output, SchemaArgs, StepArgs};
use crate::context::{Context, interruptible};
use crate::domain::diagnosis::Thresholds;
use crate::domain::record::{Given, Name, Record, locate};
use crate::domain::schema::{Catalog, Schema, Step};
use crate::exit::{CommandError, Exit};
use crate::render::{escape, name, record};
use crate::store::ReadLimit;
use crate::store::read::records::Lookup;

/// Reads the record of a key under the one schema that was chosen, in whatever state the record is, absent included.
///
/// # Errors
/// Usage: several schemas, no key, a KEY that names two records; else as every read.
async fn find(context: &mut Context, args: &StepArgs) -> Result<Record> {
    let catalog = context.catalog(&args.schemas)?;
    let key = args.key.as_bytes();
    if key.is_empty() {
        return Err(CommandError::usage("the key is empty").into());
    }
    only_schema(&catalog)?;
    catalog.chosen().iter().try_for_each(|schema| plays_steps(schema))?;
    let mut reader = context.reader().await?;
    let places = locate::for_readings(&catalog, &Given::word(key).readings(&catalog, reader.db()));
    let wanted: Vec<_> = places.iter().map(|place| place.redis_keys.clone()).collect();
    let seen =
        interruptible(async { Ok(reader.observe(&wanted, ReadLimit::Whole).await?) }).await?;
    let mut records = Vec::with_capacity(places.len());
    for (place, seen) in places.iter().zip(seen) {
        records.extend(locate::record_at(&catalog, place, seen?, &Thresholds::default()));
    }
    // Where no record is there, a KEY that looks like a Redis key is taken for one.
    let there: Vec<_> = records.iter().filter(|record| !record.seen.is_absent()).cloned().collect();
    if there.len() > 1 {
        let names: Vec<_> = there.iter().map(Name::of).collect();
        return Err(CommandError::usage(name::ambiguous(key, &names)).hint(name::HINT).into());
    }
    let chosen = there.into_iter().next().or_else(|| records.into_iter().next());
    let mut chosen = chosen.ok_or_else(|| {
        CommandError::usage(format!("{} is no key of this schema", escape::text(key)))
    })?;
    context.advise([&mut chosen]);
    Ok(chosen)
}

/// Reads the record of a key as [`find`] does; where no schema is named, under the one schema that has a record there.
///
/// # Errors
/// As [`find`].
pub async fn find_held(context: &mut Context, args: &StepArgs) -> Result<Record> {
    let catalog = context.catalog(&args.schemas)?;
    if only_schema(&catalog).is_ok() || args.key.is_empty() {
        return find(context, args).await;
    }
    let mut reader = context.reader().await?;
    let lookup = Lookup { head: ReadLimit::Whole, thresholds: Thresholds::default(), both: false };
    let keys = vec![Given::word(args.key.as_bytes())];
    let found =
        interruptible(lookup.find(&mut reader, &catalog, keys)).await?.pop().unwrap_or_default();
    if let Some(names) = found.several() {
        let why = name::ambiguous(&found.key, &names);
        return Err(CommandError::usage(format!("which schema? {why}")).hint(name::HINT).into());
    }
    // Any Redis key may be a record of a schema without a prefix: the operator names such a schema.
    let is_meant = |record: &&Record| record.schema.has_prefix() || found.says_schema_of(record);
    let mut held: Vec<_> = found.records.iter().filter(is_meant).map(Name::of).collect();
    held.dedup();
    let name = match held.as_slice() {
        [name] => Some(name),
        [] => found.name(),
        _ => None,
    };
    match name.filter(|_| found.unread.is_none()) {
        Some(name) => {
            let schemas = SchemaArgs { schema: vec![name.schema.clone()], ..args.schemas.clone() };
            find(context, &StepArgs { key: name.quoted().into(), schemas, ..args.clone() }).await
        }
        None => find(context, args).await,
    }
}

/// Whether idemctl writes what the service stores.
fn plays_steps(schema: &Schema) -> Result<(), CommandError> {
    let hint = "`idemctl force-unlock KEY` removes a lock, `idemctl purge KEY` a result";
    schema.read_only_because().map_or(Ok(()), |why| {
        Err(CommandError::usage(format!("{}: {why}", schema.name)).hint(hint))
    })
}

/// Passes a step that sends no TTL which the deployment states there is none of.
///
/// # Errors
/// Usage: which TTL.
pub fn check_ttls(schema: &Schema, step: &Step) -> Result<(), CommandError> {
    let hint = "write the step into a schema of your own as the service makes it (`idemctl schema new NAME`), or state the TTL";
    schema.untimed_because(step).map_or(Ok(()), |why| {
        Err(CommandError::usage(format!("{}: {why}", schema.name)).hint(hint))
    })
}

/// That the schema tells how records look, and not what the service does in this step.
pub fn undescribed(schema: &Schema, step: &str) -> CommandError {
    CommandError::usage(format!("{}: the schema describes no {step} step; nothing was done", schema.name)).hint(format!(
        "`idemctl force-unlock KEY` removes a lock, `idemctl purge KEY` a result; or describe the step as [{step}] in schema.toml"
    ))
}

fn only_schema(catalog: &Catalog) -> Result<(), CommandError> {
    if catalog.is_named() && catalog.chosen().len() == 1 {
        return Ok(());
    }
    let names: Vec<_> = catalog.chosen().iter().map(|schema| schema.name.as_str()).collect();
    Err(CommandError::usage("a step is one service's: which schema?")
        .hint(format!("--schema is one of {}", names.join(", "))))
}

pub fn show(context: &mut Context, output: Output, of: &Record) -> Result<()> {
    if output == Output::Table {
        context.ui.page(record::page(of, context.ui.view(), false))?;
        context.ui.flush()?;
    }
    Ok(())
}

/// The time by the clock of the record's node, in milliseconds since 1970, for a step that sends the time or not.
///
/// # Errors
/// Permission: the step sends the time, and the server does not tell the time. A made-up one would be stored.
pub fn time_for(record: &Record, sends_time: bool) -> Result<u64, CommandError> {
    match record.seen.server_ms {
        None if sends_time => {
            let message =
                format!("{} keeps times, and the server does not tell its own", record.schema.name);
            Err(CommandError::new(Exit::Permission, message)
                .hint("the user needs the right to TIME"))
        }
        now => Ok(now.unwrap_or_default()),
    }
}
