//! Reads the values and keys of a sample of the records for the checks of data. The values are
//! dropped as soon as they were looked at.

use std::collections::HashSet;
use std::sync::Arc;

use fastrand::Rng;

use crate::domain::diagnosis::Thresholds;
use crate::domain::doctor::{DataCollector, DataSample, FactResult, MemberCounts, other_forms};
use crate::domain::record::locate::{for_redis_key, member, records};
use crate::domain::record::{Candidate, Content, Observation, Record};
use crate::domain::schema::{Catalog, Schema};
use crate::store::doctor::{is_fatal, refused_sample};
use crate::store::{
    Client, MemberKey, ReadLimit, ReadResult, RecordReader, SampledMember, Sampler, StoreError,
    look_up, which_exist,
};

/// The most Redis keys that `--sample` may name. If each value has [`FIRST`] bytes or more, fewer
/// keys already reach [`MAX_OF_RUN`].
pub(super) const MAX_SAMPLED: i64 = 10_000;

/// The most bytes of values that are asked for at a time, and of one record. As in a scan
/// (`MAX_SCANNED`), a server might evict keys for a larger reply.
const MAX_AT_A_TIME: usize = 1 << 20;

/// The most bytes of values that one run reads. If they consist of short texts, the search takes
/// about two seconds.
const MAX_OF_RUN: usize = 32 << 20;

/// The bytes of each value that are read first. Most values have fewer.
const FIRST: usize = 4 << 10;

/// The most fields of a hash that are read, as in `fields.lua`.
const MAX_FIELDS: usize = 256;

/// The bytes of a value by which most formats are recognised.
const HEAD: usize = 512;

/// How many members of a Redis key are asked for at a time, so few that other clients do not wait.
const MAX_MEMBERS: usize = 500;

/// The most keys that are looked for in other places. Each is looked for in its other forms and
/// under the templates of all other schemas.
const MAX_LOOKED_FOR: usize = 1_000;

/// The longest key that is looked for in other places. The keys of the whole sample are in memory
/// until then.
const LONGEST_KEY: usize = 1 << 10;

/// Samples this many Redis keys, unless the user may not read them.
///
/// # Errors
/// The server does not answer.
pub(super) async fn read(
    client: &Client,
    catalog: &Catalog,
    wanted: usize,
) -> Result<FactResult<DataSample>, StoreError> {
    let reading = DataReading {
        client,
        reader: client.reader(),
        catalog,
        collector: DataCollector::default(),
        read_bytes: 0,
        known: HashSet::new(),
        keys: Vec::new(),
    };
    match reading.sample(wanted).await {
        Ok(sample) => Ok(Ok(sample)),
        // The other checks need no keys.
        Err(error) if is_fatal(&error) => Err(error),
        Err(error) => Ok(Err(refused_sample(&error))),
    }
}

struct DataReading<'a> {
    client: &'a Client,
    reader: RecordReader,
    catalog: &'a Catalog,
    collector: DataCollector,
    read_bytes: usize,
    /// The first Redis key of each record, because a record with two may be sampled twice.
    known: HashSet<Vec<u8>>,
    /// The keys of the records, to look for each in other places.
    keys: Vec<(Arc<Schema>, Vec<u8>)>,
}

/// Another place where a key may exist.
struct OtherPlace {
    /// The index of the key.
    of: usize,
    candidate: Candidate,
    /// True for another form of the key, false for another schema's template.
    is_other_form: bool,
}

/// The member of a Redis key that another place of a key is.
struct OtherMember {
    of: usize,
    schema: Arc<Schema>,
    key: Vec<u8>,
    is_other_form: bool,
}

/// Where keys were looked for, by their indexes.
struct LookedFor {
    elsewhere: Vec<bool>,
    in_two_forms: Vec<bool>,
}

