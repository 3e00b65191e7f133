//! Where a record may be: the Redis keys to read for an idempotency key, and whose record they turn
//! out to hold.

use std::sync::Arc;

use super::author::Author;
use super::decode::{self, DistinctiveValue, Reading};
use super::extended::Extended;
use super::name::{KeyMeanings, RecordName};
use super::observation::{Content, Observation, TimeLeft};
use super::record::Record;
use crate::domain::diagnosis::{self, OtherSchema, Thresholds};
use crate::domain::schema::{Catalog, Schema, State};

/// Redis keys that may hold a record: those of an idempotency key, with the schemas that keep it
/// there.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The idempotency key.
    pub(crate) key: Vec<u8>,
    /// The Redis keys, the lock's first.
    pub redis_keys: Vec<Vec<u8>>,
    /// The chosen schemas with exactly these Redis keys.
    pub schemas: Arc<[Arc<Schema>]>,
    /// True if the Redis keys count for these schemas: their template is the most specific, the
    /// operator named the schema, or a record of it was found there. Otherwise the keys belong to a
    /// schema with a more specific template, although these schemas can read them.
    pub(crate) is_most_specific: bool,
}

impl Candidate {
    /// The candidate of one schema and idempotency key.
    fn of(schema: &Arc<Schema>, key: &[u8], is_most_specific: bool) -> Self {
        Self {
            key: key.to_vec(),
            redis_keys: schema.redis_keys(key),
            schemas: Arc::from([Arc::clone(schema)]),
            is_most_specific,
        }
    }

    /// The bytes at the beginning of a value that decide its format under any of its schemas.
    pub(crate) fn head_bytes(&self) -> usize {
        self.schemas.iter().map(|schema| schema.head_bytes()).max().unwrap_or(0)
    }

    /// True if plain commands cannot read it well enough. They cannot read part of a hash, and do
    /// not return the server's time, without which a deadline cannot be compared with a logged one.
    pub(crate) fn needs_script(&self, extended: &Extended) -> bool {
        self.keeps_collections()
            || self.may_contain_time()
            || self.redis_keys.iter().any(|redis_key| extended.names(redis_key))
    }

    /// True if one of its schemas stores a type other than strings there. Plain commands do not
    /// read such a value in part.
    pub(crate) fn keeps_collections(&self) -> bool {
        self.schemas.iter().any(|schema| schema.keeps_collections())
    }

    /// True if a value of one of its schemas may contain a time.
    pub(crate) fn may_contain_time(&self) -> bool {
        self.schemas.iter().any(|schema| schema.may_contain_time())
    }

    /// True if one of its schemas stores a hash there.
    pub(crate) fn keeps_hashes(&self) -> bool {
        for schema in self.schemas.iter() {
            for format in &schema.values {
                if format.encoding().other_type() == Some("hash") {
                    return true;
                }
            }
        }
        false
    }
}

impl From<Record> for Candidate {
    /// Where a record was found, to read it again.
    fn from(record: Record) -> Self {
        Self {
            redis_keys: record.redis_keys(),
            key: record.key,
            schemas: Arc::from([record.schema]),
            is_most_specific: true,
        }
    }
}

/// The candidates that `text`, an idempotency key or a full Redis key, may name among the
/// chosen schemas.
///
/// Unless the command line or the context names schemas, a Redis key that fits several templates is
/// left to the most specific one.
pub fn for_key(catalog: &Catalog, text: &[u8]) -> Vec<Candidate> {
    candidates_for_text(catalog, text, true)
}

/// The candidate that a record's name means, even if its Redis keys also match another schema. The
/// name itself gives the schema.
pub(crate) fn for_name(catalog: &Catalog, name: &RecordName) -> Option<Candidate> {
    for schema in catalog.by_name() {
        if name.is_under(schema) && schema.accepts_key(&name.key) {
            return Some(Candidate::of(schema, &name.key, true));
        }
    }
    None
}

