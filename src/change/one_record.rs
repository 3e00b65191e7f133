//! The one record that a step is made on.

use std::os::unix::ffi::OsStrExt as _;

use anyhow::Result;

use super::removal_hint::removal_hint;
use crate::args::{Output, SchemaArgs, StepArgs};
use crate::domain::diagnosis::Thresholds;
use crate::domain::record::{GivenKey, Record, RecordName, UnclaimedKey, locate};
use crate::domain::schema::{Catalog, Schema, Step};
use crate::domain::step::StepKind;
use crate::exit::{CommandError, Exit};
use crate::render::record::PageOptions;
use crate::render::{escape, name, record, unclaimed_key};
use crate::session::key_list::KeyList;
use crate::session::{Session, interruptible};
use crate::store::ReadLimit;
use crate::store::read::lookup::{Lookup, unclaimed_as};

/// Reads the record that a step is made on. If several schemas are read, it is the one of the
/// schema that has a record there. A schema without a fixed prefix counts only if KEY names it.
///
/// # Errors
/// Usage: several schemas, no key, a KEY that names two records, or a schema that idemctl only
/// reads; else as every read.
pub async fn find_record(session: &mut Session, args: &StepArgs) -> Result<Record> {
    let mut keys = KeyList::of_words(std::slice::from_ref(&args.key))?;
    let catalog = session.catalog_to_change(&args.schemas, &mut keys)?;
    let given = GivenKey::word(args.key.as_bytes());
    if only_schema(&catalog, args.key.as_bytes()).is_ok() || args.key.is_empty() {
        return find_under_schema(session, &catalog, &given).await;
    }
    let mut reader = session.connect_reader().await?;
    let lookup = Lookup {
        first_read: ReadLimit::Whole,
        thresholds: Thresholds::default(),
        includes_less_specific_results: false,
        keeps_unrecognised: false,
    };
    let found = lookup.find(&mut reader, &catalog, vec![given.clone()]);
    let mut found = interruptible(found).await?;
    let found = found.pop().unwrap_or_default();
    if let Some(names) = found.several() {
        return Err(ambiguous(&found.given, &names).into());
    }
    let mut names = Vec::new();
    for record in &found.records {
        // Any Redis key may be a record of a schema without a prefix: the operator names such a
        // schema.
        if record.schema.has_fixed_prefix() || found.says_schema_of(record) {
            names.push(RecordName::of(record));
        }
    }
    names.dedup();
    // Another program's value under a second schema's prefix may look like one of its records.
    if names.len() > 1 {
        return Err(ambiguous(&found.given, &names).into());
    }
    let name = match names.as_slice() {
        [name] => Some(name),
        [] => found.name(),
        _ => None,
    };
    // A Redis key that could not be read may be a record of another schema.
    if let Some(why) = &found.why_unread {
        return Err(why.clone().into());
    }
    if let Some(unread) = found.may_name_another(&catalog) {
        let message = format!("{}: unknown: {unread}", escape::text(&found.given));
        return Err(CommandError::new(Exit::Partial, message).into());
    }
    if names.is_empty() {
        check_recognised(&found.unclaimed)?;
    }
    let Some(name) = name else { return find_under_schema(session, &catalog, &given).await };
    let schemas = SchemaArgs { schema: vec![name.schema.clone()], ..args.schemas.clone() };
    let catalog = session.catalog_for(&schemas, &mut keys)?;
    find_under_schema(session, &catalog, &GivenKey::name(name)).await
}

/// Reads the record of a key under the one schema that was chosen, in whatever state the record is,
/// absent included.
///
/// # Errors
/// As [`find_record`].
async fn find_under_schema(
    session: &mut Session,
    catalog: &Catalog,
    given: &GivenKey,
) -> Result<Record> {
    let key = given.text.as_slice();
    if key.is_empty() {
        return Err(CommandError::usage("the key is empty").into());
    }
    only_schema(catalog, key)?;
    let mut reader = session.connect_reader().await?;
    let meanings = given.meanings(catalog, reader.db());
    let candidates = locate::for_meanings(catalog, &meanings);
    let mut wanted = Vec::with_capacity(candidates.len());
    for candidate in &candidates {
        wanted.push(candidate.redis_keys.clone());
    }
    let seen =
        interruptible(async { Ok(reader.read_or_fail(&wanted, ReadLimit::Whole).await?) }).await?;
    let mut there = Vec::new();
    let mut absent = Vec::new();
    for (candidate, seen) in candidates.iter().zip(seen) {
        let record = locate::record_even_absent(catalog, candidate, seen?, &Thresholds::default());
        match record {
            Some(record) if record.seen.is_absent() => absent.push(record),
            Some(record) => there.push(record),
            None => {}
        }
    }
    if there.len() > 1 {
        let names: Vec<_> = there.iter().map(RecordName::of).collect();
        return Err(CommandError::usage(name::ambiguous(key, &names)).hint(name::HINT).into());
    }
    // If no record is there, the first candidate counts. It reads a KEY that looks like a Redis key
    // as a Redis key.
    let Some(mut record) = there.into_iter().chain(absent).next() else {
        let shown = escape::text(key);
        if let Some((why, hint)) = given.excluded_because(catalog) {
            return Err(CommandError::usage(format!("{shown}: {why}")).hint(hint).into());
        }
        return Err(CommandError::usage(format!(
            "{shown} is not a key of this schema; `idemctl schema show` describes its keys"
        ))
        .into());
    };
    if let Some(unclaimed) = unclaimed_as(catalog, &record) {
        check_recognised(&unclaimed)?;
    }
    session.fill_in_advice([&mut record]);
    Ok(record)
}

