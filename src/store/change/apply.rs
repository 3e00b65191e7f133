//! Many changes: in batches, in the backup before, one outcome each. A master of a cluster that does not answer is left out
//! from then on, and after a failover what the old master took is done once more on the new one.

use std::sync::PoisonError;

use super::batch::{self, Batch};
use super::change::{Change, KeyAction, Outcome};
use super::writer::Writer;
use crate::domain::hash_slot;
use crate::domain::record::Observation;
use crate::store::backup::Backup;
use crate::store::cluster::slot_map::SlotMap;
use crate::store::error::StoreError;

impl Writer {
    /// Makes many changes, each against exactly what was seen of its record, in batches of a hundred Redis keys, one at
    /// a time, each compared and changed in one step. With a backup, a few batches at a time are in it and synced
    /// before the first of them goes.
    ///
    /// Gives one outcome a change, in order, and the error that came in between: of the changes after these outcomes none
    /// was made. A master of a cluster that does not answer keeps nobody from the others: then all outcomes are there, and
    /// the error beside them. When the backup cannot be written nothing goes that is not in it.
    pub async fn apply(
        &self,
        changes: &[Change],
        action: KeyAction,
        mut backup: Option<&mut Backup>,
    ) -> (Vec<Outcome>, Result<(), StoreError>) {
        let mut outcomes = Vec::with_capacity(changes.len());
        // Which nodes there are is known before anything is sent.
        if let Err(error) = self.client().masters().await {
            return (outcomes, Err(error));
        }
        if let Err(error) = self.client().can_compare(changes.iter().map(|change| &change.seen)) {
            return (outcomes, Err(error));
        }
        let mut silence = None;
        for group in batch::groups(changes, self.most_keys()) {
            let (begun, before) = (outcomes.len(), self.client().slot_map());
            let applied =
                self.apply_group(group, action, backup.as_deref_mut(), &mut outcomes).await;
            let follows = self.follow(before.as_deref()).await;
            if let Ok(Some(failed_over)) = follows {
                let begun = begun..outcomes.len();
                let anew = self
                    .apply_anew(
                        &changes[begun.clone()],
                        action,
                        before.as_deref(),
                        &mut outcomes[begun],
                    )
                    .await;
                // The old master took changes for some time before anybody knew, and those are lost.
                let ended = StoreError::worse(anew, Some(failed_over));
                let unknown =
                    applied.unwrap_or_else(Some).filter(|_| outcomes.contains(&Outcome::Unknown));
                let ended = StoreError::worse(StoreError::worse(silence, unknown), ended);
                return (outcomes, ended.map_or(Ok(()), Err));
            }
            let is_all = outcomes.len() == changes.len();
            match applied {
                Ok(silent) => silence = StoreError::worse(silence.take(), silent),
                // All is done, as reading back told.
                Err(error)
                    if !error.is_without_effect() && is_all && all_known(&outcomes[begun..]) => {}
                Err(error) => return (outcomes, Err(StoreError::worst_of(silence, error))),
            }
            let done = changes[begun..]
                .iter()
                .zip(&outcomes[begun..])
                .filter(|(_, outcome)| outcome.is_done());
            let done: Vec<_> = done
                .flat_map(|(change, _)| change.targets())
                .map(|key| key.redis_key.as_slice())
                .collect();
            if let Err(error) = self.is_kept(follows.map(drop), &done).await {
                return (outcomes, Err(StoreError::worst_of(silence, error)));
            }
        }
        (outcomes, silence.map_or(Ok(()), Err))
    }

    /// Passes where what was done stays done: the master is known, and the replicas have what they were to have.
    async fn is_kept(
        &self,
        follows: Result<(), StoreError>,
        done: &[&[u8]],
    ) -> Result<(), StoreError> {
        match follows {
            // What was done may be lost, for nobody can say who the master is.
            Err(why) if !done.is_empty() => {
                Err(StoreError::MasterUnknown { target: self.name(), why: why.to_string() })
            }
            Err(error) => Err(error),
            Ok(()) => self.replicated(done).await,
        }
    }

    /// True when an error of [`Writer::apply`] leaves the other masters, or slots, of a cluster to go on with.
    pub fn goes_on_after(&self, error: &StoreError) -> bool {
        let is_of_one = error.is_of_a_part() || matches!(error, StoreError::OutcomeUnknown { .. });
        is_of_one && self.client().is_cluster()
    }

