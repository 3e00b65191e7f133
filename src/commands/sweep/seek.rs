//! The first look: every orphan in the keyspace, counted; and as many as are acted on at a time, kept.

use anyhow::Result;

use crate::context::Context;
use crate::domain::candidates::{self, Candidate};
use crate::domain::catalog::{Catalog, LONG_HEAD_BYTES};
use crate::domain::diagnosis::Thresholds;
use crate::domain::observation::Observation;
use crate::domain::orphan::{self, Orphan, UNREADABLE};
use crate::domain::record::Record;
use crate::domain::second_look::FirstLook;
use crate::domain::tally::Tally;
use crate::exit::Stop;
use crate::interrupt::Interrupt;
use crate::lookup;
use crate::store::{Head, Reader, StoreError, Walk};

/// Orphans that are looked at twice and acted on at a time, whatever their number: memory stays flat.
const CHUNK: usize = 10_000;

/// Bytes of each value that are read at the first look: a lock fits.
const HEAD_BYTES: usize = 128;

/// What is sought.
pub(super) struct Seeker {
    pub(super) catalog: Catalog,
    /// Codes of findings.
    pub(super) sought: Vec<&'static str>,
    pub(super) thresholds: Thresholds,
}

/// An orphan after the first look.
pub(super) struct Place {
    pub(super) candidate: Candidate,
    pub(super) first: FirstLook,
}

impl From<Record> for Place {
    fn from(record: Record) -> Self {
        Self { first: FirstLook::new(&record.seen), candidate: record.into() }
    }
}

/// What the first walk found.
pub(super) struct Survey {
    pub(super) tally: Tally<&'static str>,
    /// Redis keys that were looked at.
    pub(super) keys: u64,
    /// The orphans; `None` when there are more than are acted on at a time.
    pub(super) places: Option<Vec<Place>>,
    /// Why nodes of a cluster were left out, if they were.
    pub(super) missed: Option<StoreError>,
    /// That records were left out which the user may not read.
    pub(super) forbidden: Option<String>,
}

impl Seeker {
    /// The orphan that was seen at a candidate's Redis keys, if it is one.
    pub(super) fn orphan_at(&self, candidate: Candidate, seen: Observation) -> Option<(Record, Orphan)> {
        self.orphan(candidates::first_record(&self.catalog, candidate, seen, &self.thresholds)?)
    }

    /// The orphan that a record is, if it is one.
    fn orphan(&self, record: Record) -> Option<(Record, Orphan)> {
        let orphan = orphan::of(&record, &self.sought)?;
        Some((record, orphan))
    }

    /// Walks the keyspace once.
    ///
    /// # Errors
    /// Interrupted, or whatever the server says; nothing was changed then.
    pub(super) async fn survey(&self, context: &Context, reader: Reader, interrupt: &Interrupt) -> Result<Survey> {
        let progress = context.ui.progress("keys looked at");
        let mut walk = self.walk(reader).await?;
        let mut survey =
            Survey { tally: Tally::default(), keys: 0, places: Some(Vec::new()), missed: None, forbidden: None };
        loop {
            let next = interrupt.unless_raised(self.orphans_there_are(&mut walk, &mut survey.missed)).await;
            let Some(page) = next.ok_or_else(|| Stop::interrupted("interrupted; nothing was changed"))?? else { break };
            for (record, orphan) in page {
                survey.tally.add(orphan.code, &record, orphan::age(&record));
                survey.places = survey.places.filter(|places| places.len() < CHUNK);
                if let Some(places) = &mut survey.places {
                    places.push(record.into());
                }
            }
            progress.set_position(walk.looked_at());
        }
        (survey.keys, survey.forbidden) = (walk.looked_at(), walk.forbidden());
        progress.finish_and_clear();
        Ok(survey)
    }

    /// A new walk, for orphans that come chunk by chunk.
    ///
    /// # Errors
    /// As [`Walk::start`].
    pub(super) async fn walk(&self, reader: Reader) -> Result<Walk> {
        let least = if self.sought.contains(&UNREADABLE) { LONG_HEAD_BYTES } else { HEAD_BYTES };
        Ok(Walk::start(reader, &self.catalog, Head::Bytes(least)).await?.without_lengths())
    }

    /// The next chunk of a walk; an empty one at its end. Nodes of a cluster that could not be read are left out.
    ///
    /// # Errors
    /// As every read.
    pub(super) async fn chunk(&self, walk: &mut Walk, missed: &mut Option<StoreError>) -> Result<Vec<Place>> {
        let mut places = Vec::new();
        while places.len() < CHUNK
            && let Some(page) = self.orphans_there_are(walk, missed).await?
        {
            places.extend(page.into_iter().map(|(record, _)| Place::from(record)));
        }
        Ok(places)
    }

    /// The orphans of a walk's next page; where it ends with nodes left out, that is kept for later.
    async fn orphans_there_are(
        &self,
        walk: &mut Walk,
        missed: &mut Option<StoreError>,
    ) -> Result<Option<Vec<(Record, Orphan)>>> {
        match self.orphans(walk).await {
            Err(error @ StoreError::Missed { .. }) => {
                *missed = Some(error);
                Ok(None)
            }
            page => Ok(page?),
        }
    }

    /// The orphans of a walk's next page, the lengths of their values known; `None` at the end.
    async fn orphans(&self, walk: &mut Walk) -> Result<Option<Vec<(Record, Orphan)>>, StoreError> {
        let page = lookup::next_page(walk, &self.catalog, &self.thresholds, |_| true).await?;
        let Some(page) = page else { return Ok(None) };
        let mut orphans: Vec<_> = page.into_iter().filter_map(|record| self.orphan(record)).collect();
        walk.measure(orphans.iter_mut().map(|(record, _)| &mut record.seen)).await?;
        Ok(Some(orphans))
    }
}
