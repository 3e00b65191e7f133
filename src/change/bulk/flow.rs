//! The flow of a run: places come from a survey or a walk, wait their time, are looked at again, and are changed.

use std::collections::VecDeque;
use std::time::Duration;

use anyhow::Result;
use tokio::time::sleep_until;

use super::owners::Owners;
use super::place::Place;
use super::removal::{self, Removal};
use super::rule::{Chosen, Rule};
use super::second_look::{Looked, look_again, sharpen};
use super::source::{Page, Source};
use super::survey::{CHUNK, Survey};
use crate::change::{Journal, Pace};
use crate::context::Context;
use crate::domain::bulk::{Account, Ended};
use crate::domain::record::Record;
use crate::interrupt::Interrupt;
use crate::store::{Reader, StoreError, Writer};

/// Where the records of a run come from.
pub enum Supply<'a> {
    /// What was shown.
    Kept(Vec<Place>),
    /// A walk, or the keys of a file, from the beginning.
    Source(Box<Source<'a>>),
}

/// What a run takes.
pub struct Flow<'a, R: Rule> {
    /// Which records it is about.
    pub rule: &'a R,
    /// What looks.
    pub reader: Reader,
    /// What changes.
    pub writer: Writer,
    /// The backup and the audit log.
    pub journal: &'a mut Journal,
    /// What the audit log calls the change.
    pub what: &'static str,
    /// No more than so many records a second.
    pub pace: Pace,
    /// The time between the look that chose a record and the next one.
    pub grace: Duration,
    /// Whom to ask whether an owner is alive.
    pub owners: Option<Owners>,
    /// Records that may be changed at most.
    pub limit: u64,
    /// Where nobody counted before: what is found.
    pub uncounted: Option<&'a mut Survey<R::Group>>,
    /// Ctrl-C.
    pub interrupt: &'a Interrupt,
}

