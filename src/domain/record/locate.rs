//! Where a record may be: the Redis keys to read for an idempotency key, and whose record they turn out to be.

use std::sync::Arc;

use super::claim::Claim;
use super::decode::{self, ClosedValue, Reading};
use super::extended::Extended;
use super::name::{Name, Readings};
use super::observation::{Content, Observation, SeenKey};
use super::record::Record;
use crate::domain::diagnosis::{self, Finding, FindingCode, Foreign, Thresholds};
use crate::domain::schema::{Catalog, Schema, State};

/// One place to look at: an idempotency key, its Redis keys, and the schemas that keep it there.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub(crate) key: Vec<u8>,
    /// The Redis keys, the lock's first.
    pub redis_keys: Vec<Vec<u8>>,
    /// The chosen schemas with exactly these Redis keys.
    pub schemas: Arc<[Arc<Schema>]>,
    /// False where a Redis key is another schema's, and these would read it all the same.
    pub(crate) is_owned: bool,
}

impl Candidate {
    /// Bytes of its values that tell what they are, under whichever of its schemas.
    pub(crate) fn head_bytes(&self) -> usize {
        self.schemas.iter().map(|schema| schema.head_bytes()).max().unwrap_or(0)
    }

    /// True when one of its schemas keeps what is no string there: plain commands do not read such a value in part.
    pub(crate) fn keeps_collections(&self) -> bool {
        self.schemas.iter().any(|schema| schema.keeps_collections())
    }

    /// True when a value of one of its schemas may tell how old it is, or when it ends.
    pub(crate) fn tells_time(&self) -> bool {
        self.schemas.iter().any(|schema| schema.tells_time())
    }

    /// True when one of its schemas keeps a hash there.
    pub(crate) fn keeps_hashes(&self) -> bool {
        let mut cases = self.schemas.iter().flat_map(|schema| &schema.values);
        cases.any(|case| case.encoding().other_type() == Some("hash"))
    }
}

impl From<Record> for Candidate {
    /// Where a record was found, to look at it again.
    fn from(record: Record) -> Self {
        let redis_keys = record.seen.keys.into_iter().map(|key| key.redis_key).collect();
        Self { key: record.key, redis_keys, schemas: Arc::from([record.schema]), is_owned: true }
    }
}

/// Every place where `text`, an idempotency key or a full Redis key, may name a record of the chosen schemas.
///
/// Unless the operator named schemas, a Redis key that fits several templates is left to the most specific one.
pub fn for_key(catalog: &Catalog, text: &[u8]) -> Vec<Candidate> {
    places(catalog, text, true)
}

/// The place of the record that a name means, whatever other schema's Redis keys those are: the name says whose they are.
pub(crate) fn for_name(catalog: &Catalog, name: &Name) -> Option<Candidate> {
    let schema = catalog
        .places()
        .iter()
        .find(|schema| name.is_under(schema) && schema.takes_key(&name.key))?;
    let (redis_keys, schemas) = (schema.redis_keys(&name.key), Arc::from([Arc::clone(schema)]));
    Some(Candidate { key: name.key.clone(), redis_keys, schemas, is_owned: true })
}

/// Every place where what an operator gave may name a record, the one that it names as a name first.
pub(crate) fn for_readings(catalog: &Catalog, readings: &Readings) -> Vec<Candidate> {
    let mut candidates: Vec<_> =
        readings.name.iter().filter_map(|name| for_name(catalog, name)).collect();
    for candidate in readings.keys.iter().flat_map(|key| for_key(catalog, key)) {
        let is_known = |known: &Candidate| {
            known.redis_keys == candidate.redis_keys && known.key == candidate.key
        };
        if !candidates.iter().any(is_known) {
            candidates.push(candidate);
        }
    }
    candidates
}

/// The places that [`for_key`] leaves to a schema with a more specific template: what a less specific schema would read
/// there.
pub(crate) fn of_others(catalog: &Catalog, text: &[u8]) -> Vec<Candidate> {
    places(catalog, text, false)
}

