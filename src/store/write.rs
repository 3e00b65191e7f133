//! Changing records: compare and change, atomically, against exactly what was seen.

use super::backup::{About, Backup};
use super::batch::{Batch, batches};
use super::connect::Link;
use super::error::StoreError;
use super::read::Head;
use super::reply;
use crate::domain::observation::{Content, Expiry, Observation};

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
    pub(super) link: Link,
}

impl Writer {
    pub(super) fn new(link: Link) -> Self {
        Self { link }
    }

    /// The server's name for people.
    pub fn name(&self) -> String {
        self.link.name()
    }

    /// Makes many changes, each against exactly what was seen of its record, in batches of a hundred Redis keys,
    /// one at a time: backed up and synced, then compared and changed in one step. One outcome a change, in order.
    ///
    /// Who has to account for each change gives the parts of [`batches`] one by one: an error then concerns one batch.
    ///
    /// # Errors
    /// When the backup cannot be written nothing of its batch is changed. [`StoreError::OutcomeUnknown`] when the reply
    /// is lost and not even reading back can tell. Batches before the failing one were changed.
    pub async fn apply(
        &self,
        changes: &[Change],
        action: Action,
        mut backup: Option<&mut Backup>,
    ) -> Result<Vec<Outcome>, StoreError> {
        let mut outcomes = Vec::with_capacity(changes.len());
        for part in batches(changes) {
            outcomes.extend(self.apply_batch(part, action, backup.as_deref_mut()).await?);
        }
        Ok(outcomes)
    }

    async fn apply_batch(
        &self,
        changes: &[Change],
        action: Action,
        backup: Option<&mut Backup>,
    ) -> Result<Vec<Outcome>, StoreError> {
        let mut batch = Batch::new(changes);
        let Some(backup) = backup else {
            self.send(&mut batch, action).await?;
            return Ok(batch.outcomes());
        };
        let saved = self.link.save(&batch.redis_keys()).await?;
        batch.saved_as(saved);
        backup.append(batch.saved())?;
        let sent = self.send(&mut batch, action).await;
        // Where nobody knows what became of the batch, the backup keeps it.
        if !matches!(sent, Err(StoreError::OutcomeUnknown { .. } | StoreError::UnexpectedReply { .. })) {
            backup.take_back(&batch.left_alone());
        }
        sent.map(|()| batch.outcomes())
    }

    /// Sends a batch once; when the reply is lost, reading back tells what became of it.
    async fn send(&self, batch: &mut Batch<'_>, action: Action) -> Result<(), StoreError> {
        let Some(command) = batch.command(action) else { return Ok(()) };
        match self.link.ask(&command).await {
            Ok(value) => {
                let letters = reply::bytes(value).unwrap_or_default();
                batch.answered(&letters).ok_or_else(|| self.link.unexpected("EVAL"))
            }
            Err(error) if error.lost_the_reply() => self.read_back(batch, action, &error).await,
            Err(error) => Err(error),
        }
    }

    /// On a new connection, for the old one may be what was lost. A Redis key that is gone, or expires as it should,
    /// was changed or needs no change. One that is still there may have been left alone or taken anew since, and a slow
    /// server may get to it yet: that is unknown.
    async fn read_back(&self, batch: &mut Batch<'_>, action: Action, lost: &StoreError) -> Result<(), StoreError> {
        let wanted: Vec<_> = batch.redis_keys().into_iter().map(|key| vec![key.to_vec()]).collect();
        let now = match super::connect::connect(self.link.target()).await {
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
        Err(StoreError::OutcomeUnknown { target: self.link.name(), what, why: lost.to_string() })
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
