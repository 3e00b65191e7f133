//! What a run is about, counted before anybody is asked.

use anyhow::Result;

use super::place::Place;
use super::rule::Rule;
use super::second_look::{is_too_large, sharpen};
use super::source::{Page, Source};
use crate::context::Context;
use crate::domain::record::Record;
use crate::domain::select::{Coverage, Tally};
use crate::exit::Stop;
use crate::interrupt::Interrupt;
use crate::store::{Reader, StoreError};

/// Records that are kept between showing and changing. Where more are chosen, a second walk finds them, so that memory stays
/// flat.
pub(super) const CHUNK: usize = 10_000;

pub struct Survey<G> {
    pub tally: Tally<G>,
    /// Redis keys, or keys of a file, that were looked at.
    pub looked_at: u64,
    /// Records of the schemas that were read, chosen or not.
    pub records: u64,
    /// Chosen records that end by themselves.
    pub ending: u64,
    /// Chosen records that no change touches, because a value is too large to tell what the record is. Where more are
    /// chosen than are kept, they are not counted before the change.
    pub too_large: u64,
    /// The chosen records; `None` where there are more than [`CHUNK`].
    pub places: Option<Vec<Place>>,
    /// Says that records were left out which the user may not read.
    pub forbidden: Option<String>,
    /// Why nodes of a cluster were left out, where any were.
    pub missed: Option<StoreError>,
    /// What was left out, and which default TTLs do not hold.
    pub coverage: Coverage,
}

impl<G: Ord> Default for Survey<G> {
    fn default() -> Self {
        let (tally, places) = (Tally::default(), Some(Vec::new()));
        let (forbidden, missed, coverage) = (None, None, Coverage::default());
        Self { tally, looked_at: 0, records: 0, ending: 0, too_large: 0, places, forbidden, missed, coverage }
    }
}

impl<G: Ord + Clone> Survey<G> {
    /// Counts what a source gives. Records that end by themselves are kept only where `keeps_ending`.
    pub async fn take<R: Rule<Group = G>>(
        context: &Context,
        rule: &R,
        mut source: Source<'_>,
        reader: &mut Reader,
        keeps_ending: bool,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let progress = context.ui.progress("keys looked at");
        let interrupted = || Stop::interrupted("interrupted; nothing was changed");
        let mut survey = Self::default();
        while let Some(page) = interrupt.unless_raised(source.next(rule)).await.ok_or_else(interrupted)?? {
            survey.add(&page, source.looked_at());
            let mut kept = Vec::with_capacity(page.selected.len());
            for (record, planned) in page.selected {
                if keeps_ending || !planned.ends_by_itself {
                    kept.push(record);
                }
            }
            survey.keep(reader, rule, kept).await?;
            progress.set_position(source.looked_at());
        }
        progress.finish_and_clear();
        survey.missed = source.missed();
        survey.close(&source);
        Ok(survey)
    }

    /// Takes over what a source says at its end.
    pub(super) fn close(&mut self, source: &Source<'_>) {
        self.forbidden = source.forbidden();
        self.coverage = source.coverage().clone();
    }

    pub(super) fn add(&mut self, page: &Page<G>, looked_at: u64) {
        self.records += page.records as u64;
        for (record, planned) in &page.selected {
            self.ending += u64::from(planned.ends_by_itself);
            self.tally.add(planned.group.clone(), record, planned.age);
        }
        self.looked_at = looked_at;
    }

    async fn keep(&mut self, reader: &mut Reader, rule: &impl Rule, mut records: Vec<Record>) -> Result<()> {
        let Some(places) = self.places.as_mut().filter(|places| places.len() + records.len() <= CHUNK) else {
            self.places = None;
            return Ok(());
        };
        sharpen(reader, rule, records.iter_mut()).await?;
        self.too_large += records.iter().filter(|record| is_too_large(record)).count() as u64;
        places.extend(records.into_iter().map(|record| Place::of(record).small()));
        Ok(())
    }
}
