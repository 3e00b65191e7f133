//! Makes many changes in batches: backs them up, compares, changes, and returns one outcome for
//! each.
//!
//! Nothing more is sent to a master of a cluster that does not answer. After a failover, the
//! changes that the old master made are repeated on the new one.

use std::sync::PoisonError;

use super::batch::{self, Batch};
use super::change::{Change, KeyAction, Outcome};
use super::writer::{ChangeAttempt, Writer};
use crate::domain::hash_slot;
use crate::store::backup::Backup;
use crate::store::cluster::slot_map::SlotMap;
use crate::store::error::StoreError;

impl Writer {
    /// Makes many changes, each only if its record is exactly as it was seen. They are sent in
    /// batches of a hundred Redis keys, one batch at a time, and the script compares and changes a
    /// batch in one step. A cluster gets larger batches, with one call per record. With a backup, a
    /// few batches at a time are written to it and synced before the first of them is sent.
    ///
    /// Returns one outcome per change, in order, and the error that stopped them. The changes after
    /// these outcomes were not made. A master of a cluster that does not answer does not stop the
    /// others; in that case every change has an outcome, and the error is returned as well. If the
    /// backup cannot be written, no change is sent that is not in it.
    pub async fn apply(
        &self,
        changes: &[Change],
        action: KeyAction,
        mut backup: Option<&mut Backup>,
    ) -> (Vec<Outcome>, Result<(), StoreError>) {
        let mut outcomes = Vec::with_capacity(changes.len());
        // The nodes of the server decide how changes are sent and compared.
        if let Err(error) = self.client().masters().await {
            return (outcomes, Err(error));
        }
        if let Err(error) = self.client().can_compare(changes.iter().map(|change| &change.seen)) {
            return (outcomes, Err(error));
        }
        let mut unreachable = None;
        for batches in batch::groups(changes, self.max_keys()) {
            let first = outcomes.len();
            let count: usize = batches.iter().map(|batch| batch.outcomes().len()).sum();
            let mut attempt = BatchAttempt {
                changes: &changes[first..first + count],
                batches,
                action,
                backup: backup.as_deref_mut(),
                outcomes: Vec::with_capacity(count),
                unreachable: None,
                is_last: first + count == changes.len(),
                has_failed_over: false,
            };
            let made = self.run_attempt(&mut attempt).await;
            outcomes.append(&mut attempt.outcomes);
            unreachable =
                StoreError::prefer_unknown_outcome_or_first(unreachable, attempt.unreachable);
            let Err(error) = made else { continue };
            // The node that did not answer is the replaced one, so the failover is the better
            // explanation.
            unreachable = if attempt.has_failed_over {
                StoreError::prefer_unknown_outcome_or_first(unreachable, Some(error))
            } else {
                Some(StoreError::prefer_unknown_outcome_or_last(unreachable, error))
            };
            break;
        }
        (outcomes, unreachable.map_or(Ok(()), Err))
    }

    /// True if the other masters, or slots, of a cluster can be changed after this error of
    /// [`Writer::apply`].
    pub fn can_change_others_after(&self, error: &StoreError) -> bool {
        let is_of_one =
            error.concerns_one_node() || matches!(error, StoreError::OutcomeUnknown { .. });
        is_of_one && self.client().is_cluster()
    }

    /// Splits off the Redis keys of a change that a cluster stores in other slots than the first.
    /// No script reaches two slots, so the keys of each other slot need a change of their own after
    /// this one. Returns their indexes in the record, slot by slot. The backup before the first
    /// change contains all of them.
    ///
    /// # Errors
    /// The nodes are unknown.
    pub async fn split_off_other_slots(
        &self,
        change: &mut Change,
    ) -> Result<Vec<Vec<usize>>, StoreError> {
        if change.changed_indexes.len() < 2 {
            return Ok(Vec::new());
        }
        let client = self.client();
        client.masters().await?;
        if !client.is_cluster() {
            return Ok(Vec::new());
        }
        let mut slots: Vec<(u16, Vec<usize>)> = Vec::new();
        for key_index in &change.changed_indexes {
            let slot = hash_slot::of(&change.seen.keys[*key_index].redis_key);
            match slots.iter_mut().find(|(known, _)| *known == slot) {
                Some((_, key_indexes)) => key_indexes.push(*key_index),
                None => slots.push((slot, vec![*key_index])),
            }
        }
        let mut by_slot = slots.into_iter().map(|(_, key_indexes)| key_indexes);
        change.changed_indexes = by_slot.next().unwrap_or_default();
        Ok(by_slot.collect())
    }