fn places(catalog: &Catalog, text: &[u8], is_owned: bool) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = Vec::new();
    for schema in catalog.places() {
        let full = schema.role_of(text).map(|(_, key)| key);
        for key in full.into_iter().chain([text]).filter(|key| schema.takes_key(key)) {
            let redis_keys = schema.redis_keys(key);
            if (catalog.is_named() || owns_all(catalog, schema, &redis_keys)) == is_owned {
                add(&mut candidates, schema, key, redis_keys, is_owned);
            }
        }
    }
    candidates
}

pub(crate) fn redis_key_itself(redis_key: &[u8]) -> Candidate {
    let redis_keys = vec![redis_key.to_vec()];
    Candidate { key: redis_key.to_vec(), redis_keys, schemas: Arc::from([]), is_owned: false }
}

/// The places where a lock of another schema may be at one of these Redis keys, with its role there: the schema's template is
/// less specific than that of the Redis key's owner, and its locks are told by their bytes. No place of them is owned.
fn locks_beneath<'a>(
    catalog: &Catalog,
    redis_keys: impl Iterator<Item = &'a [u8]>,
) -> Vec<(Candidate, usize)> {
    let mut places = Vec::new();
    for redis_key in redis_keys {
        for (schema, role) in catalog.locks_beneath(redis_key) {
            if let Some(key) = schema.keys[role].template.key_in(redis_key) {
                let (redis_keys, schemas) =
                    (schema.redis_keys(key), Arc::from([Arc::clone(schema)]));
                places.push((
                    Candidate { key: key.to_vec(), redis_keys, schemas, is_owned: false },
                    role,
                ));
            }
        }
    }
    places
}

/// The places where a lock of another schema may be at one of a candidate's Redis keys.
pub(crate) fn places_beneath(catalog: &Catalog, candidate: &Candidate) -> Vec<Candidate> {
    let beneath = locks_beneath(catalog, candidate.redis_keys.iter().map(Vec::as_slice));
    beneath.into_iter().map(|(place, _)| place).collect()
}

/// True if a candidate that is not owned may hold a lock that its schema tells by its bytes.
pub(crate) fn may_be_lock_beneath(catalog: &Catalog, candidate: &Candidate) -> bool {
    let beneath = places_beneath(catalog, candidate);
    let is_chosen = |place: &Candidate| {
        candidate.schemas.iter().any(|schema| place.schemas.iter().any(|of| of.name == schema.name))
    };
    !candidate.is_owned && beneath.iter().any(is_chosen)
}

/// The place of the lock that a record's value is, if another schema reads the value as a lock and a scan looks for that
/// schema's records.
pub(crate) fn place_of_lock(catalog: &Catalog, record: &Record) -> Option<Candidate> {
    let Claim::LockOf(other) = &record.claim else { return None };
    let present = record.seen.keys.iter().filter(|seen| seen.content != Content::Absent);
    let beneath = locks_beneath(catalog, present.map(|seen| seen.redis_key.as_slice()));
    beneath
        .into_iter()
        .map(|(place, _)| place)
        .find(|place| place.schemas.iter().any(|of| of.name == *other))
}

/// True if the unread part of a record's values decides whether a closed form of its schema reads them as a lock.
pub(crate) fn may_be_closed_lock(record: &Record) -> bool {
    let is_open = |(role, seen): (usize, &SeenKey)| {
        let value = decode::closed_value(&record.schema, role, &seen.content, State::InProgress);
        value == ClosedValue::Undecided
    };
    record.seen.keys.iter().enumerate().any(is_open)
}

/// True if the unread part of a result decides whether it is another schema's lock.
pub(crate) fn may_be_lock_of_another(catalog: &Catalog, record: &Record) -> bool {
    open_results(record)
        .any(|seen| catalog.may_be_lock_of_another(&record.schema, &seen.redis_key, &seen.content))
}

/// True if `wanted` lets the idempotency key of a candidate through, or that of a lock which may be at the same Redis key.
pub(crate) fn is_wanted(
    catalog: &Catalog,
    candidate: &Candidate,
    wanted: impl Fn(&[u8]) -> bool,
) -> bool {
    wanted(&candidate.key)
        || places_beneath(catalog, candidate).iter().any(|place| wanted(&place.key))
}

