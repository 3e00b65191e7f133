//! The removal: records are found, chosen and removed as a walk goes on.

use std::collections::VecDeque;

use anyhow::Result;

use super::choice::Choice;
use super::key_file::KeyFile;
use super::source::{self, Source};
use super::survey::Survey;
use crate::change::{Journal, Pace};
use crate::context::Context;
use crate::domain::bulk::{Ended, Purged};
use crate::domain::observation::Content;
use crate::domain::record::Record;
use crate::interrupt::Interrupt;
use crate::store::backup::About;
use crate::store::{Action, Change, Outcome, Reader, Writer};

/// Bytes of values that are read whole at a time, unless a single value is larger: memory stays flat.
const MOST_BYTES: u64 = 8 << 20;

/// What removing takes.
pub(super) struct Remover<'a> {
    pub(super) choice: &'a Choice,
    pub(super) reader: Reader,
    pub(super) writer: Writer,
    pub(super) journal: &'a mut Journal,
    pub(super) pace: Pace,
    pub(super) interrupt: &'a Interrupt,
    /// Records that may be removed at most.
    pub(super) limit: u64,
    /// Where nobody counted before: what is found.
    pub(super) uncounted: Option<&'a mut Survey>,
}

impl Remover<'_> {
    /// Removes what is chosen, until the limit or Ctrl-C. While a batch goes, the next one is read.
    ///
    /// # Errors
    /// As every change; what was done before is in `purged`.
    pub(super) async fn remove_all(
        &mut self,
        context: &Context,
        file: Option<&mut KeyFile>,
        purged: &mut Purged,
    ) -> Result<Ended> {
        let mut source = Source::open(self.choice, self.reader.clone(), file).await?;
        let progress = context.ui.progress("records purged");
        let (choice, interrupt, full) = (self.choice, self.interrupt, self.pace.batch());
        let mut waiting = VecDeque::new();
        let mut found_all = false;
        loop {
            let room = usize::try_from(self.limit - purged.done).unwrap_or(usize::MAX);
            let is_due = found_all || waiting.len() >= full;
            let batch = next_batch(&mut waiting, if is_due { full.min(room) } else { 0 });
            if is_due && batch.is_empty() {
                progress.finish_and_clear();
                if let Some(survey) = &mut self.uncounted {
                    survey.forbidden = source.forbidden();
                }
                source.missed_nothing()?;
                return Ok(Ended::Whole);
            }
            let removed = batch.len();
            let wanted = if found_all { 0 } else { full.saturating_sub(waiting.len()) };
            let more = source.read(choice, wanted);
            let (ended, more) = tokio::join!(self.remove(context, batch, purged), interrupt.unless_raised(more));
            ended?;
            progress.set_position(purged.done);
            let Some(more) = more else { return Ok(Ended::Interrupted) };
            let more = more?;
            if let Some(survey) = &mut self.uncounted {
                survey.add(&more, source.looked_at());
            }
            found_all |= more.chosen.len() < wanted;
            waiting.extend(more.chosen);
            if interrupt.unless_raised(self.pace.wait(removed)).await.is_none() {
                return Ok(Ended::Interrupted);
            }
        }
    }

    /// Removes a batch. Of a record with two Redis keys the lock goes first: were it the result, a retry in between
    /// would find the lock alone and be turned away.
    async fn remove(&mut self, context: &Context, batch: Vec<Record>, purged: &mut Purged) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let count = batch.len();
        let batch = source::told_apart(&mut self.reader, self.choice, batch).await?;
        purged.changed += (count - batch.len()) as u64;
        let mut left: Vec<_> = batch.iter().map(|record| Removal { steps: steps(record), any_done: false }).collect();
        let mut turn = 0;
        while !left.is_empty() {
            let changes: Vec<_> = left.iter().map(|removal| removal.steps[turn].clone()).collect();
            let applied = self.journal.apply(&self.writer, &changes, (Action::Remove, "purged"), context.now()).await;
            let (outcomes, ended) = applied;
            turn += 1;
            let mut going_on = Vec::with_capacity(left.len());
            for (mut removal, outcome) in left.into_iter().zip(outcomes) {
                removal.any_done |= outcome.is_done();
                purged.read_back += u64::from(outcome == Outcome::FoundDone);
                match outcome {
                    Outcome::Changed => purged.changed += 1,
                    Outcome::Unknown => purged.unknown += 1,
                    Outcome::Refused => {}
                    _ if turn < removal.steps.len() => going_on.push(removal),
                    _ if removal.any_done => purged.done += 1,
                    _ => purged.gone += 1,
                }
            }
            ended?;
            left = going_on;
        }
        Ok(())
    }
}

/// The next records, at most so many, and of large ones fewer.
fn next_batch(records: &mut VecDeque<Record>, most: usize) -> Vec<Record> {
    let mut batch = Vec::with_capacity(most.min(records.len()));
    let mut bytes = 0;
    while batch.len() < most
        && bytes < MOST_BYTES
        && let Some(record) = records.pop_front()
    {
        if !source::is_told_by_beginning(&record) {
            bytes += record.size_bytes().unwrap_or(MOST_BYTES);
        }
        batch.push(record);
    }
    batch
}

/// A record on its way out.
struct Removal {
    steps: Vec<Change>,
    any_done: bool,
}

/// The removals of a record's Redis keys, the lock's first, each against the record as the one before leaves it.
fn steps(record: &Record) -> Vec<Change> {
    let about = || About { schema: record.schema.name.clone(), key: record.key.clone(), state: record.state.word() };
    let mut seen = record.seen.clone();
    let mut steps = Vec::with_capacity(seen.slots.len());
    for slot in 0..seen.slots.len() {
        if seen.slots[slot].content != Content::Absent {
            steps.push(Change { slot, seen: seen.clone(), about: about() });
            seen.slots[slot].content = Content::Absent;
        }
    }
    steps
}