impl DataReading<'_> {
    async fn sample(mut self, wanted: usize) -> Result<DataSample, StoreError> {
        let mut sampler = Sampler::start(self.reader.clone(), wanted, Rng::new(), None).await?;
        while let Some(keys) = sampler.next().await? {
            let mut candidates = Vec::new();
            for key in keys {
                self.collector.sample.redis_keys += 1;
                let Some((candidate, _)) = for_redis_key(self.catalog, &key.redis_key) else {
                    continue;
                };
                if self.known.insert(candidate.redis_keys[0].clone()) {
                    candidates.push(candidate);
                }
            }
            self.read_values(candidates).await?;
        }
        let sample = &mut self.collector.sample;
        sample.there = sampler.there;
        sample.unread += sampler.forbidden_keys();
        let are_gaps = sampler.missed().is_some();
        if are_gaps {
            sample.unread += 1;
        }
        sample.is_all = !are_gaps && sample.there.is_some_and(|there| there <= sample.redis_keys);
        for key in MemberKey::of_catalog(self.catalog) {
            self.read_members(&key, wanted).await?;
        }
        self.look_elsewhere().await?;
        Ok(self.collector.finish())
    }

    /// Looks at up to this many members of a Redis key.
    async fn read_members(&mut self, key: &MemberKey, wanted: usize) -> Result<(), StoreError> {
        let mut names = Vec::new();
        for schema in &key.schemas {
            names.push(schema.name.clone());
        }
        match self.sample_members(key, wanted).await {
            Ok(None) => Ok(()),
            Ok(Some((looked_at, there))) => {
                let are_all = looked_at >= there;
                let schema = names.join(", ");
                let members = MemberCounts { schema, looked_at, there, are_all };
                self.collector.sample.members.push(members);
                Ok(())
            }
            Err(error) if is_fatal(&error) => Err(error),
            Err(_) => {
                self.collector.sample.unread_members.extend(names);
                Ok(())
            }
        }
    }

    /// How many members were looked at, and how many there are; `None` without members.
    async fn sample_members(
        &mut self,
        key: &MemberKey,
        wanted: usize,
    ) -> Result<Option<(u64, u64)>, StoreError> {
        let there = key.count(self.client).await?;
        if there == 0 {
            return Ok(None);
        }
        let sampled = key.sample(self.client, wanted, there, MAX_AT_A_TIME).await?;
        let looked_at = sampled.len() as u64;
        let mut page: Vec<SampledMember> = Vec::new();
        let mut bytes = 0;
        for member in sampled {
            // Redis has no command for a part of a field.
            if member.bytes > MAX_AT_A_TIME {
                self.collector.sample.in_part += 1;
                continue;
            }
            let more = member.name.len() + member.bytes;
            if !page.is_empty() && (bytes + more > MAX_AT_A_TIME || page.len() == MAX_MEMBERS) {
                self.look_at_members(key, std::mem::take(&mut page)).await?;
                bytes = 0;
            }
            bytes += more;
            page.push(member);
        }
        self.look_at_members(key, page).await?;
        Ok(Some((looked_at, there)))
    }

    async fn look_at_members(
        &mut self,
        key: &MemberKey,
        page: Vec<SampledMember>,
    ) -> Result<(), StoreError> {
        if self.read_bytes >= MAX_OF_RUN {
            self.collector.sample.left_out += page.len() as u64;
            return Ok(());
        }
        let Some(first) = key.schemas.first() else { return Ok(()) };
        let mut wanted = Vec::with_capacity(page.len());
        for member in page {
            wanted.push((Arc::clone(first), member.name));
        }
        let read = look_up(self.client, &wanted).await?;
        for ((_, name), seen) in wanted.into_iter().zip(read) {
            // It may be gone since.
            let Some(seen) = seen? else { continue };
            for state in &seen.keys {
                self.read_bytes += name.len() + state.content.read_bytes();
            }
            let mut found = Vec::new();
            for schema in &key.schemas {
                let (name, seen) = (name.clone(), seen.clone());
                found.push(member(self.catalog, schema, name, seen, &Thresholds::default()));
            }
            // The release that recognises the value wrote it.
            let own = found.iter().find(|record| !record.author.is_foreign());
            if let Some(record) = own.or(found.first()) {
                self.add(record);
            }
        }
        Ok(())
    }

    /// Reads the values of these records, and looks at each.
    async fn read_values(&mut self, candidates: Vec<Candidate>) -> Result<(), StoreError> {
        let mut long = Vec::new();
        for batch in batches(candidates, FIRST) {
            if self.read_bytes >= MAX_OF_RUN {
                self.collector.sample.left_out += batch.len() as u64;
                continue;
            }
            let read = self.read_batch(&batch, FIRST).await?;
            for (candidate, seen) in batch.into_iter().zip(read) {
                let Ok(seen) = seen else {
                    self.collector.sample.unread += 1;
                    continue;
                };
                let is_whole = seen.keys.iter().all(|key| key.content.is_whole());
                let limit = limit_of_one(&seen);
                if is_whole || limit <= FIRST {
                    self.look_at(&candidate, seen);
                } else {
                    long.push((candidate, seen, limit));
                }
            }
        }
        for (candidate, seen, limit) in long {
            if self.read_bytes >= MAX_OF_RUN {
                self.collector.sample.left_out += 1;
                continue;
            }
            let batch = std::slice::from_ref(&candidate);
            match self.read_batch(batch, limit).await?.pop() {
                Some(Ok(longer)) => self.look_at(&candidate, longer),
                // What was read first is better than nothing.
                Some(Err(_)) | None => self.look_at(&candidate, seen),
            }
        }
        Ok(())
    }

    async fn read_batch(
        &mut self,
        batch: &[Candidate],
        limit: usize,
    ) -> Result<Vec<ReadResult>, StoreError> {
        let redis_keys: Vec<_> =
            batch.iter().map(|candidate| candidate.redis_keys.clone()).collect();
        let read = self.reader.read_each(&redis_keys, ReadLimit::Bytes(limit)).await;
        let read = match read {
            Ok(read) => read,
            Err(error) if is_fatal(&error) => return Err(error),
            Err(error) => vec![Err(error); batch.len()],
        };
        for seen in read.iter().flatten() {
            for key in &seen.keys {
                self.read_bytes += key.content.read_bytes();
            }
        }
        Ok(read)
    }

    /// Looks at the record in what was read, if there is one. If several schemas read it, it counts
    /// for the first.
    fn look_at(&mut self, candidate: &Candidate, seen: Observation) {
        let found = records(self.catalog, candidate, seen, &Thresholds::default());
        if let Some(record) = found.first() {
            self.add(record);
        }
    }

    fn add(&mut self, record: &Record) {
        self.collector.add(record);
        if record.key.len() <= LONGEST_KEY {
            self.keys.push((Arc::clone(&record.schema), record.key.clone()));
        }
    }

    /// Looks for each key in its other form, and under the templates of the other schemas.
    async fn look_elsewhere(&mut self) -> Result<(), StoreError> {
        let mut keys = std::mem::take(&mut self.keys);
        keys.truncate(MAX_LOOKED_FOR);
        let others = self.catalog.scanned();
        let templates: HashSet<_> = others.iter().map(|other| other.redis_keys(b"k")).collect();
        self.collector.sample.templates = templates.len() as u64;
        let mut places = Vec::new();
        let mut members = Vec::new();
        for (of, (schema, key)) in keys.iter().enumerate() {
            for form in other_forms(key) {
                if schema.members.is_some() {
                    let schema = Arc::clone(schema);
                    members.push(OtherMember { of, schema, key: form, is_other_form: true });
                } else {
                    places.extend(form_at(of, schema, &form));
                }
            }
            // Releases share their templates, and one place.
            let mut known = vec![schema.redis_keys(key)];
            for other in &others {
                let redis_keys = other.redis_keys(key);
                if known.contains(&redis_keys) {
                    continue;
                }
                if other.members.is_some() {
                    known.push(redis_keys);
                    let (schema, key) = (Arc::clone(other), key.clone());
                    members.push(OtherMember { of, schema, key, is_other_form: false });
                    continue;
                }
                if !other.accepts_key(key) {
                    continue;
                }
                let found = for_redis_key(self.catalog, &redis_keys[0]);
                if let Some((candidate, _)) = found
                    && candidate.redis_keys == redis_keys
                {
                    known.push(redis_keys);
                    places.push(OtherPlace { of, candidate, is_other_form: false });
                }
            }
        }
        let mut looked_for =
            LookedFor { elsewhere: vec![false; keys.len()], in_two_forms: vec![false; keys.len()] };
        self.look_at_places(places, &keys, &mut looked_for).await?;
        self.look_for_members(&members, &keys, &mut looked_for).await;
        for ((schema, _), is_looked_for) in keys.iter().zip(looked_for.elsewhere) {
            if is_looked_for {
                self.collector.was_looked_for(&schema.name);
            }
        }
        for ((schema, _), is_in_two_forms) in keys.iter().zip(looked_for.in_two_forms) {
            if is_in_two_forms {
                self.collector.exists_in_other_form(&schema.name);
            }
        }
        Ok(())
    }

    async fn look_at_places(
        &mut self,
        places: Vec<OtherPlace>,
        keys: &[(Arc<Schema>, Vec<u8>)],
        looked_for: &mut LookedFor,
    ) -> Result<(), StoreError> {
        let candidates: Vec<_> = places.iter().map(|place| place.candidate.clone()).collect();
        let mut places = places.into_iter();
        for batch in batches(candidates, HEAD) {
            if self.read_bytes >= MAX_OF_RUN {
                break;
            }
            let read = self.read_batch(&batch, HEAD).await?;
            for (seen, place) in read.into_iter().zip(places.by_ref()) {
                let Ok(seen) = seen else { continue };
                looked_for.elsewhere[place.of] |= !place.is_other_form;
                let found = records(self.catalog, &place.candidate, seen, &Thresholds::default());
                let Some(record) = found.iter().find(|record| !record.author.is_foreign()) else {
                    continue;
                };
                if place.is_other_form {
                    looked_for.in_two_forms[place.of] = true;
                } else {
                    let schema = &keys[place.of].0.name;
                    self.collector.exists_elsewhere(schema, &record.schema.name);
                }
            }
        }
        Ok(())
    }

    async fn look_for_members(
        &mut self,
        members: &[OtherMember],
        keys: &[(Arc<Schema>, Vec<u8>)],
        looked_for: &mut LookedFor,
    ) {
        for page in members.chunks(MAX_MEMBERS) {
            let mut wanted = Vec::with_capacity(page.len());
            for member in page {
                wanted.push((Arc::clone(&member.schema), member.key.clone()));
            }
            let exist = which_exist(self.client, &wanted).await;
            for (member, exists) in page.iter().zip(exist) {
                let Some(exists) = exists else { continue };
                looked_for.elsewhere[member.of] |= !member.is_other_form;
                if !exists {
                    continue;
                }
                if member.is_other_form {
                    looked_for.in_two_forms[member.of] = true;
                } else {
                    let schema = &keys[member.of].0.name;
                    self.collector.exists_elsewhere(schema, &member.schema.name);
                }
            }
        }
    }
}