    /// Makes changes once more whose master is another one now: what was done on the old one may be lost. They are compared
    /// there as they were here, so that what has arrived there is found done, and what was taken anew since stays. What was
    /// done, or may have been, is in the backup already; what was left alone is not, and is left alone again.
    ///
    /// Gives why a part of it could not be done.
    async fn apply_anew(
        &self,
        changes: &[Change],
        action: KeyAction,
        before: Option<&SlotMap>,
        outcomes: &mut [Outcome],
    ) -> Option<StoreError> {
        let now = self.client().slot_map();
        let has_moved = |change: &Change| match (before, &now) {
            (Some(before), Some(now)) => {
                let slot = hash_slot::of(change.redis_key());
                before.master(slot) != now.master(slot)
            }
            _ => true,
        };
        let may_be_done = |outcome: &Outcome| outcome.is_done() || *outcome == Outcome::Unknown;
        let concerns =
            |index: &usize| may_be_done(&outcomes[*index]) && has_moved(&changes[*index]);
        let again: Vec<_> = (0..outcomes.len()).filter(concerns).collect();
        let changes: Vec<_> = again.iter().map(|index| changes[*index].clone()).collect();
        let mut here = Vec::with_capacity(changes.len());
        let mut ended = None;
        for group in batch::groups(&changes, self.most_keys()) {
            match self.apply_group(group, action, None, &mut here).await {
                Ok(silent) => ended = StoreError::worse(ended, silent),
                Err(error) => {
                    ended = StoreError::worse(ended, Some(error));
                    break;
                }
            }
        }
        for (index, here) in again.into_iter().zip(here) {
            outcomes[index] = match (outcomes[index], here) {
                (
                    _,
                    Outcome::Done | Outcome::Expires(_) | Outcome::FoundDone | Outcome::Unknown,
                ) => here,
                (Outcome::Unknown, Outcome::Absent) => Outcome::FoundDone,
                // It was done there, whatever stands here now.
                (there, _) => there,
            };
        }
        ended
    }

    /// Of the Redis keys of a record that are to change, by their roles, those that no node takes in one call with the first:
    /// a call for each slot of a cluster. The others stay in `roles`.
    ///
    /// # Errors
    /// When nobody can say which nodes there are.
    pub async fn later_calls(
        &self,
        seen: &Observation,
        roles: &mut Vec<usize>,
    ) -> Result<Vec<Vec<usize>>, StoreError> {
        let mut later: Vec<Vec<usize>> = Vec::new();
        if roles.len() < 2 {
            return Ok(later);
        }
        let client = self.client();
        client.masters().await?;
        if !client.is_cluster() {
            return Ok(later);
        }
        let slot = |role: usize| hash_slot::of(&seen.keys[role].redis_key);
        let first = slot(roles[0]);
        for role in roles.iter().copied().filter(|role| slot(*role) != first) {
            match later.iter_mut().find(|call| slot(call[0]) == slot(role)) {
                Some(call) => call.push(role),
                None => later.push(vec![role]),
            }
        }
        roles.retain(|role| slot(*role) == first);
        Ok(later)
    }

    fn most_keys(&self) -> usize {
        if self.client().is_cluster() { batch::MOST_APART } else { batch::MOST_KEYS }
    }

    async fn apply_group(
        &self,
        mut group: Vec<Batch<'_>>,
        action: KeyAction,
        mut backup: Option<&mut Backup>,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<Option<StoreError>, StoreError> {
        group.iter_mut().for_each(|batch| self.leave_out_silent(batch));
        let mut silence = match backup.as_deref_mut() {
            Some(backup) => self.back_up(&mut group, backup).await?,
            None => None,
        };
        let mut stopped = None;
        for batch in &mut group {
            if stopped.is_none() {
                let sent = self.send(batch, action).await;
                if sent.is_ok() {
                    outcomes.extend_from_slice(batch.outcomes());
                }
                match sent {
                    Ok(Some(error)) if self.goes_on_after(&error) => {
                        silence = StoreError::worse(silence.take(), Some(error));
                    }
                    Ok(error) => stopped = error,
                    Err(error) => stopped = Some(error),
                }
            }
            if let Some(backup) = backup.as_deref_mut() {
                backup.take_back(&batch.left_alone());
            }
        }
        match stopped {
            Some(error) => Err(StoreError::worst_of(silence, error)),
            None => Ok(silence),
        }
    }

    /// Gives why a master was left out, if one was.
    async fn back_up(
        &self,
        group: &mut [Batch<'_>],
        backup: &mut Backup,
    ) -> Result<Option<StoreError>, StoreError> {
        let mut silence = None;
        loop {
            let redis_keys: Vec<_> = group.iter_mut().flat_map(Batch::save).collect();
            match self.client().dumps(&redis_keys).await {
                Ok(dumps) => {
                    let mut dumps = dumps.into_iter();
                    group.iter_mut().for_each(|batch| batch.dumped(&mut dumps));
                    let from = self.provenance().await?;
                    let entries = group.iter().flat_map(|batch| batch.entries());
                    return backup.append(&from, entries).await.map(|()| silence);
                }
                Err(error) => {
                    self.fell_silent(&error)?;
                    group.iter_mut().for_each(|batch| self.leave_out_silent(batch));
                    silence = silence.or(Some(error));
                }
            }
        }
    }

    /// Takes note of a master of a cluster that does not answer, the first time.
    ///
    /// # Errors
    /// The error, when it is another, or nothing more was to be sent there.
    pub(super) fn fell_silent(&self, error: &StoreError) -> Result<(), StoreError> {
        let mut silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        match error.silent_server() {
            Some(server) if self.client().is_cluster() && silent.insert(server.to_owned()) => {
                Ok(())
            }
            _ => Err(error.clone()),
        }
    }

    pub(super) fn leave_out_silent(&self, batch: &mut Batch<'_>) {
        let silent = self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(map) = self.client().slot_map().filter(|_| !silent.is_empty()) else { return };
        let is_silent = |redis_key: &[u8]| {
            map.master(hash_slot::of(redis_key))
                .is_some_and(|master| silent.contains(&master.to_string()))
        };
        batch.refuse(is_silent);
    }
}

fn all_known(outcomes: &[Outcome]) -> bool {
    outcomes.iter().all(|outcome| !matches!(outcome, Outcome::Unknown | Outcome::Refused))
}
