//! Changing records: compare and change, atomically, against exactly what was seen.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::Cmd;

use super::backup::{About, Backup};
use super::batch::{self, Batch, Script};
use super::error::StoreError;
use super::link::{Failover, Link, Reply};
use super::read::Head;
use super::reply;
use super::scripts;
use super::slots::SlotMap;
use super::wire::{Wire, pack};
use crate::domain::age::millis;
use crate::domain::observation::{Content, Expiry, Observation};
use crate::domain::step::StepReply;

/// A change to one Redis key of a record that must still be as it was seen.
#[derive(Debug, Clone)]
pub struct Change {
    /// The slot whose Redis key changes.
    pub slot: usize,
    /// The record as it was seen: every value whole, or its beginning and its length.
    pub seen: Observation,
    /// Whose record it is, for the backup.
    pub about: About,
}

impl Change {
    /// The Redis key that changes.
    pub fn redis_key(&self) -> &[u8] {
        &self.seen.slots[self.slot].redis_key
    }
}

/// What is done to the Redis key of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It goes.
    Remove,
    /// It gets this TTL in milliseconds.
    ExpireIn(u64),
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was made.
    Done,
    /// It was made: its reply was lost, and reading back tells.
    FoundDone,
    /// The record is no longer as it was seen; nothing was done.
    Changed,
    /// The Redis key is gone; nothing was done.
    Absent,
    /// Its node of a cluster refuses it; nothing was done.
    Refused,
    /// It was sent, its reply was lost, and reading back cannot tell.
    Unknown,
}

impl Outcome {
    /// True when the change was made.
    pub fn is_done(self) -> bool {
        matches!(self, Self::Done | Self::FoundDone)
    }
}

/// What may change: the one place that sends a change.
pub struct Writer {
    /// Another one after a failover.
    link: Mutex<Link>,
    /// How many replicas are to have each batch of changes, and how long that may take.
    replicas: Option<(u32, Duration)>,
    /// That the replicas did not have a service's own step in time.
    behind: Mutex<Option<StoreError>>,
}

impl Writer {
    pub(super) fn new(link: Link) -> Self {
        Self { link: Mutex::new(link), replicas: None, behind: Mutex::default() }
    }

    /// The same, which waits after each batch of changes until so many replicas have it.
    #[must_use]
    pub fn waiting_for(self, replicas: Option<(u32, Duration)>) -> Self {
        Self { replicas, ..self }
    }

