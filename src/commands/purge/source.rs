//! Where the records of a purge come from: a walk over the keyspace, or the keys of a file.

use std::collections::HashSet;

use anyhow::Result;

use super::choice::Choice;
use super::key_file::KeyFile;
use crate::domain::candidates::{self, Candidate};
use crate::domain::observation::{Expiry, SeenSlot};
use crate::domain::record::Record;
use crate::domain::schema::State;
use crate::lookup::{self, Lookup};
use crate::store::{Head, Reader, StoreError, Walk};

/// Keys of a file that are looked up in one round trip.
const PAGE: usize = 200;

/// What a page holds.
#[derive(Default)]
pub(super) struct Page {
    /// Records of the schemas, chosen or not.
    pub(super) records: usize,
    /// Those that are to be purged.
    pub(super) chosen: Vec<Record>,
}

/// The records, page by page.
pub(super) struct Source<'a> {
    from: Origin<'a>,
    missed: Option<StoreError>,
}

enum Origin<'a> {
    Walk(Box<Walk>),
    Keys { file: &'a mut KeyFile, reader: Box<Reader>, looked_at: u64 },
}

impl<'a> Source<'a> {
    /// Starts at the beginning.
    ///
    /// # Errors
    /// As every read.
    pub(super) async fn open(choice: &Choice, reader: Reader, file: Option<&'a mut KeyFile>) -> Result<Self> {
        let from = match file {
            None => Origin::Walk(Box::new(choice.walk(reader).await?)),
            Some(file) => {
                file.rewind()?;
                Origin::Keys { file, reader: Box::new(reader), looked_at: 0 }
            }
        };
        Ok(Self { from, missed: None })
    }

    /// Redis keys, or keys of the file, that were looked at so far.
    pub(super) fn looked_at(&self) -> u64 {
        match &self.from {
            Origin::Walk(walk) => walk.looked_at(),
            Origin::Keys { looked_at, .. } => *looked_at,
        }
    }

    /// That records were left out which the user may not read.
    pub(super) fn forbidden(&self) -> Option<String> {
        match &self.from {
            Origin::Walk(walk) => walk.forbidden(),
            Origin::Keys { .. } => None,
        }
    }

    /// Passes unless nodes of a cluster were left out of what [`Source::read`] gave.
    ///
    /// # Errors
    /// Which, and why.
    pub(super) fn missed_nothing(&mut self) -> Result<()> {
        Ok(self.missed.take().map_or(Ok(()), Err)?)
    }

    /// The next page, perhaps without any record; `None` at the end.
    ///
    /// # Errors
    /// As every read.
    pub(super) async fn next(&mut self, choice: &Choice) -> Result<Option<Page>> {
        let Some(records) = self.records(choice).await? else { return Ok(None) };
        let count = records.len();
        let chosen = records.into_iter().filter(|record| choice.chooses(record)).collect();
        Ok(Some(Page { records: count, chosen }))
    }

    /// The next pages as one, until at least so many records are to be purged, the lengths of whose values are known;
    /// fewer at the end. Nodes of a cluster that could not be read are left out.
    ///
    /// # Errors
    /// As every read.
    pub(super) async fn read(&mut self, choice: &Choice, wanted: usize) -> Result<Page> {
        let mut read = Page::default();
        while read.chosen.len() < wanted
            && let Some(mut page) = self.next_there_is(choice).await?
        {
            // A look at a key of a file brings them along.
            if let Origin::Walk(walk) = &mut self.from {
                walk.measure(page.chosen.iter_mut().map(|record| &mut record.seen)).await?;
            }
            read.records += page.records;
            read.chosen.append(&mut page.chosen);
        }
        Ok(read)
    }

    /// The next page; where a walk ends with nodes left out, that is kept for later.
    async fn next_there_is(&mut self, choice: &Choice) -> Result<Option<Page>> {
        match self.next(choice).await {
            Err(error) => match error.downcast() {
                Ok(missed @ StoreError::Missed { .. }) => {
                    self.missed = Some(missed);
                    Ok(None)
                }
                Ok(error) => Err(error.into()),
                Err(error) => Err(error),
            },
            page => page,
        }
    }

    async fn records(&mut self, choice: &Choice) -> Result<Option<Vec<Record>>> {
        match &mut self.from {
            Origin::Walk(walk) => {
                let may_choose = |key: &[u8]| choice.may_choose(key);
                Ok(lookup::next_page(walk, &choice.catalog, &choice.thresholds, may_choose).await?)
            }
            Origin::Keys { file, reader, looked_at } => {
                let keys = file.next(PAGE)?;
                if keys.is_empty() {
                    return Ok(None);
                }
                *looked_at += keys.len() as u64;
                let lookup = Lookup { head: choice.head(), thresholds: choice.thresholds.clone() };
                let found = lookup.find(reader, &choice.catalog, keys).await?;
                let silent = found.iter().find_map(|found| found.silent().cloned());
                self.missed = self.missed.take().or(silent);
                let mut known = HashSet::new();
                let records = found.into_iter().flat_map(|found| found.records).filter(|record| choice.scans(record));
                Ok(Some(records.filter(|record| known.insert(record.seen.slots[0].redis_key.clone())).collect()))
            }
        }
    }
}

/// The records read as far as it takes to tell that nothing changed: where the beginning is not enough they are read
/// anew, whole, and chosen anew.
///
/// # Errors
/// As every read.
pub(super) async fn told_apart(reader: &mut Reader, choice: &Choice, records: Vec<Record>) -> Result<Vec<Record>> {
    let (mut told, others): (Vec<_>, Vec<_>) = records.into_iter().partition(is_told_by_beginning);
    let places: Vec<Candidate> = others.into_iter().map(Candidate::from).collect();
    let wanted: Vec<_> = places.iter().map(|place| place.redis_keys.clone()).collect();
    let seen = reader.observe(&wanted, Head::Whole).await?;
    for (place, seen) in places.iter().zip(seen) {
        let Ok(seen) = seen else { continue };
        let record = candidates::records(&choice.catalog, place, &seen, &choice.thresholds).into_iter().next();
        told.extend(record.filter(|record| choice.chooses(record)));
    }
    Ok(told)
}

/// A result that expires is told by its beginning, its length and the time it has left, which goes up when it is written
/// anew. Nothing but all of its bytes tells a result that stays for ever, and a lock of another owner.
pub(super) fn is_told_by_beginning(record: &Record) -> bool {
    let expires = |slot: &SeenSlot| record.state == State::Completed && slot.expiry != Expiry::Never;
    record.seen.slots.iter().all(|slot| slot.content.is_whole() || expires(slot))
}
