//! Finding the records that a KEY names: every candidate of every KEY in one round trip.

use anyhow::Result;

use crate::domain::candidates::{self, Candidate};
use crate::domain::catalog::Catalog;
use crate::domain::diagnosis::Thresholds;
use crate::domain::record::Record;
use crate::store::{Head, Reader, Seen, StoreError};

/// What one KEY turned out to name.
#[derive(Debug)]
pub struct Found {
    /// The KEY as it was given.
    pub key: Vec<u8>,
    /// The records, in the order of the schemas.
    pub records: Vec<Record>,
    /// The Redis keys that were looked at.
    pub looked_at: Vec<Vec<u8>>,
    /// The first refusal, where the user may not read some of the Redis keys.
    pub denied: Option<StoreError>,
}

/// How much to read of each value, and what to find fault with.
pub struct Lookup {
    /// How much of each value.
    pub head: Head,
    /// Limits that findings compare with.
    pub thresholds: Thresholds,
}

impl Lookup {
    /// Reads every KEY under every chosen schema.
    ///
    /// # Errors
    /// When the server could not be asked, or the user may read none of the Redis keys.
    pub async fn find(&self, reader: &mut Reader, catalog: &Catalog, keys: Vec<Vec<u8>>) -> Result<Vec<Found>> {
        let candidates: Vec<_> = keys.iter().map(|key| candidates::for_key(catalog, key)).collect();
        let wanted: Vec<_> = candidates.iter().flatten().map(|candidate| candidate.redis_keys.clone()).collect();
        let mut seen = reader.observe(&wanted, self.head).await?.into_iter();
        let found = keys.into_iter().zip(candidates).map(|(key, candidates)| {
            let seen = seen.by_ref().take(candidates.len()).collect();
            self.sort_out(catalog, key, &candidates, seen)
        });
        found.collect()
    }

    fn sort_out(&self, catalog: &Catalog, key: Vec<u8>, candidates: &[Candidate], seen: Vec<Seen>) -> Result<Found> {
        let mut found = Found { key, records: Vec::new(), looked_at: Vec::new(), denied: None };
        for (candidate, seen) in candidates.iter().zip(seen) {
            match seen {
                Ok(seen) => {
                    found.records.extend(candidates::records(catalog, candidate, &seen, &self.thresholds));
                    found.looked_at.extend(candidate.redis_keys.iter().cloned());
                }
                Err(error) => found.denied = Some(error),
            }
        }
        match found.denied {
            Some(error) if found.looked_at.is_empty() => Err(error.into()),
            _ => Ok(found),
        }
    }
}
