//! The first look: every orphan in the keyspace, counted; and as many as are acted on at a time, kept.

use anyhow::Result;

use crate::change::Interrupt;
use crate::context::Context;
use crate::domain::candidates::{self, Candidate};
use crate::domain::catalog::Catalog;
use crate::domain::diagnosis::Thresholds;
use crate::domain::observation::Observation;
use crate::domain::orphan::{self, Orphan};
use crate::domain::record::Record;
use crate::domain::second_look::FirstLook;
use crate::domain::tally::Tally;
use crate::exit::Stop;
use crate::store::{Head, Reader, Walk};

/// Orphans that are looked at twice and acted on at a time, whatever their number: memory stays flat.
const CHUNK: usize = 10_000;

/// Bytes of each value that are read at the first look: a lock fits.
const HEAD: Head = Head::Bytes(1024);

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

/// What the first walk found.
pub(super) struct Survey {
    pub(super) tally: Tally<&'static str>,
    /// Redis keys that were looked at.
    pub(super) keys: u64,
    /// The orphans; `None` when there are more than are acted on at a time.
    pub(super) places: Option<Vec<Place>>,
}

impl Seeker {
    /// The orphan that was seen at a candidate's Redis keys, if it is one.
    pub(super) fn orphan(&self, candidate: &Candidate, seen: &Observation) -> Option<(Record, Orphan)> {
        let record = candidates::records(&self.catalog, candidate, seen, &self.thresholds).into_iter().next()?;
        let orphan = orphan::of(&record, &self.sought)?;
        Some((record, orphan))
    }

    /// Walks the keyspace once.
    ///
    /// # Errors
    /// Interrupted, or whatever the server says; nothing was changed then.
    pub(super) async fn survey(&self, context: &Context, reader: Reader, interrupt: &Interrupt) -> Result<Survey> {
        let progress = context.ui.progress("keys looked at");
        let mut walk = Walk::start(reader, &self.catalog, HEAD).await?.without_lengths();
        let mut survey = Survey { tally: Tally::default(), keys: 0, places: Some(Vec::new()) };
        loop {
            let next = interrupt.unless_raised(walk.next(&self.catalog, |_| true)).await;
            let Some(page) = next.ok_or_else(|| Stop::interrupted("interrupted; nothing was changed"))?? else { break };
            for (candidate, seen) in page {
                let Some((record, orphan)) = self.orphan(&candidate, &seen) else { continue };
                survey.tally.add(orphan.code, &record, orphan::age(&record));
                survey.places = survey.places.filter(|places| places.len() < CHUNK);
                if let Some(places) = &mut survey.places {
                    places.push(Place { first: FirstLook::new(&seen), candidate });
                }
            }
            progress.set_position(walk.looked_at());
        }
        survey.keys = walk.looked_at();
        progress.finish_and_clear();
        Ok(survey)
    }

    /// A new walk, for orphans that come chunk by chunk.
    ///
    /// # Errors
    /// As [`Walk::start`].
    pub(super) async fn walk(&self, reader: Reader) -> Result<Walk> {
        Ok(Walk::start(reader, &self.catalog, HEAD).await?.without_lengths())
    }

    /// The next chunk of a walk; an empty one at its end.
    ///
    /// # Errors
    /// As every read.
    pub(super) async fn chunk(&self, walk: &mut Walk) -> Result<Vec<Place>> {
        let mut places = Vec::new();
        while places.len() < CHUNK
            && let Some(page) = walk.next(&self.catalog, |_| true).await?
        {
            let orphans = page.into_iter().filter(|(candidate, seen)| self.orphan(candidate, seen).is_some());
            places.extend(orphans.map(|(candidate, seen)| Place { first: FirstLook::new(&seen), candidate }));
        }
        Ok(places)
    }
}