    fn max_keys(&self) -> usize {
        if !self.runs_scripts {
            // A transaction changes one record. The backup still has many at a time.
            return 1;
        }
        if self.client().is_cluster() { batch::MAX_APART } else { batch::MAX_KEYS }
    }

    /// Remembers a master of a cluster that does not answer, the first time.
    ///
    /// # Errors
    /// The error, if it is a different one, or if nothing should have been sent there any more.
    pub(super) fn note_unreachable(&self, error: &StoreError) -> Result<(), StoreError> {
        let mut unreachable = self.unreachable.lock().unwrap_or_else(PoisonError::into_inner);
        match error.silent_server() {
            Some(server) if self.client().is_cluster() && unreachable.insert(server.to_owned()) => {
                Ok(())
            }
            _ => Err(error.clone()),
        }
    }

    /// Leaves out the changes of records on a master that did not answer, because each would wait
    /// for the same timeout.
    pub(super) fn leave_out_unreachable(&self, batch: &mut Batch<'_>) {
        let unreachable = self.unreachable.lock().unwrap_or_else(PoisonError::into_inner);
        if unreachable.is_empty() {
            return;
        }
        let Some(map) = self.client().slot_map() else { return };
        batch.leave_out_on(|redis_key| {
            let master = map.master(hash_slot::of(redis_key));
            master.is_some_and(|master| unreachable.contains(&master.to_string()))
        });
    }
}

/// The batches that are backed up together.
struct BatchAttempt<'a, 'b> {
    /// The changes of all batches.
    changes: &'a [Change],
    batches: Vec<Batch<'a>>,
    action: KeyAction,
    backup: Option<&'b mut Backup>,
    /// One outcome per change that was tried.
    outcomes: Vec<Outcome>,
    /// Why a master of a cluster was left out, if one was.
    unreachable: Option<StoreError>,
    /// True if no batch comes after these.
    is_last: bool,
    has_failed_over: bool,
}

impl ChangeAttempt for BatchAttempt<'_, '_> {
    async fn send(&mut self, writer: &Writer) -> Result<(), StoreError> {
        let Err(error) = self.back_up_and_change(writer).await else { return Ok(()) };
        // A connection that lost a reply ends the run. But if a later read showed the last
        // outcomes, every change is done.
        let is_all = self.is_last && self.outcomes.len() == self.changes.len();
        if is_all && !error.is_without_effect() && all_known(&self.outcomes) {
            return Ok(());
        }
        Err(error)
    }

    fn may_have_changed(&self) -> bool {
        // A master that refuses or does not answer may have been replaced, and a failover explains
        // more than its refusal.
        true
    }

    fn changed_keys(&self) -> Vec<&[u8]> {
        let mut keys = Vec::with_capacity(self.changes.len());
        for (change, outcome) in self.changes.iter().zip(&self.outcomes) {
            if outcome.is_done() {
                keys.extend(change.changed_keys().map(|key| key.redis_key.as_slice()));
            }
        }
        keys
    }

    async fn after_failover(
        &mut self,
        writer: &Writer,
        before: Option<&SlotMap>,
        sent: Result<(), StoreError>,
        failed_over: StoreError,
    ) -> Result<(), StoreError> {
        self.has_failed_over = true;
        let again = self.change_again(writer, before).await;
        let mut ended = StoreError::prefer_unknown_outcome_or_first(again, Some(failed_over));
        let stopped = sent.err().or(self.unreachable.take());
        // An outcome that was unknown on the old master may be known from the new one.
        if self.outcomes.contains(&Outcome::Unknown) {
            ended = StoreError::prefer_unknown_outcome_or_first(stopped, ended);
        }
        ended.map_or(Ok(()), Err)
    }
}