/// Every candidate for the operator's text, with the one that it means as a record name first.
pub(crate) fn for_meanings(catalog: &Catalog, meanings: &KeyMeanings) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = Vec::new();
    if let Some(name) = &meanings.name {
        candidates.extend(for_name(catalog, name));
    }
    for key in &meanings.keys {
        for candidate in for_key(catalog, key) {
            // A text may mean the same record as a name and as a Redis key.
            let is_known = candidates.iter().any(|known| {
                known.redis_keys == candidate.redis_keys && known.key == candidate.key
            });
            if !is_known {
                candidates.push(candidate);
            }
        }
    }
    candidates
}

/// The candidates that [`for_key`] leaves to a schema with a more specific template.
pub(crate) fn of_less_specific_schemas(catalog: &Catalog, text: &[u8]) -> Vec<Candidate> {
    candidates_for_text(catalog, text, false)
}

fn candidates_for_text(catalog: &Catalog, text: &[u8], is_most_specific: bool) -> Vec<Candidate> {
    let mut candidates: Vec<Candidate> = Vec::new();
    for schema in catalog.chosen_under_each_prefix() {
        let key_in_redis_key = schema.key_index_of(text).map(|(_, key)| key);
        // The text may be a full Redis key, an idempotency key, or both.
        for key in [key_in_redis_key, Some(text)].into_iter().flatten() {
            if !schema.accepts_key(key) {
                continue;
            }
            let candidate = Candidate::of(schema, key, is_most_specific);
            // If schemas are named, here or in the context, the most specific template need not
            // win.
            let wins = catalog.names_schemas()
                || is_most_specific_of_all(catalog, schema, &candidate.redis_keys);
            if wins == is_most_specific {
                add(&mut candidates, candidate, schema);
            }
        }
    }
    candidates
}

pub(crate) fn redis_key_itself(redis_key: &[u8]) -> Candidate {
    Candidate {
        key: redis_key.to_vec(),
        redis_keys: vec![redis_key.to_vec()],
        schemas: Arc::from([]),
        is_most_specific: false,
    }
}

/// The candidates for records of less specific schemas at a Redis key, each with the key's index
/// there. The template of such a schema is less specific than that of the key's own schema, and its
/// records are recognised by their bytes. None of these candidates is the most specific.
fn records_of_less_specific_schemas(
    catalog: &Catalog,
    redis_key: &[u8],
) -> Vec<(Candidate, usize)> {
    let mut candidates = Vec::new();
    for (schema, key_index) in catalog.records_of_less_specific_schemas(redis_key) {
        if let Some(key) = schema.keys[key_index].template.key_in(redis_key) {
            candidates.push((Candidate::of(schema, key, false), key_index));
        }
    }
    candidates
}

/// The candidates for records of less specific schemas at a candidate's Redis keys.
pub(crate) fn candidates_of_less_specific_schemas(
    catalog: &Catalog,
    candidate: &Candidate,
) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for redis_key in &candidate.redis_keys {
        for (less_specific, _) in records_of_less_specific_schemas(catalog, redis_key) {
            candidates.push(less_specific);
        }
    }
    candidates
}

/// True if a candidate that is not the most specific may hold a record that its schema recognises by
/// its bytes.
pub(crate) fn may_be_of_less_specific_schema(catalog: &Catalog, candidate: &Candidate) -> bool {
    if candidate.is_most_specific {
        return false;
    }
    for less_specific in candidates_of_less_specific_schemas(catalog, candidate) {
        for schema_of_lock in less_specific.schemas.iter() {
            if candidate.schemas.iter().any(|schema| schema.name == schema_of_lock.name) {
                return true;
            }
        }
    }
    false
}

/// The candidate of the record in another one's value, if a less specific schema reads the value as
/// its own and a scan looks for that schema's records.
pub(crate) fn candidate_of_other(catalog: &Catalog, record: &Record) -> Option<Candidate> {
    let (Author::LockOf(other) | Author::ResultOf(other)) = &record.author else { return None };
    for seen in &record.seen.keys {
        if seen.content.is_absent() {
            continue;
        }
        for (less_specific, _) in records_of_less_specific_schemas(catalog, &seen.redis_key) {
            if less_specific.schemas.iter().any(|schema| schema.name == *other) {
                return Some(less_specific);
            }
        }
    }
    None
}