fn ambiguous(given: &[u8], names: &[RecordName]) -> CommandError {
    let why = name::ambiguous(given, names);
    CommandError::usage(format!("which schema? {why}")).hint(name::HINT)
}

/// Refuses a KEY without a record at whose Redis keys another program's values are.
///
/// # Errors
/// Usage: which value, and of which schemas it may be.
fn check_recognised(unclaimed: &[UnclaimedKey]) -> Result<(), CommandError> {
    let Some(unclaimed) = unclaimed.first() else { return Ok(()) };
    Err(CommandError::usage(unclaimed_key::line(unclaimed)).hint(unclaimed_key::HINT))
}

/// The step that the schema describes, if idemctl can write the values of its lock and result as
/// the service does.
///
/// # Errors
/// Usage: the schema does not describe the step, or why idemctl only reads the values, or the step
/// sends a TTL of which the deployment states that there is none.
pub fn described_step(record: &Record, kind: StepKind) -> Result<&Step, CommandError> {
    let schema = &record.schema;
    let Some(step) = kind.described_in(schema) else {
        return Err(undescribed(record, kind.as_str()));
    };
    if let Some(why) = schema.read_only_because() {
        let stop = CommandError::usage(format!("{}: {why}", schema.name));
        return Err(if record.seen.is_absent() { stop } else { stop.hint(removal_hint(record)) });
    }
    check_ttls(schema, step)?;
    Ok(step)
}

/// Passes a step unless it sends a TTL of which the deployment states that there is none.
///
/// # Errors
/// Usage: which TTL.
pub fn check_ttls(schema: &Schema, step: &Step) -> Result<(), CommandError> {
    let Some(why) = schema.untimed_because(step) else { return Ok(()) };
    Err(CommandError::usage(format!("{}: {why}", schema.name)))
}

/// That the schema describes records, and not what the service does in this step.
pub fn undescribed(record: &Record, step: &str) -> CommandError {
    let schema = &record.schema;
    if step == "complete" && schema.is_lock_alone() {
        let stop = CommandError::usage(format!("{}: it has no result to store", schema.name));
        return stop.changed_nothing().hint(removal_hint(record));
    }
    let mut hint = format!("describe the step as [{step}] in schema.toml");
    if !record.seen.is_absent() {
        hint = format!("{}; or {hint}", removal_hint(record));
    }
    CommandError::usage(format!(
        "{}: the schema does not describe the {step} step",
        record.schema.name
    ))
    .changed_nothing()
    .hint(hint)
}

/// Passes a schema whose locks idemctl can create.
///
/// # Errors
/// Usage: a lock holds data of the request that idemctl does not know.
pub fn check_creates_lock(schema: &Schema) -> Result<(), CommandError> {
    let Some(needs) = &schema.write.lock_needs else { return Ok(()) };
    Err(CommandError::usage(format!(
        "a lock of {} holds {needs}, which idemctl does not know",
        schema.name
    ))
    .changed_nothing())
}

fn only_schema(catalog: &Catalog, key: &[u8]) -> Result<(), CommandError> {
    if catalog.names_schemas() && catalog.chosen().len() == 1 {
        return Ok(());
    }
    let names: Vec<_> = catalog.chosen().iter().map(|schema| schema.name.as_str()).collect();
    let key = escape::text(key);
    let message = format!("to create a record of {key}, this command needs exactly one schema");
    Err(CommandError::usage(message)
        .hint(format!("pass --schema with one of these: {}", names.join(", "))))
}

/// Shows the record before the step, unless JSON is wanted.
pub fn show_record(session: &mut Session, output: Output, of: &Record) -> Result<()> {
    if output == Output::Text {
        // Without advice, because the operator has already chosen what to do.
        let mut shown = of.clone();
        for finding in &mut shown.findings {
            finding.advice.clear();
        }
        session.ui.page(record::page(&shown, session.ui.view(), PageOptions::default()))?;
        session.ui.flush()?;
    }
    Ok(())
}

/// The time for a step, in milliseconds since 1970, from what the record's node said; 0 if it said
/// nothing and the step does not need the time.
///
/// # Errors
/// Permission: the step needs the time, and the server does not tell the time. An invented one
/// would be stored.
pub fn time_for(
    schema: &Schema,
    server_ms: Option<u64>,
    is_needed: bool,
) -> Result<u64, CommandError> {
    if let Some(now_ms) = server_ms {
        return Ok(now_ms);
    }
    if is_needed {
        let name = &schema.name;
        let message = format!("{name} stores times, but idemctl cannot read the server's time");
        return Err(CommandError::new(Exit::Permission, message)
            .hint("the user needs the permission for TIME (+time)"));
    }
    Ok(0)
}