    /// Passes when the replicas had every step of a service in time that was made, as many as were to be waited for.
    ///
    /// # Errors
    /// They had not; the step was made.
    pub fn replicas_have_it(&self) -> Result<(), StoreError> {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    /// Waits for the replicas behind a connection of its own, for Redis counts what came through that one alone.
    pub(super) async fn wait_behind(&self, wire: &mut Wire) {
        let Some((wanted, wait)) = self.replicas else { return };
        let asked = wire.ask(&pack(["WAIT", &wanted.to_string(), &millis(wait).to_string()])).await;
        let have = match asked {
            Ok(StepReply::Integer(have)) => have,
            _ => 0,
        };
        if have < i64::from(wanted) {
            let behind = StoreError::NotReplicated { target: self.name(), have, wanted };
            *self.behind.lock().unwrap_or_else(PoisonError::into_inner) = Some(behind);
        }
    }

    /// Waits for the replicas, where they are to be waited for.
    pub(super) async fn replicated(&self) -> Result<(), StoreError> {
        match self.replicas {
            Some((wanted, wait)) => self.link().replicated(wanted, wait).await,
            None => Ok(()),
        }
    }

    /// The way to the server; to the master of now, where a failover was noticed.
    pub(super) fn link(&self) -> Link {
        self.link.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Goes to the master of now, where another one has taken over since the slot map was this: that it was so, as an
    /// error to end with.
    pub(super) async fn follow(&self, before: Option<&SlotMap>) -> Result<Option<StoreError>, StoreError> {
        let Some(Failover { link, from, to }) = self.link().failover(before).await? else { return Ok(None) };
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = link;
        Ok(Some(StoreError::FailedOver { from, to }))
    }

    /// The server's name for people.
    pub fn name(&self) -> String {
        self.link().name()
    }

    /// Makes many changes, each against exactly what was seen of its record, in batches of a hundred Redis keys, one at
    /// a time, each compared and changed in one step. With a backup, a few batches at a time are in it and synced
    /// before the first of them goes.
    ///
    /// Gives one outcome a change, in order, and the error that came in between: of the changes after these outcomes none
    /// was made. When the backup cannot be written nothing goes that is not in it.
    pub async fn apply(
        &self,
        changes: &[Change],
        action: Action,
        mut backup: Option<&mut Backup>,
    ) -> (Vec<Outcome>, Result<(), StoreError>) {
        let mut outcomes = Vec::with_capacity(changes.len());
        // Which nodes there are is known before anything is sent.
        if let Err(error) = self.link().masters().await {
            return (outcomes, Err(error));
        }
        for group in batch::groups(changes, self.most_keys()) {
            let (begun, before) = (outcomes.len(), self.link().slot_map());
            let applied = self.apply_group(group, action, backup.as_deref_mut(), &mut outcomes).await;
            let applied = match self.follow(before.as_deref()).await {
                Ok(None) if applied.is_ok() => self.replicated().await,
                Ok(None) => applied,
                Ok(Some(failed_over)) => {
                    let anew = self.apply_anew(&changes[begun..], action, &mut outcomes[begun..]).await;
                    // The old master took changes for some time before anybody knew, and those are lost.
                    return (outcomes, anew.and(Err(failed_over)));
                }
                Err(error) => applied.and(Err(error)),
            };
            match applied {
                // All is done, as reading back told.
                Err(error) if error.lost_the_reply() && outcomes.len() == changes.len() => {}
                Err(error) => return (outcomes, Err(error)),
                Ok(()) => {}
            }
        }
        (outcomes, Ok(()))
    }

    /// Makes changes once more, on another master: what was done on the old one may be lost. They are compared there as
    /// they were here, so that what has arrived there is found done. What was done, or may have been, is in the backup
    /// already; what was left alone is not, and is left alone again.
    async fn apply_anew(&self, changes: &[Change], action: Action, outcomes: &mut [Outcome]) -> Result<(), StoreError> {
        let may_be_done = |outcome: &Outcome| outcome.is_done() || *outcome == Outcome::Unknown;
        let again: Vec<_> = (0..outcomes.len()).filter(|index| may_be_done(&outcomes[*index])).collect();
        let changes: Vec<_> = again.iter().map(|index| changes[*index].clone()).collect();
        let mut here = Vec::with_capacity(changes.len());
        let mut applied = Ok(());
        for group in batch::groups(&changes, self.most_keys()) {
            applied = self.apply_group(group, action, None, &mut here).await;
            if applied.is_err() {
                break;
            }
        }
        for (index, here) in again.into_iter().zip(here) {
            outcomes[index] = match (outcomes[index], here) {
                (Outcome::Unknown, Outcome::Absent) => Outcome::FoundDone,
                (there, Outcome::Absent) => there,
                (_, here) => here,
            };
        }
        applied
    }

    fn most_keys(&self) -> usize {
        if self.link().is_cluster() { batch::MOST_APART } else { batch::MOST_KEYS }
    }

    async fn apply_group(
        &self,
        mut group: Vec<Batch<'_>>,
        action: Action,
        mut backup: Option<&mut Backup>,
        outcomes: &mut Vec<Outcome>,
    ) -> Result<(), StoreError> {
        if let Some(backup) = backup.as_deref_mut() {
            self.back_up(&mut group, backup).await?;
        }
        let mut stopped = None;
        for batch in &mut group {
            if stopped.is_none() {
                match self.send(batch, action).await {
                    Ok(error) => {
                        outcomes.extend_from_slice(batch.outcomes());
                        stopped = error;
                    }
                    Err(error) => stopped = Some(error),
                }
            }
            if let Some(backup) = backup.as_deref_mut() {
                backup.take_back(&batch.left_alone());
            }
        }
        stopped.map_or(Ok(()), Err)
    }

    async fn back_up(&self, group: &mut [Batch<'_>], backup: &mut Backup) -> Result<(), StoreError> {
        let redis_keys: Vec<_> = group.iter().flat_map(Batch::redis_keys).collect();
        let mut saved = self.link().save(&redis_keys).await?.into_iter();
        group.iter_mut().for_each(|batch| batch.saved_as(&mut saved));
        backup.append(group.iter().flat_map(Batch::saved)).await
    }

    /// Sends a batch once; the batch then knows what became of each change. Gives why nothing is to be sent after it, if
    /// so: a connection that lost a reply is not to be used for more, also where reading back told what became of it.
    ///
    /// # Errors
    /// Nothing was done.
    async fn send(&self, batch: &mut Batch<'_>, action: Action) -> Result<Option<StoreError>, StoreError> {
        if self.link().is_cluster() {
            return self.send_apart(batch, action).await;
        }
        let Some(command) = batch.command(action) else { return Ok(None) };
        match self.link().ask(&command).await {
            Ok(value) => {
                let letters = reply::bytes(value).unwrap_or_default();
                let is_expected = batch.came_to(letters.iter().map(|letter| batch::outcome(*letter)));
                Ok((!is_expected).then(|| self.link().unexpected("EVAL")))
            }
            Err(error) if error.lost_the_reply() => {
                let redis_keys = batch.redis_keys();
                let (outcomes, error) = self.read_back(&redis_keys, action, error).await;
                batch.came_to(outcomes.into_iter().map(Some));
                Ok(Some(error))
            }
            Err(error) => Err(error),
        }
    }

    /// On a cluster: a call for each change, all in one write a node. What a node refuses or does not answer is no matter
    /// of the others.
    async fn send_apart(&self, batch: &mut Batch<'_>, action: Action) -> Result<Option<StoreError>, StoreError> {
        self.look_elsewhere(batch).await?;
        let mut outcomes = Vec::new();
        let (mut stopped, mut lost) = (None, Vec::new());
        for (index, reply) in self.ask_apart(batch, action).await?.into_iter().enumerate() {
            outcomes.push(match reply {
                Ok(value) => reply::bytes(value).as_deref().and_then(|letter| batch::outcome(*letter.first()?)),
                Err(error) if error.lost_the_reply() => {
                    lost.push((index, error));
                    Some(Outcome::Unknown)
                }
                Err(error) => {
                    stopped = Some(error);
                    Some(Outcome::Refused)
                }
            });
        }
        if let Some((_, error)) = lost.first() {
            let all = batch.redis_keys();
            let redis_keys: Vec<_> = lost.iter().map(|(index, _)| all[*index]).collect();
            let (found, error) = self.read_back(&redis_keys, action, error.clone()).await;
            for ((index, _), found) in lost.iter().zip(found) {
                outcomes[*index] = Some(found);
            }
            stopped = Some(error);
        }
        let is_expected = batch.came_to(outcomes.into_iter());
        Ok(if is_expected { stopped } else { Some(self.link().unexpected("EVAL")) })
    }

    /// Sends a call for each change of a batch, by the script's digest; once more in full where a node has forgotten the
    /// script, which means that it has done nothing.
    async fn ask_apart(&self, batch: &Batch<'_>, action: Action) -> Result<Vec<Reply>, StoreError> {
        let digest = self.link().digest(scripts::CHANGE_MANY_IF_SAME).await?;
        let script = digest.as_deref().map_or(Script::Text, Script::Digest);
        let mut replies = self.ask_each(batch.commands_apart(action, script)).await?;
        let forgotten = |reply: &Reply| matches!(reply, Err(StoreError::Refused { code, .. }) if code == "NOSCRIPT");
        let again: Vec<_> = (0..replies.len()).filter(|index| forgotten(&replies[*index])).collect();
        if again.is_empty() {
            return Ok(replies);
        }
        let whole = batch.commands_apart(action, Script::Text);
        let commands = again.iter().map(|index| whole[*index].clone()).collect();
        for (index, reply) in again.iter().zip(self.ask_each(commands).await?) {
            replies[*index] = reply;
        }
        Ok(replies)
    }

    async fn ask_each(&self, commands: Vec<Cmd>) -> Result<Vec<Reply>, StoreError> {
        let mut pipeline = redis::pipe();
        for command in commands {
            pipeline.add_command(command);
        }
        self.link().ask_each(&pipeline).await
    }

    /// A second look, right before the change, at the Redis keys of records that a cluster keeps apart from the one to
    /// change: no script can compare both. A record whose other Redis key is no longer as it was seen is left alone.
    async fn look_elsewhere(&self, batch: &mut Batch<'_>) -> Result<(), StoreError> {
        let elsewhere = batch.elsewhere();
        if elsewhere.is_empty() {
            return Ok(());
        }
        let wanted: Vec<_> = elsewhere.iter().map(|(_, seen)| vec![seen.redis_key.clone()]).collect();
        let longest = elsewhere.iter().map(|(_, seen)| seen.content.read_bytes()).max().unwrap_or(0);
        let now = self.link().reader().peek(&wanted, Head::Bytes(longest.max(1))).await?;
        let changed = elsewhere
            .iter()
            .zip(&now)
            .filter(|((_, seen), now)| !now.as_ref().is_ok_and(|now| now.slots[0].content.begins_as(&seen.content)));
        batch.leave_out(&changed.map(|((place, _), _)| *place).collect());
        Ok(())
    }

    /// What became of changes to these Redis keys whose replies were `lost`, and the error to end with: that one, or that
    /// the outcome of some is unknown.
    ///
    /// On a new connection, for the old one may be what was lost. A Redis key that is gone, or expires as it should,
    /// was changed or needs no change. One that is still there may have been left alone or taken anew since, and a slow
    /// server may get to it yet: that is unknown.
    async fn read_back(&self, redis_keys: &[&[u8]], action: Action, lost: StoreError) -> (Vec<Outcome>, StoreError) {
        let wanted: Vec<_> = redis_keys.iter().map(|key| vec![key.to_vec()]).collect();
        let now = match self.link().anew().await {
            Ok(link) => link.reader().peek_each(&wanted, Head::Bytes(1)).await.unwrap_or_default(),
            Err(_) => Vec::new(),
        };
        let outcome = |index: usize| match now.get(index) {
            Some(Ok(now)) if is_made(now, action) => Outcome::FoundDone,
            _ => Outcome::Unknown,
        };
        let outcomes: Vec<_> = (0..wanted.len()).map(outcome).collect();
        let unknown: Vec<_> = (0..wanted.len()).filter(|index| outcomes[*index] == Outcome::Unknown).collect();
        let verb = if action == Action::Remove { "removal" } else { "expiry" };
        let what = match (&unknown[..], wanted.len()) {
            ([], _) => return (outcomes, lost),
            ([only], 1) => format!("the {verb} of {:?}", bstr::BStr::new(redis_keys[*only])),
            (some, all) => format!("the {verb} of {} of {all} Redis keys", some.len()),
        };
        (outcomes, StoreError::OutcomeUnknown { target: self.link().name(), what, why: lost.to_string() })
    }
}

fn is_made(now: &Observation, action: Action) -> bool {
    let slot = &now.slots[0];
    match action {
        Action::Remove => slot.content == Content::Absent,
        Action::ExpireIn(ttl) => {
            slot.content != Content::Absent && matches!(slot.expiry, Expiry::In(left) if left <= ttl)
        }
    }
}