/// True if the unread rest of a record's values decides whether they have a distinctive format of
/// its schema.
pub(crate) fn may_be_distinctive(record: &Record) -> bool {
    for (key_index, key) in record.seen.keys.iter().enumerate() {
        for state in [State::InProgress, State::Completed, State::Failed] {
            let is_distinctive =
                decode::distinctive_value(&record.schema, key_index, &key.content, state);
            if is_distinctive == DistinctiveValue::Undecided {
                return true;
            }
        }
    }
    false
}

/// True if a record at the Redis keys of a more specific schema is its own schema's: its bytes
/// identify it as a lock, or as a result where the name of the Redis key alone makes no result.
pub(crate) fn is_of_less_specific_schema(catalog: &Catalog, record: &Record) -> bool {
    if record.is_distinctive_lock() {
        return true;
    }
    let mut present = record.seen.keys.iter().filter(|key| !key.content.is_absent());
    record.is_distinctive_result()
        && !present.any(|key| catalog.is_result_by_key_name(&key.redis_key))
}

/// True if the unread rest of a result decides whether it is another schema's lock.
pub(crate) fn may_be_lock_of_another(catalog: &Catalog, record: &Record) -> bool {
    for (key, reading) in record.seen.keys.iter().zip(&record.readings) {
        if is_result_by_key_name(&record.schema, reading)
            && catalog.may_be_lock_of_another(&record.schema, &key.redis_key, &key.content)
        {
            return true;
        }
    }
    false
}

/// True if `wanted` accepts the idempotency key of a candidate, or that of a lock which may be at
/// the same Redis key.
pub(crate) fn is_wanted(
    catalog: &Catalog,
    candidate: &Candidate,
    wanted: &dyn Fn(&[u8]) -> bool,
) -> bool {
    wanted(&candidate.key)
        || candidates_of_less_specific_schemas(catalog, candidate)
            .iter()
            .any(|less_specific| wanted(&less_specific.key))
}

/// The candidate of a Redis key that a scan found, with the key's index there; `None` for an
/// unclaimed key. The key of a schema that the scan does not look for may hold the lock of a schema
/// that it does look for. Such a candidate is not the most specific.
pub fn for_redis_key(catalog: &Catalog, redis_key: &[u8]) -> Option<(Candidate, usize)> {
    let mut keys = catalog.scanned_keys(redis_key);
    let Some(first) = keys.next() else {
        return records_of_less_specific_schemas(catalog, redis_key).into_iter().next();
    };
    let key = first.schema.keys[first.key_index].template.key_in(redis_key)?.to_vec();
    let redis_keys = first.schema.redis_keys(&key);
    let mut others = Vec::new();
    for other in keys {
        let is_alike =
            first.with_same_templates.iter().any(|alike| Arc::ptr_eq(alike, &other.schema));
        // Different templates may still produce the same Redis keys.
        if !is_alike && other.schema.redis_keys(&key) == redis_keys {
            others.push(Arc::clone(&other.schema));
        }
    }
    // A scan calls this for every Redis key, so the usual list is shared and not copied.
    let schemas = if others.is_empty() {
        Arc::clone(&first.with_same_templates)
    } else {
        first.with_same_templates.iter().cloned().chain(others).collect()
    };
    Some((Candidate { key, redis_keys, schemas, is_most_specific: true }, first.key_index))
}

