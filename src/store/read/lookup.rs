//! Looks up the records that a KEY names. One round trip reads all Redis keys that the schemas
//! would use for it. More round trips are needed for values whose beginning does not
//! decide, for expiries beyond Lua's numbers, and for a KEY without a record.

use std::collections::HashSet;

use anyhow::Result;

use super::key_query::ReadLimit;
use super::reader::{ReadResult, RecordReader};
use crate::domain::detect::fitting;
use crate::domain::diagnosis::Thresholds;
use crate::domain::record::field_set::MAX_SCANNED;
use crate::domain::record::{
    Author, Candidate, GivenKey, KeyMeanings, Record, RecordName, UnclaimedKey, locate, name,
    unclaimed_key,
};
use crate::domain::schema::Catalog;
use crate::store::error::StoreError;

/// How much of a value is read if the first part is too short to decode. This equals the output
/// limit of a codec.
const LONGER: ReadLimit = ReadLimit::Bytes(16 << 20);

/// The most bytes of the values of one lookup that are read further only for their fields. All of
/// them are in memory at the same time.
const MAX_FOR_FIELDS: usize = 64 << 20;

/// How to look up keys.
pub struct Lookup {
    /// How much of each value is read first.
    pub first_read: ReadLimit,
    /// The limits that findings compare with.
    pub thresholds: Thresholds,
    /// True to find results of less specific schemas also where the name of the Redis key makes a
    /// result of any bytes.
    pub includes_less_specific_results: bool,
    /// True to keep records whose values their schema does not write. Otherwise their Redis keys are
    /// unclaimed, unless the operator says that the schema is that of the service.
    pub keeps_unrecognised: bool,
}

/// The records that one KEY names.
#[derive(Debug, Default)]
pub struct LookupResult {
    /// The KEY as it was given.
    pub given: Vec<u8>,
    /// The record that the KEY means if it is read as a name.
    name: Option<RecordName>,
    /// The records, in the order of the schemas.
    pub records: Vec<Record>,
    /// Redis keys that exist but do not hold a record.
    pub unclaimed: Vec<UnclaimedKey>,
    /// The Redis keys that were read.
    pub checked: Vec<Vec<u8>>,
    /// Why some of the Redis keys were not read: the Redis user may not read them, or their node of
    /// a cluster does not answer.
    pub why_unread: Option<StoreError>,
    /// The schemas of which some Redis keys were not read.
    pub unread_schemas: Vec<String>,
}

impl LookupResult {
    /// The names of the records that the KEY may mean, if there are several. A command that changes
    /// records must not choose one.
    pub fn several(&self) -> Option<Vec<RecordName>> {
        let own = self.records.iter().filter(|record| !record.author.is_foreign());
        let names = name::of_each(own);
        if names.len() > 1 { Some(names) } else { None }
    }

    /// The results without those whose records were all named by the KEYs before, for example by a
    /// name and by a Redis key, so that each record is processed once.
    pub fn each_once(all: Vec<Self>) -> Vec<Self> {
        let mut known = HashSet::new();
        let mut each = Vec::with_capacity(all.len());
        for found in all {
            let mut is_new = found.records.is_empty();
            for record in &found.records {
                let redis_keys: Vec<_> = record.redis_keys();
                // Two schemas may have the same Redis keys, and the operator may name both.
                is_new |= known.insert((record.schema.name.clone(), redis_keys));
            }
            if is_new {
                each.push(found);
            }
        }
        each
    }

    /// Moves the records whose values their schema does not write to the unclaimed Redis keys. The
    /// values of another library may be good results, about which the schema says nothing.
    fn set_unrecognised_aside(&mut self, catalog: &Catalog) {
        for record in std::mem::take(&mut self.records) {
            match unclaimed_as(catalog, &record) {
                None => self.records.push(record),
                Some(unclaimed) => self.unclaimed.extend(unclaimed),
            }
        }
    }

    /// The record that the KEY means if it is read as a name, whether the record exists or not.
    pub fn name(&self) -> Option<&RecordName> {
        self.name.as_ref()
    }

    /// True if the KEY names the schema of the record.
    pub fn says_schema_of(&self, record: &Record) -> bool {
        match &self.name {
            Some(name) => name.is_under(&record.schema) && name.key == record.key,
            None => false,
        }
    }

    /// The schemas that could not be read, although they may have a record of the key. A name has
    /// one schema, which was read.
    pub fn uncovered(&self, catalog: &Catalog) -> Option<String> {
        if self.name.is_some() { None } else { catalog.covered().unread() }
    }