impl BatchAttempt<'_, '_> {
    /// Backs up the batches, and changes them one after the other. Records that were left alone are
    /// removed from the backup again.
    ///
    /// # Errors
    /// Why the batches after the last outcome were not sent.
    async fn back_up_and_change(&mut self, writer: &Writer) -> Result<(), StoreError> {
        for batch in &mut self.batches {
            writer.leave_out_unreachable(batch);
        }
        // Nothing is sent before the backup is on the disk. Otherwise a deleted value would be lost
        // if the machine stops.
        if self.backup.is_some() {
            self.back_up(writer).await?;
        }
        let mut stopped = None;
        for batch in &mut self.batches {
            if stopped.is_none() {
                let sent = writer.send(batch, self.action).await;
                if sent.is_ok() {
                    self.outcomes.extend_from_slice(batch.outcomes());
                }
                match sent {
                    Ok(None) => {}
                    Ok(Some(error)) if writer.can_change_others_after(&error) => {
                        self.unreachable = StoreError::prefer_unknown_outcome_or_first(
                            self.unreachable.take(),
                            Some(error),
                        );
                    }
                    Ok(Some(error)) | Err(error) => stopped = Some(error),
                }
            }
            if let Some(backup) = self.backup.as_deref_mut() {
                backup.withdraw(&batch.left_alone());
            }
        }
        let Some(error) = stopped else { return Ok(()) };
        Err(StoreError::prefer_unknown_outcome_or_last(self.unreachable.take(), error))
    }

    /// Writes the batches to the backup, and syncs it. Masters that do not answer are left out.
    ///
    /// # Errors
    /// The records cannot be read, or the backup cannot be written; then nothing must be sent.
    async fn back_up(&mut self, writer: &Writer) -> Result<(), StoreError> {
        let Some(backup) = self.backup.as_deref_mut() else { return Ok(()) };
        loop {
            let mut redis_keys = Vec::new();
            for batch in &mut self.batches {
                redis_keys.extend(batch.save());
            }
            match writer.client().dumps(&redis_keys).await {
                Ok(dumps) => {
                    let mut dumps = dumps.into_iter();
                    for batch in &mut self.batches {
                        batch.dumped(&mut dumps);
                    }
                    let from = writer.provenance().await?;
                    let entries = self.batches.iter().flat_map(Batch::entries);
                    backup.append(&from, entries).await?;
                    for batch in &mut self.batches {
                        batch.set_backed_up();
                    }
                    return Ok(());
                }
                Err(error) => {
                    writer.note_unreachable(&error)?;
                    for batch in &mut self.batches {
                        writer.leave_out_unreachable(batch);
                    }
                    self.unreachable.get_or_insert(error);
                }
            }
        }
    }

    /// Repeats the changes whose master was replaced, because those on the old master may be lost.
    /// The new master compares them in the same way. A change that was replicated is found done,
    /// and a record that was re-acquired since then stays. Changes that were made, or may have been
    /// made, are already in the backup. Records that were left alone are not in the backup, and are
    /// left alone again.
    ///
    /// Returns why some changes could not be made.
    async fn change_again(
        &mut self,
        writer: &Writer,
        before: Option<&SlotMap>,
    ) -> Option<StoreError> {
        let now = writer.client().slot_map();
        let mut indexes = Vec::new();
        let mut changes = Vec::new();
        for (index, (change, outcome)) in self.changes.iter().zip(&self.outcomes).enumerate() {
            let may_be_done = outcome.is_done() || *outcome == Outcome::Unknown;
            let slot = hash_slot::of(change.redis_key());
            // Outside a cluster there are no slot maps, and the only master was replaced.
            let has_moved = match (before, &now) {
                (Some(before), Some(now)) => before.master(slot) != now.master(slot),
                _ => true,
            };
            if may_be_done && has_moved {
                indexes.push(index);
                changes.push(change.clone());
            }
        }
        let mut again = BatchAttempt {
            changes: &changes,
            batches: Vec::new(),
            action: self.action,
            backup: None,
            outcomes: Vec::with_capacity(changes.len()),
            unreachable: None,
            is_last: true,
            has_failed_over: true,
        };
        let mut ended = None;
        for batches in batch::groups(&changes, writer.max_keys()) {
            again.batches = batches;
            let made = again.back_up_and_change(writer).await;
            ended = StoreError::prefer_unknown_outcome_or_first(ended, again.unreachable.take());
            if let Err(error) = made {
                ended = StoreError::prefer_unknown_outcome_or_first(ended, Some(error));
                break;
            }
        }
        for (index, here) in indexes.into_iter().zip(again.outcomes) {
            self.outcomes[index] = match (self.outcomes[index], here) {
                (
                    _,
                    Outcome::Done | Outcome::Expires(_) | Outcome::FoundDone | Outcome::Unknown,
                ) => here,
                (Outcome::Unknown, Outcome::Gone) => Outcome::FoundDone,
                // The old master made the change, whatever the new one holds.
                (there, _) => there,
            };
        }
        ended
    }
}

fn all_known(outcomes: &[Outcome]) -> bool {
    outcomes.iter().all(|outcome| !matches!(outcome, Outcome::Unknown | Outcome::NotMade))
}