impl<R: Rule> Flow<'_, R> {
    /// Changes what the rule chooses, until the limit or Ctrl-C. While a batch is changed, the next one is read. A node of a
    /// cluster that does not answer keeps nobody from the others, and is told at the end.
    ///
    /// # Errors
    /// As every change; what was done before is in the account.
    pub async fn run(&mut self, context: &Context, supply: Supply<'_>, account: &mut Account) -> Result<Ended> {
        let progress = context.ui.progress("records dealt with");
        let (mut waiting, mut source) = match supply {
            Supply::Kept(places) => (VecDeque::from(places), None),
            Supply::Source(source) => (VecDeque::new(), Some(source)),
        };
        let mut silence = None;
        let (rule, interrupt, full) = (self.rule, self.interrupt, self.pace.batch());
        let ahead = if self.grace.is_zero() { full } else { CHUNK };
        let mut found_all = source.is_none();
        loop {
            let room = usize::try_from(self.limit.saturating_sub(account.done)).unwrap_or(usize::MAX);
            let is_due = found_all || waiting.len() >= ahead;
            let most = if is_due { full.min(room).min(waiting.len()) } else { 0 };
            let batch: Vec<_> = waiting.drain(..most).collect();
            if is_due && batch.is_empty() {
                progress.finish_and_clear();
                return self.end(source, silence);
            }
            let count = batch.len();
            let Some(looked) = interrupt.unless_raised(self.look(batch, account)).await else {
                return Ok(Ended::Interrupted);
            };
            let (removals, silent) = looked?;
            silence = StoreError::worse(silence, silent);
            let wanted = if found_all { 0 } else { ahead.saturating_sub(waiting.len()) };
            let more = async {
                match &mut source {
                    Some(source) => source.read(rule, wanted).await,
                    None => Ok(Page::default()),
                }
            };
            // From here on the batch is in hand.
            let changed = removal::change(context, (self.journal, &self.writer, self.what), removals, account);
            let (ended, more) = tokio::join!(changed, interrupt.unless_raised(more));
            ended?;
            progress.inc(count as u64);
            let Some(more) = more else { return Ok(Ended::Interrupted) };
            let more = more?;
            found_all |= more.chosen.len() < wanted;
            if let (Some(survey), Some(source)) = (&mut self.uncounted, &source) {
                survey.add(&more, source.looked_at());
            }
            waiting.extend(self.places(more).await?);
            if interrupt.unless_raised(self.pace.wait(count)).await.is_none() {
                return Ok(Ended::Interrupted);
            }
        }
    }

    /// The changes to those of a batch that are still what was seen, and whose owners do not live; and why a node of a
    /// cluster could not be asked. The account has those that are left alone.
    async fn look(&mut self, batch: Vec<Place>, account: &mut Account) -> Result<(Vec<Removal>, Option<StoreError>)> {
        let Some(last) = batch.last() else { return Ok((Vec::new(), None)) };
        sleep_until(last.at + self.grace).await;
        let mut looked = look_again(&mut self.reader, self.rule, batch, account).await?;
        if let Some(owners) = &mut self.owners {
            spare_the_living(owners, &mut looked).await?;
            // The owners' answers took their time.
            let places = looked.there.drain(..).map(|(record, _)| Place::of(record).small()).collect();
            let silence = looked.silence.take();
            looked = look_again(&mut self.reader, self.rule, places, &looked.account).await?;
            looked.silence = StoreError::worse(silence, looked.silence);
        }
        let mut removals = Vec::with_capacity(looked.there.len());
        for (record, chosen) in looked.there {
            // Also one that the look before took for another: nobody was asked about its owner.
            let is_left = chosen.ends_by_itself && self.owners.is_none();
            match chosen.action.filter(|_| !is_left) {
                Some(action) => removals.push(Removal::of(record, &chosen, action)),
                None => looked.account.left_to_expire += 1,
            }
        }
        // Only now: whoever is interrupted before has not counted these.
        *account = looked.account;
        Ok((removals, looked.silence))
    }

    /// Places for the chosen records of a page.
    async fn places(&mut self, page: Page<R::Group>) -> Result<Vec<Place>> {
        let asks_owners = self.owners.is_some();
        let is_meant = |chosen: &Chosen<R::Group>| asks_owners || !chosen.ends_by_itself;
        let chosen = page.chosen.into_iter().filter(|(_, chosen)| is_meant(chosen));
        let mut records: Vec<_> = chosen.map(|(record, _)| record).collect();
        // Whatever waits is known by all of its bytes; what does not, at least by its deadline.
        let waits = !self.grace.is_zero() || self.pace.is_limited();
        let blurred = records.iter_mut().filter(|record| waits || record.seen.has_unknown_deadline());
        sharpen(&mut self.reader, self.rule, blurred).await?;
        let place = |record| if waits { Place::of(record).small() } else { Place::of(record) };
        Ok(records.into_iter().map(place).collect())
    }

    fn end(&mut self, mut source: Option<Box<Source<'_>>>, silence: Option<StoreError>) -> Result<Ended> {
        if let (Some(survey), Some(source)) = (&mut self.uncounted, &source) {
            survey.forbidden = source.forbidden();
        }
        let missed = source.as_mut().and_then(|source| source.missed());
        StoreError::worse(missed, silence).map_or(Ok(Ended::Whole), |error| Err(error.into()))
    }
}

/// Leaves out the records whose owners are alive. A lock that ends by itself stays unless its owner is known to be dead.
async fn spare_the_living<G>(owners: &mut Owners, looked: &mut Looked<G>) -> Result<()> {
    owners.forget();
    owners.ask(looked.there.iter().filter_map(|(record, _)| record.owner())).await?;
    let account = &mut looked.account;
    looked.there.retain(|(record, chosen): &(Record, Chosen<G>)| {
        let is_alive = record.owner().map(|owner| owners.is_alive(owner));
        account.skipped_alive += u64::from(is_alive == Some(true));
        let is_left = is_alive.is_none() && chosen.ends_by_itself;
        account.left_to_expire += u64::from(is_left);
        is_alive != Some(true) && !is_left
    });
    Ok(())
}
