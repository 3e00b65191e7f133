//! The hint that a key without a record among the chosen schemas has one under another schema.

use crate::args::SchemaArgs;
use crate::domain::record::GivenKey;
use crate::domain::schema::Catalog;
use crate::render::invocation::word;
use crate::render::{escape, words};
use crate::session::Session;
use crate::store::RecordReader;
use crate::store::read::lookup::{Lookup, LookupResult};

/// The most keys that are read under all schemas, because each costs one more read.
const MOST: usize = 20;

/// Prints for each key without a record which other schema has one, if schemas were named. If the
/// read fails, there is no hint.
pub(super) async fn other_schemas_hint(
    session: &mut Session,
    reader: &mut RecordReader,
    catalog: &Catalog,
    lookup: &Lookup,
    (found, args): (&[LookupResult], &SchemaArgs),
) {
    let mut missed = Vec::new();
    for found in found {
        if found.records.is_empty() && missed.len() < MOST {
            missed.push(GivenKey::word(found.given.clone()));
        }
    }
    if missed.is_empty() || !catalog.names_schemas() {
        return;
    }
    let chosen: Vec<_> = catalog.chosen().iter().map(|schema| schema.name.clone()).collect();
    let Ok(others) = lookup.find(reader, &catalog.with_all_chosen(), missed).await else { return };
    // The operator may not know that the context names schemas.
    let mut by = String::new();
    if args.schema.is_empty()
        && let Some(name) = session.settings.context_name()
    {
        by = format!(" (context {})", escape::text(name.as_bytes()));
    }
    for other in &others {
        for record in &other.records {
            let schema = &record.schema.name;
            // An unrecognised value may belong to another program.
            if record.author.is_foreign() || chosen.contains(schema) {
                continue;
            }
            let line =
                format!("idemctl inspect {} --schema {schema}", word(&escape::text(&other.given)));
            session.ui.hint(&format!(
                "checked only {}{by}; {schema} has a record: `{line}`",
                words::list(&chosen, "and")
            ));
        }
    }
}
