//! Reverts records that exist after an operation, each only if it has not changed since.

use anyhow::Result;

use super::changed_records::{ChangedRecord, ChangedRecords};
use super::operation_to_undo::unreadable;
use super::plan::{PlannedRecord, UndoPlan, plan};
use super::undone::UndoneOperation;
use crate::change::restore::{Ending, RestoredRows};
use crate::change::{Journal, JournalStep};
use crate::domain::history::{OUTCOME_UNKNOWN, PARTIAL};
use crate::domain::schema::Catalog;
use crate::interrupt::Interrupt;
use crate::session::Session;
use crate::store::{
    Change, Client, GuardedOutcome, KeyAction, Outcome, PriorValue, StoreError, Writer,
};

/// How many records are read, and changed, at a time. Larger batches delay other clients.
const BATCH: usize = 100;

/// Whether records are reverted.
pub(super) enum RevertMode<'a> {
    /// They are not reverted, and what would be done is reported.
    Predict,
    Revert(&'a Writer, &'a mut Journal),
}

/// What reverting the records of an operation needs.
pub(super) struct Reverter<'a> {
    pub(super) client: &'a Client,
    pub(super) catalog: &'a Catalog,
    pub(super) undone: &'a UndoneOperation,
    pub(super) interrupt: &'a Interrupt,
}

impl Reverter<'_> {
    /// Reverts the records; false if Ctrl-C interrupted it.
    pub(super) async fn run(
        &self,
        session: &mut Session,
        mode: &mut RevertMode<'_>,
        rows: &mut RestoredRows,
    ) -> Result<bool> {
        // Without such records, the log need not be read again.
        if self.undone.records == 0 {
            return Ok(true);
        }
        let log = &self.undone.log;
        let mut records = ChangedRecords::open(log, &self.undone.operation.op)
            .map_err(|error| unreadable(log, &error))?;
        let progress = session.ui.progress("Redis keys");
        loop {
            let batch = self.next_batch(&mut records).map_err(|error| unreadable(log, &error))?;
            if batch.is_empty() {
                return Ok(true);
            }
            if self.interrupt.is_raised() {
                return Ok(false);
            }
            let planned =
                plan(self.client, self.catalog, &self.undone.operation.op, &batch).await?;
            let ended = match mode {
                RevertMode::Predict => {
                    for record in &planned {
                        add_rows(session, rows, record);
                    }
                    Ok(())
                }
                RevertMode::Revert(writer, journal) => {
                    revert_batch(session, writer, journal, rows, planned).await
                }
            };
            progress.set_position(rows.seen());
            ended?;
        }
    }

    fn next_batch(&self, records: &mut ChangedRecords) -> std::io::Result<Vec<ChangedRecord>> {
        let mut batch = Vec::new();
        while batch.len() < BATCH {
            match records.next()? {
                None => break,
                Some(record) if !record.is_removal() && record.is_of(&self.undone.only) => {
                    batch.push(record)
                }
                Some(_) => {}
            }
        }
        Ok(batch)
    }
}

fn add_rows(session: &mut Session, rows: &mut RestoredRows, record: &PlannedRecord) {
    if let Some(error) = &record.error
        && let UndoPlan::Leave(ending) = &record.plan
        && let Some(key) = record.changed.keys.first()
    {
        rows.say_error(session, *ending, &key.redis_key, error);
    }
    for index in 0..record.changed.keys.len() {
        let (row, ending) = record.row(index);
        rows.add_one(session, row, ending);
    }
}

