//! Finding the records that a KEY names: every candidate of every KEY in one round trip.

use std::collections::HashSet;

use anyhow::Result;

use crate::domain::diagnosis::Thresholds;
use crate::domain::record::{
    Candidate, Given, Name, Readings, Record, UnclaimedKey, locate, name, unclaimed_key,
};
use crate::domain::schema::Catalog;
use crate::store::{ReadLimit, RecordReader, Seen, StoreError};

/// What one KEY turned out to name.
#[derive(Debug, Default)]
pub struct LookupResult {
    pub key: Vec<u8>,
    /// The record that the KEY means if it is read as a name.
    name: Option<Name>,
    /// The records, in the order of the schemas.
    pub records: Vec<Record>,
    /// Redis keys that exist where no record is.
    pub strangers: Vec<UnclaimedKey>,
    pub looked_at: Vec<Vec<u8>>,
    /// Why some of the Redis keys were not read: the user may not, or their node of a cluster does not answer.
    pub unread: Option<StoreError>,
    /// The schemas whose records were not read for that.
    pub unread_schemas: Vec<String>,
}

/// What is read of a value where the part that was read first does not tell what it is.
const LONGER: ReadLimit = ReadLimit::Bytes(16 << 20);

/// How much to read of each value, and what to find fault with.
pub struct Lookup {
    pub head: ReadLimit,
    pub thresholds: Thresholds,
    /// True to find, beside the records of a Redis key's own schemas, the results that others read there. A lock that
    /// another schema reads there is found in any case.
    pub both: bool,
}

impl LookupResult {
    /// The names of the records that the KEY may mean, if they are more than one: no command that changes takes its pick.
    pub fn several(&self) -> Option<Vec<Name>> {
        let own = self.records.iter().filter(|record| !record.claim.is_foreign());
        Some(name::of_each(own)).filter(|names| names.len() > 1)
    }

    /// The same without those that name the records of an earlier one in other words: each record is dealt with once.
    pub fn each_once(all: Vec<Self>) -> Vec<Self> {
        let mut known = HashSet::new();
        let mut each = Vec::with_capacity(all.len());
        for found in all {
            let redis_keys = |record: &Record| {
                record.seen.keys.iter().map(|key| key.redis_key.clone()).collect::<Vec<_>>()
            };
            let records: Vec<_> = found
                .records
                .iter()
                .map(|record| (record.schema.name.clone(), redis_keys(record)))
                .collect();
            if records.is_empty() || known.insert(records) {
                each.push(found);
            }
        }
        each
    }

    /// The record that the KEY means if it is read as a name, whether the record exists or not.
    pub fn name(&self) -> Option<&Name> {
        self.name.as_ref()
    }

    /// True if the KEY says of which schema the record is.
    pub fn says_schema_of(&self, record: &Record) -> bool {
        self.name
            .as_ref()
            .is_some_and(|name| name.is_under(&record.schema) && name.key == record.key)
    }

    /// Why nobody knows all that is there: a node of a cluster does not answer.
    pub fn silent(&self) -> Option<&StoreError> {
        self.unread.as_ref().filter(|error| !error.is_permission())
    }
}

impl Lookup {
    /// Reads every KEY under every chosen schema.
    ///
    /// # Errors
    /// When the server could not be asked, or none of the Redis keys can be read.
    pub async fn find(
        &self,
        reader: &mut RecordReader,
        catalog: &Catalog,
        keys: Vec<Given>,
    ) -> Result<Vec<LookupResult>> {
        let db = reader.db();
        let readings: Vec<_> = keys.iter().map(|key| key.readings(catalog, db)).collect();
        let candidates: Vec<_> =
            readings.iter().map(|readings| self.candidates(catalog, readings)).collect();
        let wanted: Vec<_> =
            candidates.iter().flatten().map(|candidate| candidate.redis_keys.clone()).collect();
        let mut seen = reader.observe_each(&wanted, self.head).await?;
        for (candidate, seen) in candidates.iter().flatten().zip(&mut seen) {
            if let Ok(first) = seen
                && locate::is_undecided(candidate, first)
            {
                let longer = reader
                    .observe_each(std::slice::from_ref(&candidate.redis_keys), LONGER)
                    .await?;
                *seen = longer.into_iter().next().unwrap_or_else(|| Ok(first.clone()));
            }
        }
        let mut seen = seen.into_iter();
        let found =
            keys.into_iter().zip(readings).zip(candidates).map(|((key, readings), candidates)| {
                let seen = seen.by_ref().take(candidates.len()).collect();
                let found =
                    LookupResult { key: key.text, name: readings.name, ..LookupResult::default() };
                self.sort_out(catalog, found, &candidates, seen)
            });
        let mut found: Vec<_> = found.collect();
        self.look_at_the_keys_themselves(reader, catalog, &mut found).await?;
        for found in &mut found {
            let strangers = std::mem::take(&mut found.strangers).into_iter();
            found.strangers = strangers.map(|there| there.left_out_by(catalog)).collect();
        }
        match found.iter().find_map(|found| found.unread.clone()) {
            Some(error) if found.iter().all(|found| found.looked_at.is_empty()) => {
                Err(error.into())
            }
            _ => Ok(found),
        }
    }