/// The records at a candidate's Redis keys. There is one for each of its schemas that wrote the
/// value, as far as its format shows, or, if none did, one for each that reads it. If none reads
/// it, the record counts for the schema whose fixed prefix it has (the newest release), or for the
/// one that is named. There is none if the keys are absent or unclaimed.
pub fn records(
    catalog: &Catalog,
    candidate: &Candidate,
    seen: Observation,
    thresholds: &Thresholds,
) -> Vec<Record> {
    let mut read: Vec<(&Arc<Schema>, Vec<Reading>)> = Vec::with_capacity(candidate.schemas.len());
    for schema in candidate.schemas.iter() {
        if seen.is_absent() {
            continue;
        }
        read.push((schema, decode::decode_all(schema, &seen)));
    }
    if read.iter().any(|(_, readings)| conforms_or_absent(readings)) {
        read.retain(|(_, readings)| conforms_or_absent(readings));
    } else if read.iter().any(|(_, readings)| is_readable(readings)) {
        read.retain(|(_, readings)| is_readable(readings));
    } else {
        match schema_of_unreadable(catalog, &read) {
            Some(index) => read = vec![read.swap_remove(index)],
            None => return Vec::new(),
        }
    }

    // The last record takes the observation, because a copy of a large value would cost memory.
    let last = read.pop();
    let mut records = Vec::with_capacity(read.len() + 1);
    for (schema, readings) in read {
        let key = candidate.key.clone();
        records.push(record(catalog, schema, readings, key, seen.clone(), thresholds));
    }
    if let Some((schema, readings)) = last {
        records.push(record(catalog, schema, readings, candidate.key.clone(), seen, thresholds));
    }
    records
}

/// The schema that an unreadable value counts for: the newest release of those with a literal
/// prefix. Without a fixed prefix any program may have written the Redis key, unless the operator
/// named the schema.
fn schema_of_unreadable(catalog: &Catalog, read: &[(&Arc<Schema>, Vec<Reading>)]) -> Option<usize> {
    let mut older_release = None;
    for (index, (schema, _)) in read.iter().enumerate() {
        if !catalog.includes_unprefixed() && !schema.has_fixed_prefix() {
            continue;
        }
        if schema.older_release_of.is_none() {
            return Some(index);
        }
        older_release = older_release.or(Some(index));
    }
    older_release
}

/// The record at a candidate's Redis keys under its first schema, even if it is absent.
pub(crate) fn record_even_absent(
    catalog: &Catalog,
    candidate: &Candidate,
    seen: Observation,
    thresholds: &Thresholds,
) -> Option<Record> {
    let schema = candidate.schemas.first()?;
    let readings = decode::decode_all(schema, &seen);
    Some(record(catalog, schema, readings, candidate.key.clone(), seen, thresholds))
}

/// The record of a known schema and idempotency key, without findings.
pub(crate) fn undiagnosed_record(schema: &Arc<Schema>, key: &[u8], seen: Observation) -> Record {
    let readings = decode::decode_all(schema, &seen);
    Record::new(Arc::clone(schema), key.to_vec(), seen, readings)
}

/// The first of [`records`]. It reads the value for no further schema. A schema that needs more of
/// the value to decide counts as a reader of the value.
pub(crate) fn first_record(
    catalog: &Catalog,
    candidate: Candidate,
    seen: Observation,
    thresholds: &Thresholds,
) -> Option<Record> {
    for schema in candidate.schemas.iter() {
        if seen.is_absent() {
            continue;
        }
        let readings = decode::decode_all(schema, &seen);
        // While the rest of a value may prove that it belongs to this schema, it counts for no
        // other.
        if conforms_or_absent(&readings) || readings.contains(&Reading::Undecided) {
            return Some(record(catalog, schema, readings, candidate.key, seen, thresholds));
        }
    }
    records(catalog, &candidate, seen, thresholds).into_iter().next()
}

/// True if the unread rest of a value decides what the record is to one of the candidate's schemas,
/// or how a script treats it.
pub(crate) fn is_undecided(candidate: &Candidate, seen: &Observation) -> bool {
    for schema in candidate.schemas.iter() {
        if decode::decode_all(schema, seen).iter().any(Reading::is_undecided) {
            return true;
        }
    }
    false
}

