//! Reading ahead: while a batch is changed, the records after it are found, and wait in line.

use anyhow::{Error, Result};
use indicatif::ProgressBar;
use tokio::sync::mpsc::{Receiver, Sender};

use super::place::SelectedRecord;
use super::recheck::refresh;
use super::rule::{BulkRule, Planned};
use super::selected::{Preview, RecordSource};
use crate::scan::ScanPage;
use crate::store::RecordReader;

/// Where the records of a run come from.
pub enum Supply<'a> {
    Kept(Vec<SelectedRecord>),
    /// A scan, or the keys of a file, from the beginning.
    Source(Box<RecordSource<'a>>),
}

pub(super) struct Ahead<'a, R: BulkRule> {
    pub rule: &'a R,
    pub reader: RecordReader,
    /// True when records wait between the look that chose them and the change.
    pub waits: bool,
    /// True when owners are asked whether they are alive.
    pub asks_owners: bool,
    pub uncounted: Option<&'a mut Preview<R::Group>>,
    /// Shows how many keys were scanned, if that is how far the run is.
    pub scanned: Option<ProgressBar>,
}

impl Supply<'_> {
    /// True if the records come from a scan of the keyspace.
    pub fn scans(&self) -> bool {
        matches!(self, Self::Source(source) if source.is_scan())
    }
}

impl<R: BulkRule> Ahead<'_, R> {
    /// Puts all places of a supply in line, and behind them why no more could be read, until nobody waits for them any
    /// longer.
    pub async fn read(&mut self, supply: &mut Supply<'_>, line: Sender<Result<SelectedRecord>>) {
        match supply {
            Supply::Kept(places) => queue(std::mem::take(places), &line).await,
            Supply::Source(source) => {
                if let Err(error) = self.read_source(source, &line).await {
                    let _ = line.send(Err(error)).await;
                }
            }
        }
    }

    async fn read_source(
        &mut self,
        source: &mut RecordSource<'_>,
        line: &Sender<Result<SelectedRecord>>,
    ) -> Result<()> {
        while let Some(page) = source.next_whole(self.rule).await? {
            if let Some(preview) = &mut self.uncounted {
                preview.add(&page, source.keys());
            }
            queue(self.places(page).await?, line).await;
            if let Some(bar) = &self.scanned {
                bar.set_position(source.keys_passed());
            }
        }
        Ok(())
    }

    async fn places(&mut self, page: ScanPage<Planned<R::Group>>) -> Result<Vec<SelectedRecord>> {
        let is_meant = |planned: &Planned<R::Group>| self.asks_owners || !planned.ends_by_itself;
        let mut records = Vec::with_capacity(page.selected.len());
        for (record, planned) in page.selected {
            if is_meant(&planned) {
                records.push(record);
            }
        }
        // Whatever waits is known by all of its bytes; what does not, at least by its deadline.
        let waits = self.waits;
        let approximate =
            records.iter_mut().filter(|record| waits || record.seen.has_unknown_deadline());
        refresh(&mut self.reader, self.rule, approximate).await?;
        let place = |record| {
            if waits { SelectedRecord::of(record).small() } else { SelectedRecord::of(record) }
        };
        Ok(records.into_iter().map(place).collect())
    }
}

async fn queue(places: Vec<SelectedRecord>, line: &Sender<Result<SelectedRecord>>) {
    for place in places {
        // Nobody waits any longer when the limit is reached.
        if line.send(Ok(place)).await.is_err() {
            return;
        }
    }
}

pub(super) struct PendingRecords {
    line: Receiver<Result<SelectedRecord>>,
    failed: Option<Error>,
}

impl PendingRecords {
    pub fn new(line: Receiver<Result<SelectedRecord>>) -> Self {
        Self { line, failed: None }
    }

    /// The next places, so many; fewer only at the end.
    ///
    /// # Errors
    /// Why no more could be read, once all places before are taken.
    pub async fn next(&mut self, most: usize) -> Result<Vec<SelectedRecord>> {
        let mut batch = Vec::new();
        while batch.len() < most
            && self.failed.is_none()
            && let Some(place) = self.line.recv().await
        {
            match place {
                Ok(place) => batch.push(place),
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
    use crate::domain::record::Expiry;
    use crate::domain::samples::{CHI_LOCK, chi};

    /// Rule: a run takes no more places than its limit leaves room for, and ends with why no more could be read.
    #[tokio::test]
    async fn no_more_places_are_taken_than_are_asked_for() {
        let (line, waiting) = mpsc::channel(8);
        for _ in 0..5 {
            line.send(Ok(SelectedRecord::of(chi(CHI_LOCK, Expiry::Never)))).await.unwrap();
        }
        line.send(Err(anyhow::anyhow!("the server is gone"))).await.unwrap();
        drop(line);
        let mut waiting = PendingRecords::new(waiting);
        assert_eq!(waiting.next(2).await.unwrap().len(), 2);
        assert_eq!(waiting.next(0).await.unwrap().len(), 0);
        assert_eq!(waiting.next(2).await.unwrap().len(), 2);
        assert_eq!(waiting.next(2).await.unwrap().len(), 1, "what is left before the error");
        assert_eq!(
            waiting.next(2).await.err().map(|error| error.to_string()),
            Some("the server is gone".to_owned())
        );
    }
}
