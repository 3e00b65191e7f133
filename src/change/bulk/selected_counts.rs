//! The records of a run, counted before the prompt or while they are changed.

use std::collections::BTreeMap;

use anyhow::Result;

use super::recheck::{SelectedRecord, is_too_large, read_rest, refresh};
use super::rule::{BulkRule, Planned};
use super::source::RecordSource;
use crate::change::removal_plan::PlanWriter;
use crate::domain::covered::Covered;
use crate::domain::record::{Author, Record, RecordName};
use crate::domain::schema::{Catalog, State};
use crate::domain::select::{Coverage, Selected, Tally};
use crate::exit::CommandError;
use crate::interrupt::Interrupt;
use crate::render::{coverage, words};
use crate::scan::{ScanEnd, ScanReport, SelectedPage};
use crate::session::Session;
use crate::store::{RecordReader, StoreError};

/// Records that are kept between counting and changing. If more are selected, a second scan finds
/// them, so that memory stays flat.
pub(super) const MAX_KEPT_RECORDS: usize = 10_000;

/// Bytes of long values that are read to the end before the prompt, for which the operator waits. A
/// recheck reads them once more.
const MAX_JUDGED_BYTES: u64 = 256 << 20;

/// The selected records of a run, counted before the prompt, or while they are changed.
#[derive(Default)]
pub struct SelectedCounts<G> {
    /// The selected records, counted by group.
    pub tally: Tally<G>,
    /// Redis keys, or named keys, that were read.
    pub keys: u64,
    /// Records of the schemas that were read, selected or not.
    pub records: u64,
    /// Selected locks that are left to expire.
    pub left_to_expire: u64,
    /// Selected locks that name no owner, and that change all the same.
    pub without_owner: u64,
    /// Selected records that no change touches, because a value is too large to tell what the
    /// record is. If more are selected than are kept, they are not counted before the change.
    pub too_large: u64,
    /// Records that are not selected, because only the beginnings of their values fit the schema:
    /// the whole values have no format of it.
    pub unrecognised: u64,
    /// The first of these records, as an example.
    pub first_unrecognised: Option<RecordName>,
    /// Selected records that may be such, because the rest of a value was not read.
    pub unjudged: u64,
    /// How many bytes of long values may still be read to the end.
    bytes_left: u64,
    /// The selected records; `None` if they are counted while they are changed, or if there are more
    /// than [`MAX_KEPT_RECORDS`].
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

impl<G: Ord + Clone + Default> SelectedCounts<G> {
    /// Counts the records that a source selects, and keeps those that are not left to expire, also in
    /// the plan if one is made. `asks_owners` is true with `--owner-alive`.
    ///
    /// # Errors
    /// The server could not be asked; Ctrl-C. Nothing was changed.
    pub(super) async fn count<R: BulkRule<Group = G>>(
        rule: &R,
        mut source: RecordSource<'_>,
        reader: &mut RecordReader,
        asks_owners: bool,
        mut plan: Option<&mut PlanWriter>,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let mut counts =
            Self { bytes_left: MAX_JUDGED_BYTES, kept: Some(Vec::new()), ..Self::default() };
        loop {
            let page = source.next_page(rule).await;
            if interrupt.is_raised() {
                let message =
                    format!("interrupted after {} keys; nothing was changed", source.keys());
                return Err(CommandError::interrupted(message).into());
            }
            let Some(page) = page? else { break };
            let records = page.records;
            let judged = counts.judge(reader, rule, page.selected).await?;
            let page = SelectedPage { records, selected: judged };
            counts.add(&page, source.keys());
            let mut kept = Vec::with_capacity(page.selected.len());
            for (record, planned) in page.selected {
                if planned.is_left_to_expire(asks_owners) {
                    counts.left_to_expire += 1;
                } else {
                    counts.without_owner += u64::from(planned.has_no_owner);
                    kept.push(record);
                }
            }
            if let Some(plan) = &mut plan
                && !kept.is_empty()
            {
                plan.add(reader, &kept).await?;
            }
            counts.keep(kept);
        }
        counts.add_report(source.finish());
        Ok(counts)
    }

    /// Counts a page; `keys` were read so far.
    pub(super) fn add(&mut self, page: &SelectedPage<Planned<G>>, keys: u64) {
        self.keys = keys;
        self.records += page.records as u64;
        for (record, planned) in &page.selected {
            self.tally.add(planned.group.clone(), record, planned.age);
        }
    }

    /// What was read of the records of these schemas; `None` if keys were named one by one.
    pub fn covered(&self, catalog: Option<&Catalog>) -> Covered {
        let mut covered = self.coverage.covered(catalog, self.forbidden.as_deref());
        if self.unrecognised > 0 {
            covered.leave_out(format!("{} records", self.unrecognised), "their formats");
        }
        covered
    }

    /// Prints how many of the selected records no change touches, because a value is larger than is
    /// ever read, and how many only begin as those of the schema, or may be such.
    pub fn print_skipped(&self, session: &mut Session) {
        if self.too_large > 0 {
            let records = words::counted(self.too_large, "record");
            let message = format!("Skipped, because a value is larger than 16 MiB: {records}.");
            session.ui.status(&message);
        }
        if self.unrecognised > 0 {
            let records = words::counted(self.unrecognised, "record");
            let example = coverage::example(self.first_unrecognised.as_ref());
            session.ui.status(&format!(
                "Not changed, because the whole value matches no format of the schema: \
                {records}{example}."
            ));
        }
        if self.unjudged > 0 {
            let values = words::counted(self.unjudged, "value");
            session.ui.status(&format!(
                "Only the beginning was read of {values}. A record whose whole value matches no \
                format of the schema is not changed."
            ));
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

    /// The records of a page whose whole values fit the schema. The others are counted. Once more
    /// records are selected than are kept, values are judged by their beginnings, as in the scan.
    ///
    /// # Errors
    /// The server could not be asked.
    async fn judge(
        &mut self,
        reader: &mut RecordReader,
        rule: &impl BulkRule<Group = G>,
        mut selected: Vec<(Record, Planned<G>)>,
    ) -> Result<Vec<(Record, Planned<G>)>> {
        if self.kept.is_some() {
            refresh(reader, rule, selected.iter_mut().map(|(record, _)| record)).await?;
            let records = selected.iter_mut().map(|(record, _)| record);
            read_rest(reader, rule, records, &mut self.bytes_left).await?;
        }
        let mut judged = Vec::with_capacity(selected.len());
        for (record, planned) in selected {
            if record.author.is_foreign() && !planned.is_only_own_lock(&record) {
                self.add_unrecognised(&record);
                continue;
            }
            // A value may be cut off behind the beginning that selected it.
            if record.state == State::Unreadable && matches!(rule.select(&record), Selected::No) {
                self.add_unrecognised(&record);
                continue;
            }
            if is_too_large(&record) {
                self.too_large += 1;
            } else if record.author == Author::Provisional {
                self.unjudged += 1;
            }
            judged.push((record, planned));
        }
        Ok(judged)
    }

    fn add_unrecognised(&mut self, record: &Record) {
        self.unrecognised += 1;
        if self.first_unrecognised.is_none() {
            self.first_unrecognised = Some(RecordName::of(record));
        }
    }

    fn keep(&mut self, records: Vec<Record>) {
        let Some(kept) = &mut self.kept else { return };
        if kept.len() + records.len() > MAX_KEPT_RECORDS {
            self.kept = None;
            return;
        }
        for record in records {
            kept.push(SelectedRecord::new(record).compact());
        }
    }
}