/// Reverts a batch. Records whose only changed Redis key is removed are reverted together, as in a
/// purge, and the others one by one.
async fn revert_batch(
    session: &mut Session,
    writer: &Writer,
    journal: &mut Journal,
    rows: &mut RestoredRows,
    planned: Vec<PlannedRecord>,
) -> Result<()> {
    let mut removed = Vec::new();
    let mut removals = Vec::new();
    let mut others = Vec::new();
    for record in planned {
        match removal(&record) {
            Some(change) => {
                removals.push(change);
                removed.push(record);
            }
            None => others.push(record),
        }
    }
    let (outcomes, ended) =
        journal.apply(writer, &removals, KeyAction::Remove, "removed", session.now()).await;
    for (mut record, outcome) in removed.into_iter().zip(outcomes) {
        if matches!(outcome, Outcome::ChangedMeanwhile | Outcome::Gone) {
            record.plan = UndoPlan::Leave(Ending::Changed);
        }
        // For these two, the error says what is known about the record.
        if !matches!(outcome, Outcome::NotMade | Outcome::Unknown) {
            add_rows(session, rows, &record);
        }
    }
    ended?;
    for mut record in others {
        if let UndoPlan::Revert(prior, _) = &record.plan {
            let reverted = revert(session, writer, journal, &record, prior).await;
            match reverted.map_err(anyhow::Error::downcast::<StoreError>) {
                Ok(true) => {}
                Ok(false) => record.plan = UndoPlan::Leave(Ending::Changed),
                // The slot of this record is being moved, and the other records can be reverted.
                Err(Ok(error)) if error.is_of_the_slot() => {
                    record.plan = UndoPlan::Leave(Ending::Moving);
                    record.error = Some(error);
                }
                Err(Ok(error)) => return Err(error.into()),
                Err(Err(error)) => return Err(error),
            }
        }
        add_rows(session, rows, &record);
    }
    Ok(())
}

/// The removal that reverts a record, if that is all. The operation changed one Redis key, which
/// did not exist before.
fn removal(planned: &PlannedRecord) -> Option<Change> {
    let UndoPlan::Revert(prior, _) = &planned.plan else { return None };
    if prior.as_slice() != [PriorValue::Nothing] {
        return None;
    }
    let removed = planned.changed.keys.first()?;
    let key_index =
        planned.record.keys.iter().position(|key| key.redis_key == removed.redis_key)?;
    Some(Change::new(vec![key_index], planned.record.clone(), planned.label.clone()))
}

/// Reverts one record; false if the record has changed since it was read.
///
/// # Errors
/// As every change: outcome unknown if no reply came and reading back does not tell.
async fn revert(
    session: &Session,
    writer: &Writer,
    journal: &mut Journal,
    planned: &PlannedRecord,
    prior: &[PriorValue],
) -> Result<bool> {
    let PlannedRecord { label, record, changed, .. } = planned;
    let now = session.now();
    // The backup lets a second undo revert this one.
    journal.back_up(writer, record, label, now).await?;
    let (after, lost) = match writer.revert(changed, prior).await {
        Ok(GuardedOutcome::Made { reply: Ok(_), after, .. }) => (Some(after), None),
        Ok(GuardedOutcome::Lost { why, sent_to, .. }) => (None, Some((why, sent_to))),
        Ok(GuardedOutcome::ChangedMeanwhile) => {
            journal.nothing_changed();
            return Ok(false);
        }
        Ok(GuardedOutcome::Made { reply: Err(error), before, after, .. }) => {
            // Redis executes the other commands of a transaction although one of them failed.
            if before.keys.iter().zip(&after.keys).all(|(key, now)| key.is_unchanged_in(now)) {
                journal.nothing_changed();
            } else {
                let after = Some(&after);
                let step = JournalStep { label, before: changed, after, key_index: 0 };
                journal.note_step(writer, step, PARTIAL, now).await?;
            }
            return Err(error.into());
        }
        Err(error) => {
            journal.nothing_changed();
            return Err(error.into());
        }
    };
    // The log has a line even if the outcome is unknown, so that a later undo leaves the record
    // alone.
    let what = if after.is_some() { "restored" } else { OUTCOME_UNKNOWN };
    let step = JournalStep { label, before: changed, after: after.as_ref(), key_index: 0 };
    journal.note_step(writer, step, what, now).await?;
    match lost {
        Some((why, target)) => {
            let what = format!("the return of {}", label.name.text());
            Err(StoreError::OutcomeUnknown { target, what, why: why.to_string() }.into())
        }
        None => Ok(true),
    }
}
