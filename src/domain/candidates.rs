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
    pub schemas: Arc<[Arc<Schema>]>,
}

impl Candidate {
    /// Bytes of its values that tell what they are, under whichever of its schemas.
    pub fn head_bytes(&self) -> usize {
        self.schemas.iter().map(|schema| schema.head_bytes()).max().unwrap_or(0)
    }
}

impl From<Record> for Candidate {
    /// Where a record was found, to look at it again.
    fn from(record: Record) -> Self {
        let redis_keys = record.seen.slots.into_iter().map(|slot| slot.redis_key).collect();
        Self { key: record.key, redis_keys, schemas: Arc::from([record.schema]) }
    }
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
    let mut owners = catalog.chosen_owners(redis_key);
    let first = owners.next()?;
    let key = first.schema.slots[first.slot].template.idempotency_key(redis_key)?.to_vec();
    let redis_keys = first.schema.redis_keys(&key);
    let is_alike = |schema: &Arc<Schema>| first.alike.iter().any(|alike| Arc::ptr_eq(alike, schema));
    // Templates that differ may still come to the same Redis keys.
    let others = owners.filter(|owner| !is_alike(&owner.schema) && owner.schema.redis_keys(&key) == redis_keys);
    let mut others = others.map(|owner| Arc::clone(&owner.schema)).peekable();
    let schemas = match others.peek() {
        None => Arc::clone(&first.alike),
        Some(_) => first.alike.iter().cloned().chain(others).collect(),
    };
    Some((Candidate { key, redis_keys, schemas }, first.slot))
}

/// The records at a candidate's Redis keys: one for each of its schemas that reads the value; when none does, the one
/// whose literal prefix it bears (the newest release); none when nothing is there or it is a stranger's.
pub fn records(catalog: &Catalog, candidate: &Candidate, seen: &Observation, thresholds: &Thresholds) -> Vec<Record> {
    records_in(catalog, candidate, seen.clone(), thresholds)
}

/// The same, which keeps what was seen: a value may be large.
pub fn records_in(catalog: &Catalog, candidate: &Candidate, seen: Observation, thresholds: &Thresholds) -> Vec<Record> {
    if seen.is_absent() {
        return Vec::new();
    }
    let mut read: Vec<_> = candidate.schemas.iter().map(|schema| (schema, readings(schema, &seen))).collect();
    if read.iter().any(|(_, readings)| is_readable(readings)) {
        read.retain(|(_, readings)| is_readable(readings));
    } else {
        let prefixed = || read.iter().enumerate().filter(|(_, (schema, _))| schema.has_prefix());
        let newest =
            prefixed().find(|(_, (schema, _))| schema.older_release_of.is_none()).or_else(|| prefixed().next());
        read = newest.map(|(index, _)| index).map(|index| read.swap_remove(index)).into_iter().collect();
    }
    let record = |schema, readings, seen| record(catalog, schema, readings, (candidate.key.clone(), seen), thresholds);
    let last = read.pop();
    let mut records: Vec<_> =
        read.into_iter().map(|(schema, readings)| record(schema, readings, seen.clone())).collect();
    records.extend(last.map(|(schema, readings)| record(schema, readings, seen)));
    records
}

/// The record at a candidate's Redis keys under its first schema, whatever is there; the absent one, too.
pub fn record_at(
    catalog: &Catalog,
    candidate: &Candidate,
    seen: Observation,
    thresholds: &Thresholds,
) -> Option<Record> {
    let schema = candidate.schemas.first()?;
    Some(record(catalog, schema, readings(schema, &seen), (candidate.key.clone(), seen), thresholds))
}

/// The same of a record whose schema and idempotency key are known, without findings.
pub fn read_as(schema: &Arc<Schema>, key: &[u8], seen: Observation) -> Record {
    Record::new(Arc::clone(schema), key.to_vec(), seen.clone(), readings(schema, &seen))
}