    /// A KEY that names no record may be a Redis key that no schema bears, or one that a schema leaves out: what exists is never
    /// told as nothing.
    async fn look_at_the_keys_themselves(
        &self,
        reader: &mut RecordReader,
        catalog: &Catalog,
        found: &mut [LookupResult],
    ) -> Result<()> {
        let is_open = |(_, found): &(usize, &LookupResult)| {
            let is_nothing = found.records.is_empty() && found.strangers.is_empty();
            is_nothing && (found.unread.is_none() || !found.looked_at.is_empty())
        };
        let open = found.iter().enumerate().filter(is_open);
        let places = open.flat_map(|(index, found)| {
            let places = unclaimed_key::places(catalog, &found.key).into_iter();
            places.filter(|place| !found.looked_at.contains(place)).map(move |place| (index, place))
        });
        let places: Vec<_> =
            places.map(|(index, place)| (index, locate::redis_key_itself(&place))).collect();
        if places.is_empty() {
            return Ok(());
        }
        let wanted: Vec<_> = places.iter().map(|(_, place)| place.redis_keys.clone()).collect();
        let seen = reader.observe_each(&wanted, self.head).await?;
        for ((index, place), seen) in places.into_iter().zip(seen) {
            // Whoever may not read the Redis key knows as much as before.
            if let Ok(seen) = seen {
                found[index].strangers.extend(unclaimed_key::strangers(&place, &seen));
            }
        }
        Ok(())
    }

    fn candidates(&self, catalog: &Catalog, readings: &Readings) -> Vec<Candidate> {
        let mut candidates = locate::for_readings(catalog, readings);
        for candidate in readings.keys.iter().flat_map(|key| locate::of_others(catalog, key)) {
            if self.both || locate::may_be_lock_beneath(catalog, &candidate) {
                candidates.push(candidate);
            }
        }
        candidates
    }

    fn sort_out(
        &self,
        catalog: &Catalog,
        mut found: LookupResult,
        candidates: &[Candidate],
        seen: Vec<Seen>,
    ) -> LookupResult {
        for (candidate, seen) in candidates.iter().zip(seen) {
            match seen {
                Ok(seen) if !candidate.is_owned => {
                    let read = locate::records_in(catalog, candidate, seen, &self.thresholds);
                    let may_be_lock = locate::may_be_lock_beneath(catalog, candidate);
                    found.records.extend(read.into_iter().filter(|record| {
                        (self.both && record.is_closed_result())
                            || (may_be_lock && record.is_closed_lock())
                    }));
                }
                Ok(seen) => {
                    let strangers = unclaimed_key::strangers(candidate, &seen);
                    let records = locate::records_in(catalog, candidate, seen, &self.thresholds);
                    found.strangers.extend(strangers.into_iter().filter(|_| records.is_empty()));
                    found.records.extend(records);
                    found.looked_at.extend(candidate.redis_keys.iter().cloned());
                }
                Err(error) => {
                    for schema in candidate.schemas.iter() {
                        if !found.unread_schemas.contains(&schema.name) {
                            found.unread_schemas.push(schema.name.clone());
                        }
                    }
                    // That a node does not answer weighs more than that something is not this user's.
                    found.unread = match found.unread {
                        Some(unread) if error.is_permission() => Some(unread),
                        _ => Some(error),
                    };
                }
            }
        }
        found
    }
}