/// The place a Redis key found by a scan belongs to, with the Redis key's role there; `None` for a stranger's key. The key of
/// a schema that the scan does not look for may hold the lock of one that it does: such a place is not owned.
pub fn for_redis_key(catalog: &Catalog, redis_key: &[u8]) -> Option<(Candidate, usize)> {
    let mut owners = catalog.scanned_owners(redis_key);
    let Some(first) = owners.next() else {
        return locks_beneath(catalog, [redis_key].into_iter()).into_iter().next();
    };
    let key = first.schema.keys[first.role].template.key_in(redis_key)?.to_vec();
    let redis_keys = first.schema.redis_keys(&key);
    let is_alike =
        |schema: &Arc<Schema>| first.alike.iter().any(|alike| Arc::ptr_eq(alike, schema));
    // Templates that differ may still come to the same Redis keys.
    let others = owners
        .filter(|owner| !is_alike(&owner.schema) && owner.schema.redis_keys(&key) == redis_keys);
    let mut others = others.map(|owner| Arc::clone(&owner.schema)).peekable();
    let schemas = match others.peek() {
        None => Arc::clone(&first.alike),
        Some(_) => first.alike.iter().cloned().chain(others).collect(),
    };
    Some((Candidate { key, redis_keys, schemas, is_owned: true }, first.role))
}

/// The records at a candidate's Redis keys: one for each of its schemas that claims the value; when none does, one for
/// each that reads it; when none does, the one whose literal prefix it bears (the newest release), or that the operator
/// named; none when nothing is there or it is a stranger's.
pub fn records(
    catalog: &Catalog,
    candidate: &Candidate,
    seen: &Observation,
    thresholds: &Thresholds,
) -> Vec<Record> {
    records_in(catalog, candidate, seen.clone(), thresholds)
}

/// The records of [`records`], without a copy of what was seen: a value may be large.
pub(crate) fn records_in(
    catalog: &Catalog,
    candidate: &Candidate,
    seen: Observation,
    thresholds: &Thresholds,
) -> Vec<Record> {
    if seen.is_absent() {
        return Vec::new();
    }
    let mut read: Vec<_> =
        candidate.schemas.iter().map(|schema| (schema, readings(schema, &seen))).collect();
    if read.iter().any(|(_, readings)| is_own(readings)) {
        read.retain(|(_, readings)| is_own(readings));
    } else if read.iter().any(|(_, readings)| is_readable(readings)) {
        read.retain(|(_, readings)| is_readable(readings));
    } else {
        // Without a literal prefix a Redis key is anybody's, unless the operator says whose.
        let is_theirs = |schema: &Schema| catalog.takes_bare() || schema.has_prefix();
        let prefixed = || read.iter().enumerate().filter(|(_, (schema, _))| is_theirs(schema));
        let newest = prefixed()
            .find(|(_, (schema, _))| schema.older_release_of.is_none())
            .or_else(|| prefixed().next());
        read = newest
            .map(|(index, _)| index)
            .map(|index| read.swap_remove(index))
            .into_iter()
            .collect();
    }
    let record = |schema, readings, seen| {
        record(catalog, schema, readings, candidate.key.clone(), seen, thresholds)
    };
    let last = read.pop();
    let mut records: Vec<_> =
        read.into_iter().map(|(schema, readings)| record(schema, readings, seen.clone())).collect();
    records.extend(last.map(|(schema, readings)| record(schema, readings, seen)));
    records
}

/// The record at a candidate's Redis keys under its first schema, whatever is there; the absent one, too.
pub(crate) fn record_at(
    catalog: &Catalog,
    candidate: &Candidate,
    seen: Observation,
    thresholds: &Thresholds,
) -> Option<Record> {
    let schema = candidate.schemas.first()?;
    Some(record(catalog, schema, readings(schema, &seen), candidate.key.clone(), seen, thresholds))
}

/// The record of a schema and an idempotency key that are known, without findings.
pub(crate) fn read_as(schema: &Arc<Schema>, key: &[u8], seen: Observation) -> Record {
    Record::new(Arc::clone(schema), key.to_vec(), seen.clone(), readings(schema, &seen))
}