/// The first of [`records`], without reading the value for the others; a schema that cannot tell yet comes first too.
pub fn first_record(
    catalog: &Catalog,
    candidate: Candidate,
    seen: Observation,
    thresholds: &Thresholds,
) -> Option<Record> {
    // One that may yet turn out to be a schema's own is no other's.
    let may_read = |read: &[Reading]| is_readable(read) || read.iter().any(Reading::is_undecided);
    let reads =
        |schema: &Arc<Schema>| Some((Arc::clone(schema), readings(schema, &seen))).filter(|(_, read)| may_read(read));
    match candidate.schemas.iter().find_map(reads) {
        Some((schema, readings)) if !seen.is_absent() => {
            Some(record(catalog, &schema, readings, (candidate.key, seen), thresholds))
        }
        _ => records(catalog, &candidate, &seen, thresholds).into_iter().next(),
    }
}

/// True when what was not read of a value decides what the record is, to any of the candidate's schemas.
pub fn is_undecided(candidate: &Candidate, seen: &Observation) -> bool {
    candidate.schemas.iter().any(|schema| readings(schema, seen).iter().any(Reading::is_undecided))
}

fn record(
    catalog: &Catalog,
    schema: &Arc<Schema>,
    readings: Vec<Reading>,
    (key, seen): (Vec<u8>, Observation),
    thresholds: &Thresholds,
) -> Record {
    let foreign = foreign(catalog, schema, &readings, &seen);
    let mut record = Record::new(Arc::clone(schema), key, seen, readings);
    record.findings = diagnosis::findings(&record, thresholds, foreign.as_ref());
    record
}

fn owns_all(catalog: &Catalog, schema: &Schema, redis_keys: &[Vec<u8>]) -> bool {
    redis_keys.iter().all(|redis_key| catalog.owners(redis_key).any(|(owner, _)| owner.name == schema.name))
}

