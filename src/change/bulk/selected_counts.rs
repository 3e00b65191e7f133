//! The records of a run, counted before the prompt or while they are changed.

use std::collections::BTreeMap;

use anyhow::Result;

use super::recheck::{SelectedRecord, is_too_large, refresh};
use super::rule::{BulkRule, Planned};
use super::source::RecordSource;
use crate::domain::record::Record;
use crate::domain::select::{Coverage, Tally};
use crate::exit::CommandError;
use crate::interrupt::Interrupt;
use crate::scan::{ScanEnd, ScanReport, SelectedPage};
use crate::store::{RecordReader, StoreError};

/// Records that are kept between counting and changing. If more are selected, a second scan finds
/// them, so that memory stays flat.
pub(super) const MAX_KEPT_RECORDS: usize = 10_000;

/// The selected records of a run, counted before the prompt, or while they are changed.
pub struct SelectedCounts<G> {
    /// The selected records, counted by group.
    pub tally: Tally<G>,
    /// Redis keys, or named keys, that were read.
    pub keys: u64,
    /// Records of the schemas that were read, selected or not.
    pub records: u64,
    /// Selected locks of [`Planned::needs_dead_owner`].
    pub need_dead_owner: u64,
    /// Selected records that no change touches, because a value is too large to tell what the
    /// record is. If more are selected than are kept, they are not counted before the change.
    pub too_large: u64,
    /// The selected records; `None` if there are more than [`MAX_KEPT_RECORDS`].
    pub kept: Option<Vec<SelectedRecord>>,
    /// A warning that records were left out that the Redis user may not read.
    pub forbidden: Option<String>,
    /// Why nodes of a cluster were left out, if any were.
    pub unreachable: Option<StoreError>,
    /// What was left out, and which default TTLs the records contradict.
    pub coverage: Coverage,
    /// As [`ScanReport::keys_of_other_schemas`].
    pub keys_of_other_schemas: BTreeMap<String, u64>,
}

impl<G: Ord> Default for SelectedCounts<G> {
    fn default() -> Self {
        Self {
            tally: Tally::default(),
            keys: 0,
            records: 0,
            need_dead_owner: 0,
            too_large: 0,
            kept: Some(Vec::new()),
            forbidden: None,
            unreachable: None,
            coverage: Coverage::default(),
            keys_of_other_schemas: BTreeMap::new(),
        }
    }
}

impl<G: Ord + Clone> SelectedCounts<G> {
    /// Counts the records that a source selects, and keeps them. Locks of
    /// [`Planned::needs_dead_owner`] are kept only if `keeps_needing_dead_owner`.
    ///
    /// # Errors
    /// The server could not be asked; Ctrl-C. Nothing was changed.
    pub(super) async fn count<R: BulkRule<Group = G>>(
        rule: &R,
        mut source: RecordSource<'_>,
        reader: &mut RecordReader,
        keeps_needing_dead_owner: bool,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let mut counts = Self::default();
        loop {
            let page = source.next_page(rule).await;
            if interrupt.is_raised() {
                let message =
                    format!("interrupted after {} keys; nothing was changed", source.keys());
                return Err(CommandError::interrupted(message).into());
            }
            let Some(page) = page? else { break };
            counts.add(&page, source.keys());
            let mut kept = Vec::with_capacity(page.selected.len());
            for (record, planned) in page.selected {
                if keeps_needing_dead_owner || !planned.needs_dead_owner {
                    kept.push(record);
                }
            }
            counts.keep(reader, rule, kept).await?;
        }
        counts.add_report(source.finish());
        Ok(counts)
    }

    /// Counts a page; `keys` were read so far.
    pub(super) fn add(&mut self, page: &SelectedPage<Planned<G>>, keys: u64) {
        self.keys = keys;
        self.records += page.records as u64;
        for (record, planned) in &page.selected {
            self.need_dead_owner += u64::from(planned.needs_dead_owner);
            self.tally.add(planned.group.clone(), record, planned.age);
        }
    }

    /// Adds what a source reports at its end.
    pub(super) fn add_report(&mut self, report: ScanReport) {
        self.keys = report.keys;
        self.forbidden = report.forbidden;
        self.coverage = report.coverage;
        self.keys_of_other_schemas = report.keys_of_other_schemas;
        self.unreachable = match report.end {
            ScanEnd::Incomplete(error) => Some(error),
            ScanEnd::Complete | ScanEnd::Interrupted | ScanEnd::Failed(_) => None,
        };
    }

    async fn keep(
        &mut self,
        reader: &mut RecordReader,
        rule: &impl BulkRule,
        mut records: Vec<Record>,
    ) -> Result<()> {
        let Some(kept) = &mut self.kept else { return Ok(()) };
        if kept.len() + records.len() > MAX_KEPT_RECORDS {
            self.kept = None;
            return Ok(());
        }
        refresh(reader, rule, records.iter_mut()).await?;
        for record in records {
            self.too_large += u64::from(is_too_large(&record));
            kept.push(SelectedRecord::new(record).compact());
        }
        Ok(())
    }
}
