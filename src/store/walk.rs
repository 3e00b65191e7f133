//! The scan engine: the keyspace page by page, the next page on its way while this one's records are read.

use std::collections::HashSet;

use super::error::StoreError;
use super::read::{Head, Reader};
use super::scan::Scan;
use crate::domain::candidates::{self, Candidate};
use crate::domain::catalog::Catalog;
use crate::domain::observation::{Content, Observation};

/// A walk over every node for the records of the catalog's scanned schemas.
pub struct Walk {
    reader: Reader,
    scans: Vec<Scan>,
    head: Head,
    page: Option<Vec<Vec<u8>>>,
    looked_at: u64,
}

impl Walk {
    /// Starts at the beginning.
    ///
    /// # Errors
    /// As [`Reader::scans`].
    pub async fn start(reader: Reader, catalog: &Catalog, head: Head) -> Result<Self, StoreError> {
        let scans = reader.scans(&catalog.scan_pattern()).await?;
        Ok(Self { reader, scans, head, page: None, looked_at: 0 })
    }

    /// Redis keys that were looked at so far.
    pub fn looked_at(&self) -> u64 {
        self.looked_at
    }

    /// What the next page holds of the scanned schemas' records, whose idempotency keys `wanted` lets through; perhaps
    /// nothing. `None` at the end.
    ///
    /// # Errors
    /// As every read.
    pub async fn next(
        &mut self,
        catalog: &Catalog,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<Vec<(Candidate, Observation)>>, StoreError> {
        let page = match self.page.take() {
            Some(page) => page,
            None => match self.fetch().await? {
                Some(page) => page,
                None => return Ok(None),
            },
        };
        self.looked_at += page.len() as u64;
        let places = places(catalog, &page, wanted);
        let read = read(self.reader.clone(), places, self.head);
        let (next, read) = futures_util::future::join(self.fetch(), read).await;
        self.page = next?;
        read.map(Some)
    }

    async fn fetch(&mut self) -> Result<Option<Vec<Vec<u8>>>, StoreError> {
        while let Some(scan) = self.scans.last_mut() {
            match scan.next_page().await? {
                Some(page) => return Ok(Some(page)),
                None => self.scans.pop(),
            };
        }
        Ok(None)
    }
}

/// The records a page's Redis keys belong to, each once, with the slot that was found.
fn places(catalog: &Catalog, page: &[Vec<u8>], wanted: impl Fn(&[u8]) -> bool) -> Vec<(Candidate, usize)> {
    let mut known = HashSet::with_capacity(page.len());
    page.iter()
        .filter_map(|redis_key| candidates::for_redis_key(catalog, redis_key))
        .filter(|(candidate, _)| wanted(&candidate.key))
        .filter(|(candidate, slot)| {
            candidate.redis_keys.len() == 1 || known.insert((candidate.redis_keys[0].clone(), *slot))
        })
        .collect()
}

/// Reads the records. One with two Redis keys is found twice by a scan: it is the lock's where there is one.
async fn read(
    mut reader: Reader,
    places: Vec<(Candidate, usize)>,
    head: Head,
) -> Result<Vec<(Candidate, Observation)>, StoreError> {
    let wanted: Vec<_> = places.iter().map(|(candidate, _)| candidate.redis_keys.clone()).collect();
    let seen = reader.peek(&wanted, head).await?;
    let mut records = Vec::with_capacity(places.len());
    for ((candidate, slot), seen) in places.into_iter().zip(seen) {
        // A Redis key outside the user's pattern shows in SCAN, but cannot be read: it is not this user's business.
        let Ok(seen) = seen else { continue };
        let found_by_an_earlier_slot = seen.slots[..slot].iter().any(|slot| slot.content != Content::Absent);
        if !seen.is_absent() && !found_by_an_earlier_slot {
            records.push((candidate, seen));
        }
    }
    settle(&mut reader, &mut records, head).await?;
    Ok(records)
}

/// Reads records again, atomically, that seem to have both a lock and a result: read one after the other, a record
/// that completed in between looks like that too.
async fn settle(
    reader: &mut Reader,
    records: &mut Vec<(Candidate, Observation)>,
    head: Head,
) -> Result<(), StoreError> {
    let both =
        |seen: &Observation| seen.slots.len() > 1 && seen.slots.iter().all(|slot| slot.content != Content::Absent);
    let doubtful: Vec<_> = (0..records.len()).filter(|index| both(&records[*index].1)).collect();
    if doubtful.is_empty() {
        return Ok(());
    }
    let wanted: Vec<_> = doubtful.iter().map(|index| records[*index].0.redis_keys.clone()).collect();
    let seen = reader.observe(&wanted, head).await?;
    for (index, seen) in doubtful.into_iter().zip(seen) {
        if let Ok(seen) = seen {
            records[index].1 = seen;
        }
    }
    records.retain(|(_, seen)| !seen.is_absent());
    Ok(())
}
