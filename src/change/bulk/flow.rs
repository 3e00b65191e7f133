//! The flow of a run: places come from a preview or a scan, wait their time, are looked at again, and are changed.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use anyhow::Result;
use indicatif::ProgressBar;
use tokio::sync::mpsc;
use tokio::time::sleep_until;

use super::ahead::{Ahead, PendingRecords, Supply};
use super::place::SelectedRecord;
use super::recheck::{Looked, recheck};
use super::removal::{self, Changes, Removal};
use super::rule::{BulkRule, Planned, PlannedAction};
use super::selected::{CHUNK, Preview};
use crate::change::{Journal, RateLimiter};
use crate::context::Context;
use crate::domain::change::outcome::{Account, Ended};
use crate::domain::record::Record;
use crate::interrupt::Interrupt;
use crate::owner_check::{OwnerAnswer, OwnerCheck};
use crate::render::words::count;
use crate::store::{RecordReader, StoreError, Writer};

pub struct Flow<'a, R: BulkRule> {
    pub rule: &'a R,
    pub reader: RecordReader,
    pub writer: Writer,
    pub journal: &'a mut Journal,
    pub what: &'static str,
    pub rate_limiter: RateLimiter,
    /// The time between the look that chose a record and the next one.
    pub grace: Duration,
    pub owners: Option<OwnerCheck>,
    /// Records that may be changed at most.
    pub limit: u64,
    /// How many records were chosen, where that is known.
    pub chosen: Option<u64>,
    pub uncounted: Option<&'a mut Preview<R::Group>>,
    pub interrupt: &'a Interrupt,
}

impl<R: BulkRule> Flow<'_, R> {
    /// Changes what the rule chooses, until the limit or Ctrl-C. While a batch is changed, the ones after it are read. A
    /// node of a cluster that does not answer keeps nobody from the others, and is told at the end.
    ///
    /// # Errors
    /// As every change; what was done before is in the account.
    pub async fn run(
        &mut self,
        context: &Context,
        mut supply: Supply<'_>,
        account: &mut Account,
    ) -> Result<Ended> {
        let (places, waiting) = mpsc::channel(self.most_waiting());
        // Nobody counted what is chosen, so the keys of the server are the total.
        let mut keys_held = None;
        if self.chosen.is_none() && supply.scans() && context.ui.shows_progress() {
            keys_held = self.reader.keys_held().await.ok();
        }
        let progress = match keys_held {
            Some(keys) => context.ui.progress_of(&dealt_with(0), Some(keys)),
            None => context.ui.progress_of("records dealt with", self.chosen),
        };
        let mut ahead = Ahead {
            scanned: keys_held.map(|_| progress.clone()),
            rule: self.rule,
            reader: self.reader.clone(),
            waits: self.waits(),
            asks_owners: self.owners.is_some(),
            uncounted: self.uncounted.take(),
        };
        let shown = Progress { bar: progress.clone(), is_of_keys: keys_held.is_some() };
        let reading = async {
            ahead.read(&mut supply, places).await;
            pending::<Infallible>().await
        };
        let ended = tokio::select! {
            biased;
            ended = self.change(context, PendingRecords::new(waiting), &shown, account) => ended,
            never = reading => match never {},
        };
        // However the run ended, what the scan left out is reported.
        let mut missed = None;
        if let Supply::Source(source) = supply {
            let report = source.finish();
            missed.clone_from(&report.missed);
            if let Some(preview) = ahead.uncounted {
                preview.close(report);
            }
        }
        let (ended, silence) = ended?;
        if ended != Ended::Whole {
            missed = None;
        }
        StoreError::worse(missed, silence).map_or(Ok(ended), |error| Err(error.into()))
    }

    /// Changes what waits in line. Gives, beside the end, why a node of a cluster could not be asked, where nothing worse
    /// ended the run.
    async fn change(
        &mut self,
        context: &Context,
        mut waiting: PendingRecords,
        progress: &Progress,
        account: &mut Account,
    ) -> Result<(Ended, Option<StoreError>)> {
        let mut dealt = 0;
        let interrupt = self.interrupt;
        let mut silence = None;
        loop {
            let room =
                usize::try_from(self.limit.saturating_sub(account.done)).unwrap_or(usize::MAX);
            let Some(batch) =
                interrupt.unless_raised(waiting.next(self.rate_limiter.batch().min(room))).await
            else {
                return Ok((Ended::Interrupted, None));
            };
            let batch = batch?;
            if batch.is_empty() {
                progress.bar.finish_and_clear();
                return Ok((Ended::Whole, silence));
            }
            let count = batch.len();
            let Some(looked) = interrupt.unless_raised(self.look(batch, account)).await else {
                return Ok((Ended::Interrupted, None));
            };
            let (removals, silent) = looked?;
            silence = StoreError::worse(silence, silent);
            // From here on the batch is in hand.
            let by = Changes { journal: self.journal, writer: &self.writer, what: self.what };
            removal::change(context, by, removals, account).await?;
            dealt += count as u64;
            progress.show(dealt);
            if interrupt.unless_raised(self.rate_limiter.wait(count)).await.is_none() {
                return Ok((Ended::Interrupted, None));
            }
        }
    }

    /// The changes to those of a batch that are still what was seen, and whose owners do not live; and why a node of a
    /// cluster could not be asked. The account has those that are left alone.
    async fn look(
        &mut self,
        batch: Vec<SelectedRecord>,
        account: &mut Account,
    ) -> Result<(Vec<Removal>, Option<StoreError>)> {
        let Some(last) = batch.last() else { return Ok((Vec::new(), None)) };
        sleep_until(last.at + self.grace).await;
        let mut looked = recheck(&mut self.reader, self.rule, batch, account).await?;
        if let Some(owners) = &mut self.owners {
            spare_the_living(owners, &mut looked).await?;
            // The owners' answers took their time.
            let places = looked
                .there
                .drain(..)
                .map(|(record, _)| SelectedRecord::of(record).small())
                .collect();
            let silence = looked.silence.take();
            looked = recheck(&mut self.reader, self.rule, places, &looked.account).await?;
            looked.silence = StoreError::worse(silence, looked.silence);
        }
        let mut removals = Vec::with_capacity(looked.there.len());
        for (record, planned) in looked.there {
            // Also a lock that the check before took for another one: nobody was asked about its owner.
            let is_left = planned.ends_by_itself && self.owners.is_none();
            match planned.action {
                PlannedAction::Change(action) if !is_left => {
                    removals.push(Removal::new(record, &planned, action))
                }
                PlannedAction::Change(_) | PlannedAction::LeaveToExpire => {
                    looked.account.left_to_expire += 1
                }
            }
        }
        // Only now: whoever is interrupted before has not counted these.
        *account = looked.account;
        Ok((removals, looked.silence))
    }

    /// True when records wait between the look that chose them and the change.
    fn waits(&self) -> bool {
        !self.grace.is_zero() || self.rate_limiter.is_limited()
    }

    /// So many records wait for their change at most: with a grace all of them wait for it together.
    fn most_waiting(&self) -> usize {
        if self.grace.is_zero() { self.rate_limiter.batch() } else { CHUNK }
    }
}

