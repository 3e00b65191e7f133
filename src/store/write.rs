//! Changing records: compare and change, atomically, against exactly what was seen.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::Cmd;

use super::backup::{About, Backup};
use super::batch::{self, Batch, Script};
use super::error::StoreError;
use super::link::{Link, Reply};
use super::read::Head;
use super::reply;
use super::scripts;
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
    /// The record is no longer as it was seen; nothing was done.
    Changed,
    /// The Redis key is gone; nothing was done.
    Absent,
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

    /// Goes to the service's master of now, where Sentinels say that it is another; true when it is.
    pub(super) async fn follow(&self) -> Result<bool, StoreError> {
        let Some(moved) = self.link().moved().await? else { return Ok(false) };
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = moved;
        Ok(true)
    }

    /// The server's name for people.
    pub fn name(&self) -> String {
        self.link().name()
    }

    /// Makes many changes, each against exactly what was seen of its record, in batches of a hundred Redis keys, one at
    /// a time, each compared and changed in one step. With a backup, a few batches at a time are in it and synced
    /// before the first of them goes.
    ///
    /// Gives one outcome a change, in order, and the error that came in between: of the batch after these outcomes (the
    /// next of [`Writer::batches`]) nothing was changed, or, with [`StoreError::OutcomeUnknown`], nobody knows. When the backup
    /// cannot be written nothing goes that is not in it.
    pub async fn apply(
        &self,
        changes: &[Change],
        action: Action,
        mut backup: Option<&mut Backup>,
    ) -> (Vec<Outcome>, Result<(), StoreError>) {
        let mut outcomes = Vec::with_capacity(changes.len());
        for group in batch::groups(changes, self.most_keys()) {
            let (begun, size) = (outcomes.len(), group.iter().map(|batch| batch.outcomes().len()).sum());
            let applied = self.apply_group(group, action, backup.as_deref_mut(), &mut outcomes).await;
            let from = self.name();
            let applied = match self.follow().await {
                Ok(false) if applied.is_ok() => self.replicated().await,
                Ok(false) => applied,
                Ok(true) => {
                    let there = outcomes.split_off(begun);
                    let anew = self.apply_anew(&changes[begun..][..size], action, &there, &mut outcomes).await;
                    // The old master took changes for some time before anybody knew, and those are lost.
                    let to = self.name();
                    return (outcomes, anew.and(Err(StoreError::FailedOver { from, to })));
                }
                Err(error) => applied.and(Err(error)),
            };
            match applied {
                Err(error @ StoreError::NotReplicated { .. }) => return (outcomes, Err(error)),
                Err(error) if outcomes.len() < changes.len() => return (outcomes, Err(error)),
                _ => {}
            }
        }
        (outcomes, Ok(()))
    }

    /// Makes changes once more, on another master: what was done on the old one may be lost. They are compared there as
    /// they were here, so that what has arrived there is found done. They are in the backup already.
    async fn apply_anew(
        &self,
        changes: &[Change],
        action: Action,
        there: &[Outcome],
        outcomes: &mut Vec<Outcome>,
    ) -> Result<(), StoreError> {
        let mut here = Vec::with_capacity(changes.len());
        let mut applied = Ok(());
        for group in batch::groups(changes, self.most_keys()) {
            applied = self.apply_group(group, action, None, &mut here).await;
            if applied.is_err() {
                break;
            }
        }
        let done_there = there.iter().copied().chain(std::iter::repeat(Outcome::Changed));
        outcomes.extend(here.into_iter().zip(done_there).map(|(here, there)| match (here, there) {
            (Outcome::Absent, Outcome::Done) => Outcome::Done,
            (here, _) => here,
        }));
        applied
    }

    /// The batches in which [`Writer::apply`] makes these changes.
    pub fn batches<'a>(&self, changes: &'a [Change]) -> impl Iterator<Item = &'a [Change]> {
        batch::batches(changes, self.most_keys())
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
                    Ok(lost) => {
                        outcomes.extend_from_slice(batch.outcomes());
                        stopped = lost;
                    }
                    Err(error @ (StoreError::OutcomeUnknown { .. } | StoreError::UnexpectedReply { .. })) => {
                        stopped = Some(error);
                        // The backup keeps what may be gone.
                        continue;
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

    /// Sends a batch once. When the reply is lost, reading back tells what became of it; the error is given then all the
    /// same, for a connection that lost a reply is not to be used for more.
    async fn send(&self, batch: &mut Batch<'_>, action: Action) -> Result<Option<StoreError>, StoreError> {
        self.link().masters().await?;
        if self.link().is_cluster() {
            return self.send_apart(batch, action).await;
        }
        let Some(command) = batch.command(action) else { return Ok(None) };
        match self.link().ask(&command).await {
            Ok(value) => {
                let letters = reply::bytes(value).unwrap_or_default();
                batch.answered(&letters).map(|()| None).ok_or_else(|| self.link().unexpected("EVAL"))
            }
            Err(error) if error.lost_the_reply() => {
                self.read_back(batch, action, &error).await?;
                Ok(Some(error))
            }
            Err(error) => Err(error),
        }
    }

    /// On a cluster: a call for each change, all in one write a node.
    async fn send_apart(&self, batch: &mut Batch<'_>, action: Action) -> Result<Option<StoreError>, StoreError> {
        self.look_elsewhere(batch).await?;
        let digest = self.link().digest(scripts::CHANGE_MANY_IF_SAME).await?;
        let script = digest.as_deref().map_or(Script::Text, Script::Digest);
        let mut replies = match self.ask_apart(batch.commands_apart(action, script)).await {
            Ok(replies) => replies,
            Err(error) if error.lost_the_reply() => {
                self.read_back(batch, action, &error).await?;
                return Ok(Some(error));
            }
            Err(error) => return Err(error),
        };
        // A node that has forgotten the script has done nothing.
        let forgotten = |reply: &Reply| matches!(reply, Err(StoreError::Refused { code, .. }) if code == "NOSCRIPT");
        if replies.iter().any(forgotten) {
            let whole = batch.commands_apart(action, Script::Text);
            let again: Vec<_> = (0..replies.len()).filter(|index| forgotten(&replies[*index])).collect();
            let commands = again.iter().map(|index| whole[*index].clone()).collect();
            for (index, reply) in again.iter().zip(self.ask_apart(commands).await?) {
                replies[*index] = reply;
            }
        }
        // What a node refuses is left alone; why is told when the others are known.
        let (mut letters, mut refused) = (Vec::with_capacity(replies.len()), None);
        for reply in replies {
            match reply {
                Ok(value) => letters.extend(reply::bytes(value).unwrap_or_default()),
                Err(error) => {
                    letters.push(b'C');
                    refused = Some(error);
                }
            }
        }
        batch.answered(&letters).map(|()| refused).ok_or_else(|| self.link().unexpected("EVAL"))
    }

    async fn ask_apart(&self, commands: Vec<Cmd>) -> Result<Vec<Reply>, StoreError> {
        let mut pipeline = redis::pipe();
        for command in commands {
            pipeline.add_command(command);
        }
        self.link().ask_all(&pipeline).await
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

    /// On a new connection, for the old one may be what was lost. A Redis key that is gone, or expires as it should,
    /// was changed or needs no change. One that is still there may have been left alone or taken anew since, and a slow
    /// server may get to it yet: that is unknown.
    async fn read_back(&self, batch: &mut Batch<'_>, action: Action, lost: &StoreError) -> Result<(), StoreError> {
        let wanted: Vec<_> = batch.redis_keys().into_iter().map(|key| vec![key.to_vec()]).collect();
        let now = match super::link::connect(self.link().target()).await {
            Ok(link) => link.reader().peek(&wanted, Head::Bytes(1)).await.unwrap_or_default(),
            Err(_) => Vec::new(),
        };
        let made = |index: usize| matches!(now.get(index), Some(Ok(now)) if is_made(now, action));
        let unknown: Vec<_> = (0..wanted.len()).filter(|index| !made(*index)).collect();
        if unknown.is_empty() {
            batch.all_done();
            return Ok(());
        }
        let verb = if action == Action::Remove { "removal" } else { "expiry" };
        let what = match (&unknown[..], wanted.len()) {
            ([only], 1) => format!("the {verb} of {:?}", bstr::BStr::new(&wanted[*only][0])),
            (some, all) => format!("the {verb} of {} of {all} Redis keys", some.len()),
        };
        Err(StoreError::OutcomeUnknown { target: self.link().name(), what, why: lost.to_string() })
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