    /// Why the KEY may name another record, too: a schema or a Redis key was not read. A command that
    /// changes records must not choose then. A name and a full Redis key are exact.
    pub fn may_name_another(&self, catalog: &Catalog) -> Option<String> {
        let mut own = self.records.iter();
        let is_exact = own.any(|record| record.redis_keys().contains(&self.given));
        if is_exact || self.name.is_some() || self.records.is_empty() {
            return None;
        }
        let why = match &self.why_unread {
            Some(error) => error.to_string(),
            None => catalog.covered().unread()?,
        };
        Some(format!(
            "whether it names another record, too ({why}); pass SCHEMA/KEY or the full Redis key"
        ))
    }

    /// Why more records may exist, other than that the Redis user may not read them: e.g. a node of
    /// a cluster does not answer.
    pub fn unreachable(&self) -> Option<&StoreError> {
        match &self.why_unread {
            Some(error) if !error.is_permission() => Some(error),
            _ => None,
        }
    }
}

/// The unclaimed Redis keys of a record whose values its schema does not write. `None` if the schema
/// writes them, or if the operator says that it is the service's: --schema names it alone, or the
/// context names it and the value fits no other schema that idemctl ships.
pub fn unclaimed_as(catalog: &Catalog, record: &Record) -> Option<Vec<UnclaimedKey>> {
    if !matches!(record.author, Author::Unrecognised(_)) || catalog.is_only_named(&record.schema) {
        return None;
    }
    let fits = fitting::names(catalog.shipped.all(), &record.seen, &record.schema.name);
    if catalog.is_named_by_context(&record.schema) && fits.is_empty() {
        return None;
    }
    Some(unclaimed_key::of_unrecognised(record, &fits))
}

impl Lookup {
    /// Looks up every KEY under every chosen schema. One result per KEY, in order.
    ///
    /// # Errors
    /// The server could not be asked, or none of the Redis keys can be read.
    pub async fn find(
        &self,
        reader: &mut RecordReader,
        catalog: &Catalog,
        keys: Vec<GivenKey>,
    ) -> Result<Vec<LookupResult>> {
        // The Redis keys that may hold records of each KEY.
        let mut all_found = Vec::with_capacity(keys.len());
        let mut candidates_of_each = Vec::with_capacity(keys.len());
        for key in keys {
            let meanings = key.meanings(catalog, reader.db());
            candidates_of_each.push(self.candidates(catalog, &meanings));
            let name = meanings.name;
            all_found.push(LookupResult { given: key.text, name, ..LookupResult::default() });
        }

        // One round trip reads all of them, so that a lookup of many KEYs takes no longer than that
        // of one.
        let candidates: Vec<&Candidate> = candidates_of_each.iter().flatten().collect();
        let mut read = self.read(reader, &candidates, self.first_read).await?;
        if self.first_read != ReadLimit::Whole {
            self.read_further(reader, &candidates, &mut read).await?;
        }

        // Decodes what was read, and adds the records to the result of their KEY.
        let mut read = read.into_iter();
        for (found, candidates) in all_found.iter_mut().zip(&candidates_of_each) {
            for (candidate, seen) in candidates.iter().zip(read.by_ref()) {
                self.add(catalog, found, candidate, seen);
            }
        }
        if !self.keeps_unrecognised {
            for found in &mut all_found {
                found.set_unrecognised_aside(catalog);
            }
        }
        self.read_keys_themselves(reader, catalog, &mut all_found).await?;
        for found in &mut all_found {
            let unclaimed = std::mem::take(&mut found.unclaimed);
            found.unclaimed = unclaimed.into_iter().map(|key| key.left_out_by(catalog)).collect();
        }

        let is_nothing_read = all_found.iter().all(|found| found.checked.is_empty());
        let unread = all_found.iter().find_map(|found| found.why_unread.clone());
        match unread {
            Some(error) if is_nothing_read => Err(error.into()),
            _ => Ok(all_found),
        }
    }

    /// The Redis keys that may hold records of a KEY under each chosen schema.
    fn candidates(&self, catalog: &Catalog, meanings: &KeyMeanings) -> Vec<Candidate> {
        let mut candidates = locate::for_meanings(catalog, meanings);
        for key in &meanings.keys {
            for candidate in locate::of_less_specific_schemas(catalog, key) {
                if self.includes_less_specific_results
                    || locate::may_be_of_less_specific_schema(catalog, &candidate)
                {
                    candidates.push(candidate);
                }
            }
        }
        candidates
    }