/// The place of another form of a key; `None` if the schema has no such key.
fn form_at(of: usize, schema: &Arc<Schema>, form: &[u8]) -> Option<OtherPlace> {
    if !schema.accepts_key(form) {
        return None;
    }
    let candidate = Candidate {
        key: form.to_vec(),
        redis_keys: schema.redis_keys(form),
        schemas: Arc::from([Arc::clone(schema)]),
        is_most_specific: true,
    };
    Some(OtherPlace { of, candidate, is_other_form: true })
}

/// Candidates in batches whose values together have no more than [`MAX_AT_A_TIME`] bytes, if this
/// many are read of each value.
fn batches(candidates: Vec<Candidate>, limit: usize) -> Vec<Vec<Candidate>> {
    let mut batches: Vec<Vec<Candidate>> = Vec::new();
    let mut room = 0;
    for candidate in candidates {
        let values = if candidate.keeps_hashes() { MAX_FIELDS } else { 1 };
        let bytes = candidate.redis_keys.len() * values * limit;
        match batches.last_mut() {
            Some(last) if bytes <= room => {
                last.push(candidate);
                room -= bytes;
            }
            _ => {
                batches.push(vec![candidate]);
                room = MAX_AT_A_TIME.saturating_sub(bytes);
            }
        }
    }
    batches
}

/// The bytes of each value of one record that may be read, so that all of them together are few
/// enough.
fn limit_of_one(seen: &Observation) -> usize {
    let mut values: usize = 0;
    for key in &seen.keys {
        values += match &key.content {
            Content::Hash(hash) => usize::try_from(hash.count).unwrap_or(usize::MAX).max(1),
            _ => 1,
        };
    }
    MAX_AT_A_TIME / values.max(1)
}