/// How far a run is: records of those that were counted, or keys of those that the server holds.
struct Progress {
    bar: ProgressBar,
    /// The reader moves the bar, and the message says how many records are done.
    is_of_keys: bool,
}

impl Progress {
    fn show(&self, dealt: u64) {
        if self.is_of_keys {
            self.bar.set_message(dealt_with(dealt));
        } else {
            self.bar.set_position(dealt);
        }
    }
}

fn dealt_with(records: u64) -> String {
    format!("{} records dealt with, keys scanned", count(records))
}

/// Leaves out the records whose owners are alive, or may be. A lock that ends by itself stays unless its owner is known to be
/// dead.
async fn spare_the_living<G>(owners: &mut OwnerCheck, looked: &mut Looked<G>) -> Result<()> {
    owners.forget();
    let asked = looked.there.iter().filter(|(record, _)| record.is_owner_told());
    owners.ask(asked.filter_map(|(record, _)| record.owner())).await?;
    let account = &mut looked.account;
    looked.there.retain(|(record, planned): &(Record, Planned<G>)| {
        let answer = match record.owner() {
            _ if !record.is_owner_told() => OwnerAnswer::of_part(&record.key),
            Some(owner) => owners.answer(owner),
            None if planned.ends_by_itself => {
                account.left_to_expire += 1;
                return false;
            }
            // The schema keeps no owner, and nothing but somebody else ends such a lock.
            None => return true,
        };
        match answer {
            OwnerAnswer::Dead => return true,
            OwnerAnswer::Alive => account.skipped_alive += 1,
            OwnerAnswer::Unknown(why) => {
                account.owner_unknown += 1;
                account.owner_unknown_because.get_or_insert(why);
            }
        }
        false
    });
    Ok(())
}
