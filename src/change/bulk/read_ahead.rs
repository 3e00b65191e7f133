//! Reading ahead: while a batch is changed, the records after it are found and wait for their
//! change.

use anyhow::{Error, Result};
use indicatif::ProgressBar;
use tokio::sync::mpsc::{Receiver, Sender};

use super::recheck::{SelectedRecord, refresh};
use super::rule::{BulkRule, Planned};
use super::selected_counts::SelectedCounts;
use super::source::RecordSource;
use crate::scan::SelectedPage;
use crate::store::RecordReader;

/// Finds the records of a run, and queues them for their change. The queue is bounded, so that a
/// scan waits for the changes, and memory stays flat.
pub(super) struct ReadAhead<'a, R: BulkRule> {
    pub(super) rule: &'a R,
    pub(super) reader: RecordReader,
    /// True if a grace or a rate makes records wait between the read and the recheck.
    pub(super) waits: bool,
    /// True if `--owner-alive` decides about locks of [`Planned::needs_dead_owner`]; otherwise
    /// these are left to expire.
    pub(super) asks_owners: bool,
    /// Where records are counted that were not counted before the prompt; `None` if they were.
    pub(super) count_into: Option<&'a mut SelectedCounts<R::Group>>,
    /// Shows how many keys were scanned, if their number is the progress of the run.
    pub(super) bar: Option<ProgressBar>,
}

impl<R: BulkRule> ReadAhead<'_, R> {
    /// Queues the records that were kept, then those of a source, then the error that ended the
    /// reading. Ends early once the queue is closed.
    pub(super) async fn read(
        &mut self,
        kept: Vec<SelectedRecord>,
        source: Option<&mut RecordSource<'_>>,
        queue: Sender<Result<SelectedRecord>>,
    ) {
        send_all(kept, &queue).await;
        if let Some(source) = source
            && let Err(error) = self.read_source(source, &queue).await
        {
            let _ = queue.send(Err(error)).await;
        }
    }

    async fn read_source(
        &mut self,
        source: &mut RecordSource<'_>,
        queue: &Sender<Result<SelectedRecord>>,
    ) -> Result<()> {
        while let Some(page) = source.next_page_to_change(self.rule).await? {
            if let Some(counts) = &mut self.count_into {
                counts.add(&page, source.keys());
            }
            let selected = self.selected(page).await?;
            send_all(selected, queue).await;
            if let Some(bar) = &self.bar {
                bar.set_position(source.keys_iterated());
            }
        }
        Ok(())
    }

    /// The records of a page that wait for their change.
    async fn selected(
        &mut self,
        page: SelectedPage<Planned<R::Group>>,
    ) -> Result<Vec<SelectedRecord>> {
        let mut records = Vec::with_capacity(page.selected.len());
        for (record, planned) in page.selected {
            if !planned.is_left_to_expire(self.asks_owners) {
                records.push(record);
            }
        }
        // A record that waits is recognised later by all of its bytes; one that does not wait needs
        // at least its deadline.
        let waits = self.waits;
        let to_refresh =
            records.iter_mut().filter(|record| waits || record.seen.has_unknown_deadline());
        refresh(&mut self.reader, self.rule, to_refresh).await?;
        let mut selected = Vec::with_capacity(records.len());
        for record in records {
            let record = SelectedRecord::new(record);
            selected.push(if waits { record.compact() } else { record });
        }
        Ok(selected)
    }
}

async fn send_all(records: Vec<SelectedRecord>, queue: &Sender<Result<SelectedRecord>>) {
    for record in records {
        // The changes have ended, e.g. at the limit.
        if queue.send(Ok(record)).await.is_err() {
            return;
        }
    }
}

/// The records that wait for their change.
pub(super) struct PendingRecords {
    queue: Receiver<Result<SelectedRecord>>,
    /// Why no more could be read.
    failed: Option<Error>,
}

impl PendingRecords {
    /// The records that come out of a queue.
    pub(super) fn new(queue: Receiver<Result<SelectedRecord>>) -> Self {
        Self { queue, failed: None }
    }

    /// The next `most` records; fewer only at the end.
    ///
    /// # Errors
    /// Why no more could be read, once all records before are taken.
    pub(super) async fn next(&mut self, most: usize) -> Result<Vec<SelectedRecord>> {
        let mut batch = Vec::new();
        while batch.len() < most
            && self.failed.is_none()
            && let Some(record) = self.queue.recv().await
        {
            match record {
                Ok(record) => batch.push(record),
                Err(error) => self.failed = Some(error),
            }
        }
        match self.failed.take_if(|_| batch.is_empty()) {
            Some(error) => Err(error),
            None => Ok(batch),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::domain::record::TimeLeft;
    use crate::domain::samples::{CHI_LOCK, chi};

    /// Rule: a run takes no more records than its limit leaves room for, and ends with why no more
    /// could be read.
    #[tokio::test]
    async fn no_more_records_are_taken_than_are_asked_for() {
        let (queue, waiting) = mpsc::channel(8);
        for _ in 0..5 {
            queue.send(Ok(SelectedRecord::new(chi(CHI_LOCK, TimeLeft::NoExpiry)))).await.unwrap();
        }
        queue.send(Err(anyhow::anyhow!("the server is gone"))).await.unwrap();
        drop(queue);
        let mut pending = PendingRecords::new(waiting);
        assert_eq!(pending.next(2).await.unwrap().len(), 2);
        assert_eq!(pending.next(0).await.unwrap().len(), 0);
        assert_eq!(pending.next(2).await.unwrap().len(), 2);
        assert_eq!(pending.next(2).await.unwrap().len(), 1, "those before the error");
        assert_eq!(
            pending.next(2).await.err().map(|error| error.to_string()),
            Some("the server is gone".to_owned())
        );
    }
}