fn record(
    catalog: &Catalog,
    schema: &Arc<Schema>,
    readings: Vec<Reading>,
    key: Vec<u8>,
    seen: Observation,
    thresholds: &Thresholds,
) -> Record {
    let other_schema = other_schema(catalog, schema, &readings, &seen);
    let mut record = Record::new(Arc::clone(schema), key, seen, readings);
    if let Some(author) = corrected_author(catalog, &record, other_schema.as_ref()) {
        record.author = author;
    }
    note_extension(&mut record, &catalog.extended);
    record.findings = diagnosis::findings(&record, thresholds, other_schema.as_ref());
    // No command changes another schema's record under this schema's name.
    if matches!(record.author, Author::ResultOf(_) | Author::LockOf(_)) {
        for finding in &mut record.findings {
            finding.advice.clear();
        }
    }
    record
}

/// Notes that an operator gave the lock its expiry, which then does not show its age.
fn note_extension(record: &mut Record, extended: &Extended) {
    let Some(lock) = record.lock() else { return };
    if !matches!(lock.time_left, TimeLeft::Millis(_)) || !extended.has(lock) {
        return;
    }
    record.is_extended = true;
    let is_of_lock = record.state == State::InProgress;
    if is_of_lock && record.age.is_some_and(|age| !age.is_of_record()) {
        record.age = None;
    }
}

fn is_most_specific_of_all(catalog: &Catalog, schema: &Schema, redis_keys: &[Vec<u8>]) -> bool {
    for redis_key in redis_keys {
        if !catalog.schemas_of_key(redis_key).any(|(best, _)| best.name == schema.name) {
            return false;
        }
    }
    true
}

fn add(candidates: &mut Vec<Candidate>, candidate: Candidate, schema: &Arc<Schema>) {
    // Schemas with the same Redis keys share a candidate, so that the keys are read once.
    for same in candidates.iter_mut() {
        if same.redis_keys == candidate.redis_keys && same.key == candidate.key {
            if !same.schemas.iter().any(|known| Arc::ptr_eq(known, schema)) {
                same.schemas = same.schemas.iter().chain([schema]).cloned().collect();
            }
            return;
        }
    }
    candidates.push(candidate);
}

/// The author of a record if other schemas show that it is another one; `None` if it stays.
fn corrected_author(
    catalog: &Catalog,
    record: &Record,
    other_schema: Option<&OtherSchema>,
) -> Option<Author> {
    if let Some(lock) = record.lock() {
        let reading = &record.readings[record.schema.lock_key_index()];
        // If its bytes prove that it is a lock, it cannot be a result of another schema.
        let may_be_result = match reading.decoded() {
            Some(value) => {
                let format = &record.schema.values[value.format];
                !format.is_distinctive() || value.conformance.deviates()
            }
            None => reading.mismatch().is_some(),
        };
        if may_be_result {
            let other = catalog.result_of_another(&record.schema, &lock.redis_key, &lock.content);
            if let Some(other) = other {
                return Some(Author::ResultOf(other.name.clone()));
            }
        }
    }
    if let Some(why) = why_of_another_record(catalog, record) {
        return Some(Author::Unrecognised(why));
    }
    if let Some(other) = lock_of_another(catalog, record) {
        return Some(Author::LockOf(other.name.clone()));
    }
    // If another schema with the same Redis keys wrote the value, a finding names that schema.
    if record.author.is_foreign() && record.schema.has_fixed_prefix() && other_schema.is_some() {
        return Some(Author::NotForeign);
    }
    None
}

/// The other schema that reads a value of this record as a lock: any other if nothing but the Redis
/// key says that the value is a result, and one with a less specific template if this schema does
/// not write the value, or takes any bytes for its lock.
fn lock_of_another<'a>(catalog: &'a Catalog, record: &Record) -> Option<&'a Arc<Schema>> {
    for (key, reading) in record.seen.keys.iter().zip(&record.readings) {
        if is_result_by_key_name(&record.schema, reading) {
            let other = catalog.lock_of_another(&record.schema, &key.redis_key, &key.content);
            if other.is_some() {
                return other;
            }
        } else if reading.mismatch().is_some() || is_lock_by_key_name(&record.schema, reading) {
            for (other, index) in catalog.records_of_less_specific_schemas(&key.redis_key) {
                let is_lock =
                    decode::distinctive_value(other, index, &key.content, State::InProgress);
                if is_lock == DistinctiveValue::Yes {
                    return Some(other);
                }
            }
        }
    }
    None
}

