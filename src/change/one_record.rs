//! The one record that a step is done to.

use std::os::unix::ffi::OsStrExt as _;

use anyhow::Result;

use crate::args::{Output, SchemaArgs, StepArgs};
use crate::context::{Context, interruptible};
use crate::domain::diagnosis::Thresholds;
use crate::domain::record::{Record, locate};
use crate::domain::schema::{Catalog, Schema, Step};
use crate::exit::Stop;
use crate::render::{escape, record};
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
        return Err(Stop::usage("the key is empty").into());
    }
    only_schema(&catalog)?;
    catalog.chosen().iter().try_for_each(|schema| plays_steps(schema))?;
    let places = locate::for_key(&catalog, key);
    let wanted: Vec<_> = places.iter().map(|place| place.redis_keys.clone()).collect();
    let mut reader = context.reader().await?;
    let seen = interruptible(async { Ok(reader.observe(&wanted, ReadLimit::Whole).await?) }).await?;
    let mut records = Vec::with_capacity(places.len());
    for (place, seen) in places.iter().zip(seen) {
        records.extend(locate::record_at(&catalog, place, seen?, &Thresholds::default()));
    }
    // Where no record is there, a KEY that looks like a Redis key is taken for one.
    let there: Vec<_> = records.iter().filter(|record| !record.seen.is_absent()).cloned().collect();
    if there.len() > 1 {
        let keys: Vec<_> = there.iter().map(|record| escape::text(&record.seen.keys[0].redis_key)).collect();
        return Err(Stop::usage(format!("{} names two records: {}", escape::text(key), keys.join(" and ")))
            .hint("give the full Redis key of the one that is meant")
            .into());
    }
    let chosen = there.into_iter().next().or_else(|| records.into_iter().next());
    Ok(chosen.ok_or_else(|| Stop::usage(format!("{} is no key of this schema", escape::text(key))))?)
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
    let keys = vec![args.key.as_bytes().to_vec()];
    let found = interruptible(lookup.find(&mut reader, &catalog, keys)).await?;
    // Any Redis key may be a record of a schema without a prefix: the operator names such a schema.
    let held = found.iter().flat_map(|found| &found.records).filter(|record| record.schema.has_prefix());
    let mut schemas: Vec<_> = held.map(|record| record.schema.name.clone()).collect();
    schemas.dedup();
    match (schemas.as_slice(), found.iter().any(|found| found.unread.is_some())) {
        ([schema], false) => {
            let schemas = SchemaArgs { schema: vec![schema.clone()], ..args.schemas.clone() };
            find(context, &StepArgs { schemas, ..args.clone() }).await
        }
        _ => find(context, args).await,
    }
}

/// Whether idemctl writes what the service stores.
fn plays_steps(schema: &Schema) -> Result<(), Stop> {
    let hint = "`idemctl force-unlock` removes a lock, `idemctl purge KEY` a result";
    schema.read_only_because().map_or(Ok(()), |why| Err(Stop::usage(format!("{}: {why}", schema.name)).hint(hint)))
}

/// Passes a step that sends no TTL which the deployment states there is none of.
///
/// # Errors
/// Usage: which TTL.
pub fn check_ttls(schema: &Schema, step: &Step) -> Result<(), Stop> {
    let hint =
        "write the step into a schema of your own as the service makes it (`idemctl schema new`), or state the TTL";
    schema.untimed_because(step).map_or(Ok(()), |why| Err(Stop::usage(format!("{}: {why}", schema.name)).hint(hint)))
}

/// That the schema tells how records look, and not what the service does in this step.
pub fn undescribed(schema: &Schema, step: &str) -> Stop {
    Stop::usage(format!("{}: the schema describes no {step} step; nothing was done", schema.name)).hint(format!(
        "`idemctl force-unlock` removes a lock, `idemctl purge` a result; or describe the step as [{step}] in schema.toml"
    ))
}

fn only_schema(catalog: &Catalog) -> Result<(), Stop> {
    if catalog.is_named() && catalog.chosen().len() == 1 {
        return Ok(());
    }
    let names: Vec<_> = catalog.chosen().iter().map(|schema| schema.name.as_str()).collect();
    Err(Stop::usage("a step is one service's: which schema?").hint(format!("--schema is one of {}", names.join(", "))))
}

pub fn show(context: &mut Context, output: Output, of: &Record) -> Result<()> {
    if output == Output::Table {
        context.ui.page(record::page(of, context.ui.view(), false))?;
        context.ui.flush()?;
    }
    Ok(())
}