/// The first of [`records`]: the value is read for no further schema. A schema that needs more of the value to tell counts
/// as a reader of the value.
pub(crate) fn first_record(
    catalog: &Catalog,
    candidate: Candidate,
    seen: Observation,
    thresholds: &Thresholds,
) -> Option<Record> {
    // One that may yet turn out to be a schema's own is no other's.
    let may_read = |read: &[Reading]| is_own(read) || read.contains(&Reading::Undecided);
    let reads = |schema: &Arc<Schema>| {
        Some((Arc::clone(schema), readings(schema, &seen))).filter(|(_, read)| may_read(read))
    };
    match candidate.schemas.iter().find_map(reads) {
        Some((schema, readings)) if !seen.is_absent() => {
            Some(record(catalog, &schema, readings, candidate.key, seen, thresholds))
        }
        _ => records(catalog, &candidate, &seen, thresholds).into_iter().next(),
    }
}

/// True when what was not read of a value decides what the record is, to any of the candidate's schemas, or what a script
/// takes it for.
pub(crate) fn is_undecided(candidate: &Candidate, seen: &Observation) -> bool {
    let is_open = |reading: &Reading| {
        matches!(reading, Reading::Undecided | Reading::Foreign { is_part: true, .. })
    };
    candidate.schemas.iter().any(|schema| readings(schema, seen).iter().any(is_open))
}

fn record(
    catalog: &Catalog,
    schema: &Arc<Schema>,
    readings: Vec<Reading>,
    key: Vec<u8>,
    seen: Observation,
    thresholds: &Thresholds,
) -> Record {
    let foreign = foreign(catalog, schema, &readings, &seen);
    let mut record = Record::new(Arc::clone(schema), key, seen, readings);
    record.claim = claim(catalog, &record, foreign.as_ref()).unwrap_or(record.claim);
    record.findings = diagnosis::findings(&record, thresholds, foreign.as_ref());
    forgive_extended(&mut record, catalog.extended());
    record
}

/// A lock that an operator gave more time is not in excess.
fn forgive_extended(record: &mut Record, extended: &Extended) {
    let is_excess = |finding: &Finding| finding.code == FindingCode::ExcessTtl;
    if record.findings.iter().any(is_excess) && record.lock().is_some_and(|lock| extended.has(lock))
    {
        record.is_extended = true;
        record.findings.retain(|finding| !is_excess(finding));
    }
}

fn owns_all(catalog: &Catalog, schema: &Schema, redis_keys: &[Vec<u8>]) -> bool {
    redis_keys
        .iter()
        .all(|redis_key| catalog.owners(redis_key).any(|(owner, _)| owner.name == schema.name))
}

fn add(
    candidates: &mut Vec<Candidate>,
    schema: &Arc<Schema>,
    key: &[u8],
    redis_keys: Vec<Vec<u8>>,
    is_owned: bool,
) {
    match candidates
        .iter_mut()
        .find(|candidate| candidate.redis_keys == redis_keys && candidate.key == key)
    {
        Some(same) if same.schemas.iter().any(|known| Arc::ptr_eq(known, schema)) => {}
        Some(same) => same.schemas = same.schemas.iter().chain([schema]).cloned().collect(),
        None => {
            let schemas = Arc::from([Arc::clone(schema)]);
            candidates.push(Candidate { key: key.to_vec(), redis_keys, schemas, is_owned });
        }
    }
}

fn readings(schema: &Schema, seen: &Observation) -> Vec<Reading> {
    decode::read_all(schema, seen)
}

/// What the other schemas say of whose a record is.
fn claim(catalog: &Catalog, record: &Record, foreign: Option<&Foreign>) -> Option<Claim> {
    let is_lock = |reading: &Reading| match reading.decoded() {
        Some(value) => !record.schema.values[value.case].is_closed() || value.form.is_foreign(),
        None => reading.unread().is_some(),
    };
    let role = record.schema.lock_role();
    if let Some(lock) = record.lock().filter(|_| is_lock(&record.readings[role]))
        && let Some(other) =
            catalog.result_of_another(&record.schema, &lock.redis_key, &lock.content)
    {
        return Some(Claim::ResultOf(other.name.clone()));
    }
    if let Some(why) = of_another_record(catalog, record) {
        return Some(Claim::Foreign(why));
    }
    if let Some(other) = lock_of_another(catalog, record) {
        return Some(Claim::LockOf(other.name.clone()));
    }
    // What another schema wrote at Redis keys that both bear is no stranger's: a finding names that schema.
    let is_neighbours =
        record.claim.is_foreign() && record.schema.has_prefix() && foreign.is_some();
    is_neighbours.then_some(Claim::Own)
}

