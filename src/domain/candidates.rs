//! Where a record may be: the Redis keys to read for an idempotency key, and whose record they turn out to be.

use std::sync::Arc;

use crate::domain::catalog::Catalog;
use crate::domain::diagnosis::{self, Foreign, Thresholds};
use crate::domain::observation::{Content, Observation};
use crate::domain::record::Record;
use crate::domain::schema::Schema;
use crate::domain::value::{self, Reading};

/// One place to look at: an idempotency key, its Redis keys, and the schemas that keep it there.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The idempotency key.
    pub key: Vec<u8>,
    /// The Redis keys, in slot order.
    pub redis_keys: Vec<Vec<u8>>,
    /// The chosen schemas with exactly these Redis keys.
    pub schemas: Vec<Arc<Schema>>,
}

/// Every place where `text`, an idempotency key or a full Redis key, may name a record of the chosen schemas.
///
/// Unless the operator named schemas, a Redis key that fits several templates is left to the most specific one.
pub fn for_key(catalog: &Catalog, text: &[u8]) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = Vec::new();
    for schema in catalog.chosen() {
        let full = schema.slots.iter().filter_map(|slot| slot.template.idempotency_key(text));
        for key in full.chain([text]) {
            let redis_keys = schema.redis_keys(key);
            if catalog.is_named() || owns_all(catalog, schema, &redis_keys) {
                add(&mut candidates, schema, key, redis_keys);
            }
        }
    }
    candidates
}

/// The place a Redis key found by a scan belongs to, with the slot the Redis key is; `None` for a stranger's key.
pub fn for_redis_key(catalog: &Catalog, redis_key: &[u8]) -> Option<(Candidate, usize)> {
    let mut owners = catalog.owners(redis_key).into_iter().filter(|(schema, _)| catalog.is_chosen(schema));
    let (first, slot) = owners.next()?;
    let key = first.slots[slot].template.idempotency_key(redis_key)?.to_vec();
    let redis_keys = first.redis_keys(&key);
    let mut schemas = vec![first];
    schemas.extend(owners.map(|(schema, _)| schema).filter(|schema| schema.redis_keys(&key) == redis_keys));
    Some((Candidate { key, redis_keys, schemas }, slot))
}

/// The records at a candidate's Redis keys: one for each of its schemas that reads the value; when none does, the one
/// whose literal prefix it bears (the newest release); none when nothing is there or it is a stranger's.
pub fn records(catalog: &Catalog, candidate: &Candidate, seen: &Observation, thresholds: &Thresholds) -> Vec<Record> {
    if seen.is_absent() {
        return Vec::new();
    }
    let read: Vec<_> = candidate.schemas.iter().map(|schema| (schema, readings(schema, seen))).collect();
    let mut kept: Vec<_> = read.iter().filter(|(_, readings)| is_readable(readings)).collect();
    if kept.is_empty() {
        let prefixed = || read.iter().filter(|(schema, _)| schema.has_prefix());
        kept.extend(prefixed().find(|(schema, _)| schema.older_release_of.is_none()).or_else(|| prefixed().next()));
    }
    kept.into_iter()
        .map(|(schema, readings)| {
            let foreign = foreign(catalog, schema, readings, seen);
            let mut record = Record::new(Arc::clone(schema), candidate.key.clone(), seen.clone(), readings.clone());
            record.findings = diagnosis::findings(&record, thresholds, foreign.as_ref());
            record
        })
        .collect()
}

fn owns_all(catalog: &Catalog, schema: &Schema, redis_keys: &[Vec<u8>]) -> bool {
    redis_keys.iter().all(|redis_key| catalog.owners(redis_key).iter().any(|(owner, _)| owner.name == schema.name))
}

fn add(candidates: &mut Vec<Candidate>, schema: &Arc<Schema>, key: &[u8], redis_keys: Vec<Vec<u8>>) {
    match candidates.iter_mut().find(|candidate| candidate.redis_keys == redis_keys && candidate.key == key) {
        Some(same) if same.schemas.iter().any(|known| Arc::ptr_eq(known, schema)) => {}
        Some(same) => same.schemas.push(Arc::clone(schema)),
        None => candidates.push(Candidate { key: key.to_vec(), redis_keys, schemas: vec![Arc::clone(schema)] }),
    }
}

fn readings(schema: &Schema, seen: &Observation) -> Vec<Reading> {
    seen.slots.iter().enumerate().map(|(slot, seen)| value::read(schema, slot, &seen.content)).collect()
}

fn is_readable(readings: &[Reading]) -> bool {
    readings.iter().all(|reading| matches!(reading, Reading::Absent | Reading::Value(_)))
}

/// The other schema whose value this is: one that reads what this schema cannot, or the newer release that cannot
/// read what this one wrote (unless the operator named the older one, and so knows).
fn foreign(catalog: &Catalog, schema: &Schema, readings: &[Reading], seen: &Observation) -> Option<Foreign> {
    if let Some(slot) = readings.iter().position(|reading| matches!(reading, Reading::Unreadable(_))) {
        let seen = &seen.slots[slot];
        let writer = catalog
            .all()
            .iter()
            .find(|other| other.name != schema.name && reads_there(other, &seen.redis_key, &seen.content))?;
        return Some(Foreign::WrittenBy(writer.name.clone()));
    }
    let newer = schema.older_release_of.as_deref().filter(|_| !catalog.is_named())?;
    let newer = catalog.all().iter().find(|other| other.name == newer)?;
    let unread = seen.slots.iter().any(|slot| {
        slot.content != Content::Absent
            && has_template(newer, &slot.redis_key).is_some()
            && !reads_there(newer, &slot.redis_key, &slot.content)
    });
    unread.then(|| Foreign::OlderReleaseOf(newer.name.clone()))
}

fn has_template(schema: &Schema, redis_key: &[u8]) -> Option<usize> {
    schema.slots.iter().position(|slot| slot.template.idempotency_key(redis_key).is_some())
}

fn reads_there(schema: &Schema, redis_key: &[u8], content: &Content) -> bool {
    has_template(schema, redis_key).is_some_and(|slot| matches!(value::read(schema, slot, content), Reading::Value(_)))
}
