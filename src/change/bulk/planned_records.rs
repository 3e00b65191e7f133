//! The records of a plan that are still as they were planned.

use std::collections::BTreeMap;

use anyhow::Result;

use super::recheck::{MAX_RECHECK_BYTES, note_unread};
use super::rule::{BulkRule, Planned};
use crate::change::plan::Plan;
use crate::domain::record::locate;
use crate::domain::select::{Coverage, Selected};
use crate::exit::CommandError;
use crate::interrupt::Interrupt;
use crate::scan::{ScanEnd, ScanReport, SelectedPage};
use crate::store::{MAX_WHOLE, RecordReader, StoreError};
use crate::terminal::frame::ProgressLine;

/// Records that are read in one round trip: so few that other clients do not wait.
const PAGE: usize = 200;

pub(super) struct PlannedRecords<'a> {
    pub(super) plan: &'a mut Plan,
    pub(super) reader: RecordReader,
    pub(super) interrupt: Interrupt,
    pub(super) progress: ProgressLine,
    /// Records of the plan that were read.
    pub(super) keys: u64,
    pub(super) coverage: Coverage,
    /// Why some records could not be read.
    pub(super) unread: Option<StoreError>,
}

impl PlannedRecords<'_> {
    pub(super) async fn next_page<R: BulkRule>(
        &mut self,
        rule: &R,
    ) -> Result<Option<SelectedPage<Planned<R::Group>>>> {
        let interrupt = self.interrupt.clone();
        match interrupt.unless_raised(self.read_page(rule)).await {
            Some(page) => page,
            None => Err(CommandError::interrupted("interrupted").into()),
        }
    }

    async fn read_page<R: BulkRule>(
        &mut self,
        rule: &R,
    ) -> Result<Option<SelectedPage<Planned<R::Group>>>> {
        let scope = rule.scope();
        let mut page = Vec::new();
        let mut wanted = Vec::new();
        let mut bytes = 0;
        while page.len() < PAGE
            && bytes < MAX_RECHECK_BYTES
            && let Some(record) = self.plan.next_record()?
        {
            bytes += record.read_bytes() as u64;
            let name = self.plan.name_of(&record)?;
            let Some(candidate) = locate::for_name(&scope.catalog, &name) else {
                return Err(self.plan.refused(format!("no schema has {}", name.text())).into());
            };
            wanted.push(candidate.redis_keys.clone());
            page.push((record, name, candidate));
        }
        if page.is_empty() {
            return Ok(None);
        }
        let mut read = self.reader.read_for_change(&wanted, 0).await?;
        for (index, (record, ..)) in page.iter().enumerate() {
            if record.read_bytes() > MAX_WHOLE {
                let long = &wanted[index..=index];
                let again = self.reader.read_for_change(long, record.read_bytes()).await?;
                read.splice(index..=index, again);
            }
        }
        self.keys += page.len() as u64;
        self.progress.set_position(self.keys);
        let records = page.len();
        let mut selected = Vec::new();
        for ((record, name, candidate), now) in page.into_iter().zip(read) {
            let now = match now {
                Ok(now) => now,
                Err(error) => {
                    note_unread(&self.reader, error, &mut self.unread)?;
                    continue;
                }
            };
            if record.is_still(&now)
                && let Some(now) =
                    locate::first_record(&scope.catalog, candidate, now, &scope.thresholds)
                && let Selected::Yes(planned) = rule.select(&now)
                && (0..now.seen.keys.len()).all(|index| {
                    let is_removed = planned.key_indexes.contains(&index)
                        && !now.seen.keys[index].content.is_absent();
                    is_removed == record.removes(index)
                })
            {
                selected.push((now, planned));
            } else {
                self.coverage.named.add_left(name, "it changed since the plan".to_owned());
            }
        }
        Ok(Some(SelectedPage { records, selected }))
    }

    pub(super) fn finish(self) -> ScanReport {
        self.progress.finish_and_clear();
        ScanReport {
            end: self.unread.map_or(ScanEnd::Complete, ScanEnd::Incomplete),
            coverage: self.coverage,
            keys: self.keys,
            iterated: self.keys,
            forbidden: None,
            keys_of_other_schemas: BTreeMap::new(),
        }
    }
}