/// The other schema that reads a result of this record as a lock, if nothing but the Redis key says that it is a result.
fn lock_of_another<'a>(catalog: &'a Catalog, record: &Record) -> Option<&'a Arc<Schema>> {
    open_results(record)
        .find_map(|seen| catalog.lock_of_another(&record.schema, &seen.redis_key, &seen.content))
}

/// The Redis keys of a record whose values are results for no other reason than the names of the Redis keys.
fn open_results(record: &Record) -> impl Iterator<Item = &SeenKey> {
    let keys = record.seen.keys.iter().zip(&record.readings);
    let is_open_result = |reading: &Reading| {
        reading.decoded().is_some_and(|value| {
            let case = &record.schema.values[value.case];
            case.state == State::Completed && !case.is_closed()
        })
    };
    keys.filter(move |(_, reading)| is_open_result(reading)).map(|(seen, _)| seen)
}

/// Why a value of this record belongs to another record: a template with more literal bytes claims its Redis key. As in
/// [`for_key`], the most specific template wins; a client chose a key that makes two records share a Redis key.
fn of_another_record(catalog: &Catalog, record: &Record) -> Option<String> {
    if record.schema.keys.len() < 2 {
        return None;
    }
    let is_there = |seen: &&SeenKey| seen.content != Content::Absent;
    let count = record.seen.keys.iter().filter(is_there).count();
    for (role, seen) in record.seen.keys.iter().enumerate().filter(|(_, seen)| is_there(seen)) {
        let own = record.schema.role_of(&seen.redis_key);
        let is_of_schema = own.is_none_or(|(of, key)| of == role && key == record.key);
        // A record with one Redis key was found by that key, so that the schema owns it.
        let is_of_catalog = count < 2 || catalog.is_named() || {
            { catalog.owners(&seen.redis_key) }.any(|(owner, _)| owner.name == record.schema.name)
        };
        if !is_of_schema || !is_of_catalog {
            return Some(
                "one of its Redis keys belongs to another record, whose key template is more specific".to_owned(),
            );
        }
    }
    None
}

fn is_own(readings: &[Reading]) -> bool {
    readings.iter().all(Reading::is_own)
}

fn is_readable(readings: &[Reading]) -> bool {
    readings.iter().all(|reading| matches!(reading, Reading::Absent | Reading::Value(_)))
}

/// The other schema whose value this is: one that reads what this schema cannot, or the newer release that cannot
/// read what this one wrote (unless the operator named the older one, and so knows).
fn foreign(
    catalog: &Catalog,
    schema: &Schema,
    readings: &[Reading],
    seen: &Observation,
) -> Option<Foreign> {
    if let Some(role) = readings.iter().position(|reading| reading.unread().is_some()) {
        let seen = &seen.keys[role];
        let writer = catalog.all().iter().find(|other| {
            other.name != schema.name && reads_there(other, &seen.redis_key, &seen.content)
        })?;
        return Some(Foreign::WrittenBy(writer.name.clone()));
    }
    let newer = schema.older_release_of.as_deref().filter(|_| !catalog.is_named())?;
    let newer = catalog.all().iter().find(|other| other.name == newer)?;
    let unread = seen.keys.iter().any(|key| {
        key.content != Content::Absent
            && has_template(newer, &key.redis_key).is_some()
            && !reads_there(newer, &key.redis_key, &key.content)
    });
    unread.then(|| Foreign::OlderReleaseOf(newer.name.clone()))
}

fn has_template(schema: &Schema, redis_key: &[u8]) -> Option<usize> {
    schema.keys.iter().position(|key| key.template.idempotency_key(redis_key).is_some())
}

fn reads_there(schema: &Schema, redis_key: &[u8], content: &Content) -> bool {
    has_template(schema, redis_key).is_some_and(|role| decode::read(schema, role, content).is_own())
}

#[cfg(test)]
mod tests;