    /// Reads more of the values of which the first read does not have all that decides their format
    /// or their fields.
    async fn read_further(
        &self,
        reader: &mut RecordReader,
        candidates: &[&Candidate],
        read: &mut [ReadResult],
    ) -> Result<(), StoreError> {
        let mut left = MAX_FOR_FIELDS;
        for (candidate, seen) in candidates.iter().zip(read) {
            let Ok(first) = seen else { continue };
            let limit = if locate::is_undecided(candidate, first) {
                LONGER
            } else if left > 0 && first.keys.iter().any(|key| !key.content.is_whole()) {
                ReadLimit::Bytes(MAX_SCANNED)
            } else {
                continue;
            };
            let Some(longer) = self.read(reader, &[candidate], limit).await?.pop() else {
                continue;
            };
            if let Ok(longer) = &longer {
                for key in &longer.keys {
                    left = left.saturating_sub(key.content.read_bytes());
                }
            }
            *seen = longer;
        }
        Ok(())
    }

    async fn read(
        &self,
        reader: &mut RecordReader,
        candidates: &[&Candidate],
        head: ReadLimit,
    ) -> Result<Vec<ReadResult>, StoreError> {
        let mut records = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            records.push(candidate.redis_keys.clone());
        }
        reader.read_each(&records, head).await
    }

    /// Adds the read of a candidate to the result of its KEY.
    fn add(
        &self,
        catalog: &Catalog,
        found: &mut LookupResult,
        candidate: &Candidate,
        seen: ReadResult,
    ) {
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) => {
                for schema in candidate.schemas.iter() {
                    if !found.unread_schemas.contains(&schema.name) {
                        found.unread_schemas.push(schema.name.clone());
                    }
                }
                // An unreachable node is more serious than a key that the Redis user may not read.
                if found.why_unread.is_none() || !error.is_permission() {
                    found.why_unread = Some(error);
                }
                return;
            }
        };
        if candidate.is_most_specific {
            let unclaimed = unclaimed_key::unclaimed_in(candidate, &seen);
            let records = locate::records(catalog, candidate, seen, &self.thresholds);
            if records.is_empty() {
                found.unclaimed.extend(unclaimed);
            }
            found.records.extend(records.into_iter().map(Record::without_guess));
            found.checked.extend(candidate.redis_keys.iter().cloned());
            return;
        }
        // The Redis key belongs to another schema. A value counts only if its bytes identify it as
        // this schema's.
        let may_be_its = locate::may_be_of_less_specific_schema(catalog, candidate);
        for record in locate::records(catalog, candidate, seen, &self.thresholds) {
            let is_result = self.includes_less_specific_results && record.is_distinctive_result();
            let is_its = may_be_its && locate::is_of_less_specific_schema(catalog, &record);
            if is_result || is_its {
                found.records.push(record.without_guess());
            }
        }
    }

    /// Reads the KEYs that name no record as Redis keys. An existing key is then never reported as
    /// absent, whether no schema fits it or a schema excludes it.
    async fn read_keys_themselves(
        &self,
        reader: &mut RecordReader,
        catalog: &Catalog,
        all_found: &mut [LookupResult],
    ) -> Result<()> {
        let mut indexes = Vec::new();
        let mut candidates = Vec::new();
        for (index, found) in all_found.iter().enumerate() {
            let is_nothing = found.records.is_empty() && found.unclaimed.is_empty();
            let may_read = found.why_unread.is_none() || !found.checked.is_empty();
            if !is_nothing || !may_read {
                continue;
            }
            for redis_key in unclaimed_key::redis_keys_of(catalog, &found.given) {
                if !found.checked.contains(&redis_key) {
                    indexes.push(index);
                    candidates.push(locate::redis_key_itself(&redis_key));
                }
            }
        }
        if candidates.is_empty() {
            return Ok(());
        }
        let wanted: Vec<&Candidate> = candidates.iter().collect();
        let read = self.read(reader, &wanted, self.first_read).await?;
        for ((index, candidate), seen) in indexes.into_iter().zip(&candidates).zip(read) {
            let found = &mut all_found[index];
            match seen {
                Ok(seen) => found.unclaimed.extend(unclaimed_key::unclaimed_in(candidate, &seen)),
                Err(error) if found.checked.is_empty() || is_redis_key(catalog, &found.given) => {
                    found.why_unread.get_or_insert(error);
                }
                // A client's key, whose own Redis keys were read.
                Err(_) => {}
            }
        }
        Ok(())
    }
}

/// True if a shipped schema has Redis keys of this name.
fn is_redis_key(catalog: &Catalog, key: &[u8]) -> bool {
    let mut shipped = catalog.shipped.all().iter();
    shipped.any(|schema| schema.has_fixed_prefix() && schema.key_index_of(key).is_some())
}