/// True for a value that is a result only because of the name of its Redis key.
fn is_result_by_key_name(schema: &Schema, reading: &Reading) -> bool {
    let Some(value) = reading.decoded() else { return false };
    schema.values[value.format].is_result_by_key_name()
}

/// True for a value that is a lock only because of the name of its Redis key.
fn is_lock_by_key_name(schema: &Schema, reading: &Reading) -> bool {
    let Some(value) = reading.decoded() else { return false };
    let format = &schema.values[value.format];
    format.state == State::InProgress && !format.is_distinctive() && format.tests.is_empty()
}

/// Why a value of this record belongs to another record: a template with more literal bytes fits
/// its Redis key. As in [`for_key`], the most specific template wins. This happens if a client
/// chose a key that makes two records share a Redis key.
fn why_of_another_record(catalog: &Catalog, record: &Record) -> Option<String> {
    if record.schema.keys.len() < 2 {
        return None;
    }
    let present = record.seen.keys.iter().filter(|seen| !seen.content.is_absent()).count();
    for (key_index, seen) in record.seen.keys.iter().enumerate() {
        if seen.content.is_absent() {
            continue;
        }
        let is_of_record = match record.schema.key_index_of(&seen.redis_key) {
            Some((index, key)) => index == key_index && key == record.key,
            None => true,
        };
        // A record with one Redis key was found by that key, so that the schema owns it.
        let is_of_schema = present < 2
            || catalog.names_schemas()
            || catalog
                .schemas_of_key(&seen.redis_key)
                .any(|(best, _)| best.name == record.schema.name);
        if !is_of_record || !is_of_schema {
            let why = "one of its Redis keys belongs to another record, \
                whose key template is more specific";
            return Some(why.to_owned());
        }
    }
    None
}

fn conforms_or_absent(readings: &[Reading]) -> bool {
    readings.iter().all(Reading::conforms_or_absent)
}

fn is_readable(readings: &[Reading]) -> bool {
    readings.iter().all(|reading| matches!(reading, Reading::Absent | Reading::Value(_)))
}

/// The other schema to which this value belongs. It is one that reads a value which this schema
/// cannot read, or the newer release that cannot read a value of this one. The newer release does
/// not count if schemas are named.
fn other_schema(
    catalog: &Catalog,
    schema: &Schema,
    readings: &[Reading],
    seen: &Observation,
) -> Option<OtherSchema> {
    if let Some(key_index) = readings.iter().position(|reading| reading.mismatch().is_some()) {
        let key = &seen.keys[key_index];
        for other in catalog.all() {
            if other.name != schema.name && reads_there(other, &key.redis_key, &key.content) {
                return Some(OtherSchema::WrittenBy(other.name.clone()));
            }
        }
        return None;
    }
    // Whoever names schemas, on the command line or in the context, means older releases too.
    if catalog.names_schemas() {
        return None;
    }
    let newer = schema.older_release_of.as_deref()?;
    let newer = catalog.all().iter().find(|other| other.name == newer)?;
    for key in &seen.keys {
        if !key.content.is_absent()
            && template_index(newer, &key.redis_key).is_some()
            && !reads_there(newer, &key.redis_key, &key.content)
        {
            return Some(OtherSchema::OlderReleaseOf(newer.name.clone()));
        }
    }
    None
}

/// The index that a Redis key has in a schema, by its templates.
fn template_index(schema: &Schema, redis_key: &[u8]) -> Option<usize> {
    schema.keys.iter().position(|key| key.template.idempotency_key(redis_key).is_some())
}

fn reads_there(schema: &Schema, redis_key: &[u8], content: &Content) -> bool {
    let Some(key_index) = template_index(schema, redis_key) else { return false };
    decode::decode_value(schema, key_index, content).conforms_or_absent()
}

#[cfg(test)]
mod tests;
