//! Which schemas a deployment uses.

use std::sync::Arc;

use anyhow::Result;
use fastrand::Rng;

use crate::context::Context;
use crate::domain::diagnosis::Thresholds;
use crate::domain::record::locate::{for_redis_key, records};
use crate::domain::schema::{Catalog, Schema};
use crate::store::{Client, ReadLimit, RecordReader, Sampler, StoreError};

/// The most Redis keys that are sampled. Each is read twice at most.
const SAMPLE: usize = 500;

/// The bytes of a value by which most formats are recognised.
const HEAD: ReadLimit = ReadLimit::Bytes(512);

/// The schemas that the operator or the context names, or else those whose records are in a sample
/// of the keys.
///
/// # Errors
/// The server does not answer.
pub(super) async fn find(
    context: &mut Context,
    client: &Client,
    catalog: &Catalog,
) -> Result<Vec<Arc<Schema>>> {
    if catalog.is_named() {
        return Ok(catalog.chosen().to_vec());
    }
    let sampled = sample(client.reader(), catalog).await;
    let hint = "name the schemas of your services with --schema to see how they can fail";
    let schemas = match sampled {
        Ok(schemas) => schemas,
        // The other checks need no keys.
        Err(error) if error.is_permission() => {
            context.ui.warning(&format!("idemctl cannot see which schemas are in use: {error}"));
            context.ui.hint(hint);
            return Ok(Vec::new());
        }
        Err(error) => return Err(error.into()),
    };
    if schemas.is_empty() {
        context.ui.note("no record of a known schema is in the sample of the keys");
        context.ui.hint(hint);
    } else {
        let names: Vec<_> = schemas.iter().map(|schema| schema.name.as_str()).collect();
        context.ui.detail(&format!("schemas in use, by a sample: {}", names.join(", ")));
    }
    Ok(schemas)
}

async fn sample(
    mut reader: RecordReader,
    catalog: &Catalog,
) -> Result<Vec<Arc<Schema>>, StoreError> {
    let mut sampler = Sampler::start(reader.clone(), SAMPLE, Rng::new(), None).await?;
    let mut found: Vec<Arc<Schema>> = Vec::new();
    while let Some(keys) = sampler.next().await? {
        let mut candidates = Vec::new();
        for key in keys {
            if let Some((candidate, _)) = for_redis_key(catalog, &key.redis_key) {
                candidates.push(candidate);
            }
        }
        let redis_keys: Vec<_> =
            candidates.iter().map(|candidate| candidate.redis_keys.clone()).collect();
        let read = reader.read(&redis_keys, HEAD).await?;
        for (candidate, seen) in candidates.iter().zip(read) {
            // Records that the user may not read show nothing.
            let Ok(seen) = seen else { continue };
            for record in records(catalog, candidate, &seen, &Thresholds::default()) {
                let is_known = found.iter().any(|schema| schema.name == record.schema.name);
                if !record.claim.is_unrecognised() && !is_known {
                    found.push(record.schema);
                }
            }
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}
