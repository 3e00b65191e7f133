//! The records of a batch that are changed: backed up, compared and changed, and counted. All Redis
//! keys of a record change in one call.
//!
//! The exception: if a cluster keeps the Redis keys of a record in several slots, each slot has a
//! call of its own, and a record can be changed partly.

use anyhow::Result;

use super::rule::Planned;
use crate::change::Journal;
use crate::domain::change::outcome_counts::OutcomeCounts;
use crate::domain::record::{Content, Record};
use crate::session::Session;
use crate::store::backup::RecordLabel;
use crate::store::{Change, KeyAction, Outcome, Writer};

/// Makes the changes of a run, and notes them in the journal.
pub(super) struct BatchChanger<'a> {
    pub(super) session: &'a Session,
    pub(super) writer: Writer,
    pub(super) journal: &'a mut Journal,
    /// What the audit log calls a change.
    pub(super) audit_word: &'static str,
}

/// The planned change of a selected record. An absent Redis key is compared and not changed.
pub(super) fn change_of<G>(record: Record, planned: &Planned<G>) -> Change {
    let mut changed = Vec::with_capacity(planned.key_indexes.len());
    for key_index in &planned.key_indexes {
        if !record.seen.keys[*key_index].content.is_absent() {
            changed.push(*key_index);
        }
    }
    let label = RecordLabel::of(&record);
    Change::new(changed, record.seen, label)
}

impl BatchChanger<'_> {
    /// Makes changes, and counts the outcome of each record.
    ///
    /// # Errors
    /// As every change; `counts` has the outcomes so far.
    pub(super) async fn change(
        &mut self,
        changes: Vec<(KeyAction, Change)>,
        counts: &mut OutcomeCounts,
    ) -> Result<()> {
        // One call makes one action, and schemas with different lock TTLs have different ones.
        let mut by_action: Vec<(KeyAction, Vec<Change>)> = Vec::new();
        for (action, change) in changes {
            match by_action.iter_mut().find(|(known, _)| *known == action) {
                Some((_, changes)) => changes.push(change),
                None => by_action.push((action, vec![change])),
            }
        }
        for (action, changes) in by_action {
            self.change_with(action, changes, counts).await?;
        }
        Ok(())
    }

    /// Makes one action on records.
    async fn change_with(
        &mut self,
        action: KeyAction,
        mut changes: Vec<Change>,
        counts: &mut OutcomeCounts,
    ) -> Result<()> {
        let mut other_slots = Vec::with_capacity(changes.len());
        for change in &mut changes {
            other_slots.push(self.writer.split_off_other_slots(change).await?);
        }
        let now = self.session.now();
        let (outcomes, mut ended) =
            self.journal.apply(&self.writer, &changes, action, self.audit_word, now).await;
        for ((mut change, others), first) in changes.into_iter().zip(other_slots).zip(outcomes) {
            let mut outcome = first;
            if !others.is_empty() && first.is_done() {
                if ended.is_ok() {
                    (outcome, ended) =
                        self.change_other_slots(action, &mut change, others, first).await;
                } else {
                    // Nothing is sent after an error, so that the rest of this record stays.
                    outcome = Outcome::Partly;
                }
            }
            count(counts, &change.label, outcome);
        }
        ended
    }

    /// Changes the Redis keys of a record in its other slots, one slot after the other, after those
    /// in the first slot were changed. The backup has all of them already.
    async fn change_other_slots(
        &mut self,
        action: KeyAction,
        change: &mut Change,
        other_slots: Vec<Vec<usize>>,
        first: Outcome,
    ) -> (Outcome, Result<()>) {
        let mut other_slots = other_slots.into_iter();
        let mut ended = Ok(());
        while let Some(key_indexes) = other_slots.next() {
            // The call before removed these Redis keys: the rest of the record is compared with
            // that. Only a removal changes several Redis keys of a record.
            for key_index in std::mem::replace(&mut change.changed_indexes, key_indexes) {
                change.seen.keys[key_index].content = Content::Absent;
            }
            change.backed_up.clear();
            let now = self.session.now();
            let only = std::slice::from_ref(&*change);
            let outcomes;
            (outcomes, ended) =
                self.journal.apply(&self.writer, only, action, self.audit_word, now).await;
            let next = outcomes.first().copied();
            let is_done = next.is_some_and(|next| next.is_done() || next == Outcome::Gone);
            if is_done && ended.is_ok() {
                continue;
            }
            let mut left = Vec::new();
            // Keys whose outcome is unknown have their own lines in the log.
            if !is_done && next != Some(Outcome::Unknown) {
                left.append(&mut change.changed_indexes);
            }
            left.extend(other_slots.flatten());
            if left.is_empty() {
                break;
            }
            change.changed_indexes = left;
            // The records that follow are counted even if the log cannot be written.
            let noted = self.journal.note_left(&self.writer, change, self.session.now()).await;
            return (Outcome::Partly, ended.and(noted));
        }
        (first, ended)
    }
}

/// Counts the outcome of a record.
fn count(counts: &mut OutcomeCounts, label: &RecordLabel, outcome: Outcome) {
    match outcome {
        Outcome::Done | Outcome::Expires(_) => counts.done += 1,
        Outcome::FoundDone => {
            counts.done += 1;
            counts.read_back += 1;
        }
        Outcome::Partly => {
            counts.partly.push(label.name.text());
        }
        Outcome::Kept => counts.left_to_expire += 1,
        Outcome::ChangedMeanwhile => counts.changed_meanwhile += 1,
        Outcome::Gone => counts.gone += 1,
        Outcome::Unknown => counts.unknown += 1,
        Outcome::NotMade => {}
    }
}
