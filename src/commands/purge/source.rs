//! Where the records of a purge come from: a walk over the keyspace, or the keys of a file.

use std::collections::HashSet;

use anyhow::Result;

use super::choice::Choice;
use super::key_file::KeyFile;
use crate::domain::candidates::{self, Candidate};
use crate::domain::record::Record;
use crate::lookup::Lookup;
use crate::store::{Head, Reader, Walk};

/// Keys of a file that are looked up in one round trip.
const PAGE: usize = 200;

/// Bytes of each value that are read at first: most values whole.
const HEAD: Head = Head::Bytes(1024);

/// The records, page by page.
pub(super) enum Source<'a> {
    Walk(Box<Walk>),
    Keys { file: &'a mut KeyFile, reader: Reader, looked_at: u64 },
}

impl<'a> Source<'a> {
    /// Starts at the beginning.
    ///
    /// # Errors
    /// As every read.
    pub(super) async fn open(choice: &Choice, reader: Reader, file: Option<&'a mut KeyFile>) -> Result<Self> {
        Ok(match file {
            None => Self::Walk(Box::new(Walk::start(reader, &choice.catalog, HEAD).await?)),
            Some(file) => {
                file.rewind()?;
                Self::Keys { file, reader, looked_at: 0 }
            }
        })
    }

    /// Redis keys, or keys of the file, that were looked at so far.
    pub(super) fn looked_at(&self) -> u64 {
        match self {
            Self::Walk(walk) => walk.looked_at(),
            Self::Keys { looked_at, .. } => *looked_at,
        }
    }

    /// The next page of records, perhaps without any; `None` at the end.
    ///
    /// # Errors
    /// As every read.
    pub(super) async fn next(&mut self, choice: &Choice) -> Result<Option<Vec<Record>>> {
        match self {
            Self::Walk(walk) => {
                let Some(page) = walk.next(&choice.catalog, |key| choice.may_choose(key)).await? else {
                    return Ok(None);
                };
                // Where two schemas read the same value the record is the first's, as in `list`.
                let record =
                    |(candidate, seen)| candidates::first_record(&choice.catalog, candidate, seen, &choice.thresholds);
                Ok(Some(page.into_iter().filter_map(record).collect()))
            }
            Self::Keys { file, reader, looked_at } => {
                let keys = file.next(PAGE)?;
                if keys.is_empty() {
                    return Ok(None);
                }
                *looked_at += keys.len() as u64;
                let lookup = Lookup { head: HEAD, thresholds: choice.thresholds.clone() };
                let found = lookup.find(reader, &choice.catalog, keys).await?;
                let mut known = HashSet::new();
                let records = found.into_iter().flat_map(|found| found.records).filter(|record| choice.scans(record));
                Ok(Some(records.filter(|record| known.insert(record.seen.slots[0].redis_key.clone())).collect()))
            }
        }
    }
}

/// The records with every value whole: those of which only the beginning was read are read anew, and chosen anew.
///
/// # Errors
/// As every read.
pub(super) async fn whole(reader: &mut Reader, choice: &Choice, records: Vec<Record>) -> Result<Vec<Record>> {
    let is_whole = |record: &Record| record.seen.slots.iter().all(|slot| slot.content.is_whole());
    let (mut whole, parts): (Vec<_>, Vec<_>) = records.into_iter().partition(is_whole);
    let places: Vec<_> = parts.into_iter().map(place).collect();
    let wanted: Vec<_> = places.iter().map(|place| place.redis_keys.clone()).collect();
    let seen = reader.observe(&wanted, Head::Whole).await?;
    for (place, seen) in places.iter().zip(seen) {
        let Ok(seen) = seen else { continue };
        let record = candidates::records(&choice.catalog, place, &seen, &choice.thresholds).into_iter().next();
        whole.extend(record.filter(|record| choice.chooses(record)));
    }
    Ok(whole)
}

fn place(record: Record) -> Candidate {
    let redis_keys = record.seen.slots.into_iter().map(|slot| slot.redis_key).collect();
    Candidate { key: record.key, redis_keys, schemas: vec![record.schema] }
}
