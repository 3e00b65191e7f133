//! A sample of the records, and the schemas that a deployment uses.

use std::sync::Arc;

use fastrand::Rng;

use crate::context::Context;
use crate::domain::diagnosis::Thresholds;
use crate::domain::doctor::{Answer, RecordSample};
use crate::domain::record::locate::{for_redis_key, other_author, records};
use crate::domain::schema::{Catalog, Schema};
use crate::store::doctor::{is_fatal, refused_sample};
use crate::store::{Client, ReadLimit, RecordReader, Sampler, StoreError};

/// The most Redis keys that are sampled. Each is read twice at most.
const SAMPLE: usize = 500;

/// The bytes of a value by which most formats are recognised.
const HEAD: ReadLimit = ReadLimit::Bytes(512);

/// Samples the records, unless the user may not read them.
///
/// # Errors
/// The server does not answer.
pub(super) async fn read(
    client: &Client,
    catalog: &Catalog,
) -> Result<Answer<RecordSample>, StoreError> {
    match sample(client.reader(), catalog).await {
        Ok(sample) => Ok(Ok(sample)),
        // The other checks need no keys.
        Err(error) if is_fatal(&error) => Err(error),
        Err(error) => Ok(Err(refused_sample(&error))),
    }
}

/// The schemas that the operator or the context names, or else those with records in the sample.
pub(super) fn schemas_in_use(
    context: &mut Context,
    catalog: &Catalog,
    sample: &Answer<RecordSample>,
) -> Vec<Arc<Schema>> {
    if catalog.is_named() {
        return catalog.chosen().to_vec();
    }
    let hint = "name the schemas of your services with --schema to see how they can fail";
    let mut schemas = Vec::new();
    match sample {
        Ok(sample) => {
            for of in &sample.schemas {
                schemas.push(Arc::clone(&of.schema));
            }
            if schemas.is_empty() {
                context.ui.note("no record of a known schema is in the sample of the keys");
                context.ui.hint(hint);
            }
        }
        Err(refusal) => {
            let why = &refusal.why;
            context.ui.warning(&format!("idemctl cannot see which schemas are in use: {why}"));
            context.ui.hint(hint);
        }
    }
    schemas
}

async fn sample(mut reader: RecordReader, catalog: &Catalog) -> Result<RecordSample, StoreError> {
    let mut sampler = Sampler::start(reader.clone(), SAMPLE, Rng::new(), None).await?;
    let mut sample = RecordSample::default();
    let mut sampled = 0;
    while let Some(keys) = sampler.next().await? {
        let mut candidates = Vec::new();
        for key in keys {
            sampled += 1;
            if let Some((candidate, _)) = for_redis_key(catalog, &key.redis_key) {
                candidates.push(candidate);
            }
        }
        let redis_keys: Vec<_> =
            candidates.iter().map(|candidate| candidate.redis_keys.clone()).collect();
        let read = reader.read(&redis_keys, HEAD).await?;
        for (candidate, seen) in candidates.iter().zip(read) {
            let Ok(seen) = seen else {
                sample.unread += 1;
                continue;
            };
            let found = records(catalog, candidate, &seen, &Thresholds::default());
            // If a value fits several schemas, idemctl does not know which of them wrote it.
            if let [record] = &found[..] {
                sample.add_writer(record, other_author(catalog, record));
            }
            for record in found {
                if !record.claim.is_unrecognised() {
                    sample.add(&record);
                }
            }
        }
    }
    // The sampler leaves out keys that the user may not read, and nodes that do not answer.
    if sampler.forbidden().is_some() || sampler.missed().is_some() {
        sample.unread += 1;
    }
    sample.is_all = sample.unread == 0 && sampler.there.is_some_and(|there| there <= sampled);
    sample.places.sort_by(|one, other| one.pattern.cmp(&other.pattern));
    sample.schemas.sort_by(|one, other| one.schema.name.cmp(&other.schema.name));
    Ok(sample)
}