fn add(candidates: &mut Vec<Candidate>, schema: &Arc<Schema>, key: &[u8], redis_keys: Vec<Vec<u8>>) {
    match candidates.iter_mut().find(|candidate| candidate.redis_keys == redis_keys && candidate.key == key) {
        Some(same) if same.schemas.iter().any(|known| Arc::ptr_eq(known, schema)) => {}
        Some(same) => same.schemas = same.schemas.iter().chain([schema]).cloned().collect(),
        None => candidates.push(Candidate { key: key.to_vec(), redis_keys, schemas: Arc::from([Arc::clone(schema)]) }),
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::observation::Expiry;
    use crate::domain::samples::{self, any_key, catalog, text};
    use crate::domain::schema::State;

    /// What idemctl says of one value at one place, by schema and state.
    fn told(catalog: &Catalog, schema: &str, value: &[u8]) -> Vec<(String, State, Vec<&'static str>)> {
        let schema = catalog.all().iter().find(|known| known.name == schema).unwrap();
        let redis_keys = schema.redis_keys(b"k");
        let place = for_key(catalog, &redis_keys[0]).into_iter().find(|place| place.redis_keys == redis_keys);
        let seen = samples::seen(schema, &[(text(value), Expiry::In(1_000))]);
        let place = place.expect("a place to look at");
        let told = |record: Record| {
            (record.schema.name.clone(), record.state, record.findings.iter().map(|finding| finding.code).collect())
        };
        let found = records(catalog, &place, &seen, &Thresholds::default());
        let first = first_record(catalog, place, seen, &Thresholds::default());
        assert_eq!(format!("{first:?}"), format!("{:?}", found.first()));
        found.into_iter().map(told).collect()
    }

    fn is(name: &str, state: State, findings: &[&'static str]) -> (String, State, Vec<&'static str>) {
        (name.to_owned(), state, findings.to_vec())
    }

    #[test]
    fn an_idempotency_key_is_looked_for_under_every_schema() {
        let places = for_key(&catalog(&[], None), b"k");
        let keys: Vec<_> = places.iter().map(|place| place.redis_keys.concat()).collect();
        assert_eq!(
            keys,
            [
                &b"idem:lock:kidem:done:k"[..],
                b"idem:started:kidem:result:k",
                b"idem:k",
                b"k",
                b"idempotency:k",
                b"idemkey:k"
            ]
        );
        assert_eq!(places[4].schemas.len(), 2, "two releases share their Redis keys");
    }

    #[test]
    fn a_redis_key_names_its_own_record_first() {
        let places = for_key(&catalog(&[], None), b"idem:done:k");
        assert_eq!((&places[0].key[..], places[0].schemas[0].name.as_str()), (&b"k"[..], "event-consumer"));
        assert!(places.iter().all(|place| place.schemas[0].name != "express" || place.key == b"idem:done:k"));
    }

    #[test]
    fn a_named_schema_may_look_at_what_another_owns() {
        let places = for_key(&catalog(&["express"], None), b"lock:k");
        assert_eq!(places.iter().map(|place| place.redis_keys.concat()).collect::<Vec<_>>(), [b"idem:lock:k"]);
    }

    #[test]
    fn what_nobody_reads_is_the_newest_releases() {
        let catalog = catalog(&[], None);
        assert_eq!(told(&catalog, "go-middleware", b"?"), [is("go-middleware", State::Unreadable, &["unreadable"])]);
    }

    #[test]
    fn each_releases_value_is_that_releases() {
        let all = catalog(&[], None);
        let older = is("go-middleware-v1", State::InProgress, &["foreign-schema"]);
        assert_eq!(told(&all, "go-middleware", b"in-progress"), [older]);
        let pending = br#"{"status":"PENDING"}"#;
        assert_eq!(told(&all, "go-middleware", pending), [is("go-middleware", State::InProgress, &[])]);
        let newer = catalog(&["go-middleware"], None);
        let foreign = is("go-middleware", State::Unreadable, &["foreign-schema"]);
        assert_eq!(told(&newer, "go-middleware", b"in-progress"), [foreign]);
        let older = catalog(&["go-middleware-v1"], None);
        let known = is("go-middleware-v1", State::InProgress, &[]);
        assert_eq!(told(&older, "go-middleware-v1", b"in-progress"), [known]);
    }

    #[test]
    fn nothing_there_is_no_record() {
        let catalog = catalog(&["express"], None);
        let place = for_key(&catalog, b"k").remove(0);
        let seen = samples::seen(&place.schemas[0], &[(Content::Absent, Expiry::In(0))]);
        assert_eq!(records(&catalog, &place, &seen, &Thresholds::default()).len(), 0);
    }

    proptest! {
        #[test]
        fn without_a_prefix_only_what_can_be_read_is_claimed(value in prop::collection::vec(any::<u8>(), 0..30)) {
            let bare = told(&catalog(&["go-chi"], None), "go-chi", &value);
            prop_assert!(bare.iter().all(|(_, state, _)| matches!(state, State::InProgress | State::Completed)));
            let prefixed = told(&catalog(&[], Some("pay:")), "go-chi", &value);
            prop_assert_eq!(prefixed.len(), 1);
        }

        #[test]
        fn what_a_scan_finds_is_what_its_redis_key_names(
            redis_key in any_key(),
            prefix in prop::option::of(Just("pay:")),
            named in prop::option::of(prop::sample::select(vec!["express", "event-driven", "go-chi", "go-middleware-v1"])),
        ) {
            let catalog = catalog(named.as_slice(), prefix);
            if let Some((found, slot)) = for_redis_key(&catalog, &redis_key) {
                prop_assert_eq!(&found.redis_keys[slot], &redis_key);
                let places = for_key(&catalog, &redis_key);
                let same = places.iter().find(|place| place.redis_keys == found.redis_keys && place.key == found.key);
                let scanned = catalog.scanned().iter().any(|schema| schema.name == found.schemas[0].name);
                prop_assert!(same.is_some() || !scanned, "{}", redis_key.escape_ascii());
            }
        }

        #[test]
        fn places_are_distinct_and_each_is_owned(key in any_key()) {
            let catalog = catalog(&[], None);
            let places = for_key(&catalog, &key);
            for (index, place) in places.iter().enumerate() {
                prop_assert!(places[..index].iter().all(|other| other.redis_keys != place.redis_keys));
                for redis_key in &place.redis_keys {
                    prop_assert!(catalog.owners(redis_key).any(|(owner, _)| owner.name == place.schemas[0].name));
                }
            }
        }
    }
}
