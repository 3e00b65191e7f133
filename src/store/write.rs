//! Changing records: compare and change, atomically, against exactly what was seen.

use redis::Value;

use super::backup::{About, Backup, Saved};
use super::connect::Link;
use super::error::StoreError;
use super::read::Head;
use super::reply;
use super::scripts;
use crate::domain::observation::{Content, Expiry, Observation};

/// The removal of one Redis key of a record that must still be as it was seen.
#[derive(Debug, Clone)]
pub struct Change {
    /// The slot whose Redis key goes.
    pub slot: usize,
    /// The record as it was seen, every value whole.
    pub seen: Observation,
    /// Whose record it is, for the backup.
    pub about: About,
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
    link: Link,
}

impl Writer {
    pub(super) fn new(link: Link) -> Self {
        Self { link }
    }

    /// The server's name for people.
    pub fn name(&self) -> String {
        self.link.name()
    }

    /// What `restore` needs of a Redis key: its DUMP and the moment it expires. `None` when it is gone.
    ///
    /// # Errors
    /// As every read.
    pub async fn save(&self, redis_key: &[u8]) -> Result<Option<Saved>, StoreError> {
        let mut pipeline = redis::pipe();
        pipeline.cmd("DUMP").arg(redis_key);
        pipeline.cmd("PTTL").arg(redis_key);
        pipeline.cmd("TIME");
        let replies = self.link.ask_all(&pipeline).await?;
        let [dump, pttl, time] = <[_; 3]>::try_from(replies).map_err(|_| self.link.unexpected("DUMP"))?;
        let Some(dump) = reply::bytes(dump?) else { return Ok(None) };
        let pttl = reply::integer(&pttl?).ok_or_else(|| self.link.unexpected("PTTL"))?;
        let left = Expiry::from_pttl(pttl).millis();
        let now = time.ok().and_then(server_millis);
        Ok(Some(Saved {
            redis_key: redis_key.to_vec(),
            dump,
            ttl_ms: left,
            expires_at_ms: left.zip(now).map(|(left, now)| now + left),
        }))
    }

    /// Removes one Redis key of a record, if the whole record is byte for byte as it was seen. Sent once; when the
    /// reply is lost, reading back tells what became of it.
    ///
    /// # Errors
    /// [`StoreError::OutcomeUnknown`] when not even reading back can tell; else as every command.
    pub async fn remove(&self, change: &Change) -> Result<Outcome, StoreError> {
        let command = self.remove_command(change);
        match self.link.ask(&command).await {
            Ok(value) => self.outcome(value),
            Err(error) if error.lost_the_reply() => self.read_back(change, error).await,
            Err(error) => Err(error),
        }
    }

    /// Writes the record into the backup, synced to disk, then removes it.
    ///
    /// # Errors
    /// When the backup cannot be written nothing is removed; else as [`Writer::remove`].
    pub async fn back_up_and_remove(&self, change: &Change, backup: &mut Backup) -> Result<Outcome, StoreError> {
        match self.save(&change.seen.slots[change.slot].redis_key).await? {
            None => Ok(Outcome::Absent),
            Some(saved) => {
                backup.append(&saved, &change.about)?;
                self.remove(change).await
            }
        }
    }

    /// Makes many changes, each against exactly what was seen of its record: backed up, synced, then changed. One
    /// outcome a change, in order.
    ///
    /// # Errors
    /// As [`Writer::back_up_and_remove`]; changes before the failing one were made.
    pub async fn apply(
        &self,
        changes: &[Change],
        action: Action,
        mut backup: Option<&mut Backup>,
    ) -> Result<Vec<Outcome>, StoreError> {
        let mut outcomes = Vec::with_capacity(changes.len());
        for change in changes {
            outcomes.push(match (action, backup.as_deref_mut()) {
                (Action::Remove, Some(backup)) => self.back_up_and_remove(change, backup).await?,
                (Action::Remove, None) => self.remove(change).await?,
                (Action::ExpireIn(_), _) => Outcome::Changed,
            });
        }
        Ok(outcomes)
    }

    fn remove_command(&self, change: &Change) -> redis::Cmd {
        let order = key_order(change);
        let mut command = redis::cmd("EVAL");
        command.arg(scripts::DELETE_IF_SAME).arg(order.len());
        for slot in &order {
            command.arg(&change.seen.slots[*slot].redis_key);
        }
        for slot in &order {
            command.arg(expected(&change.seen.slots[*slot].content));
        }
        match change.seen.slots[change.slot].expiry {
            Expiry::Never => command.arg("persistent"),
            Expiry::In(left) => command.arg(left),
        };
        command
    }

    fn outcome(&self, value: Value) -> Result<Outcome, StoreError> {
        match reply::word(value).as_deref() {
            Some("DELETED") => Ok(Outcome::Done),
            Some("CHANGED") => Ok(Outcome::Changed),
            Some("ABSENT") => Ok(Outcome::Absent),
            _ => Err(self.link.unexpected("delete_if_same")),
        }
    }

    /// On a new connection, for the old one may be what was lost: a value still as it was seen means that the change
    /// was not made, or that another took the same lock since; a missing or other one leaves open who did it.
    async fn read_back(&self, change: &Change, lost: StoreError) -> Result<Outcome, StoreError> {
        let redis_key = &change.seen.slots[change.slot].redis_key;
        let unknown = StoreError::OutcomeUnknown {
            target: self.link.name(),
            what: format!("the removal of {:?}", bstr::BStr::new(redis_key)),
            why: lost.to_string(),
        };
        let Ok(link) = super::connect::connect(self.link.target()).await else { return Err(unknown) };
        let wanted = vec![vec![redis_key.clone()]];
        let seen = link.reader().observe(&wanted, Head::Whole).await.ok().and_then(|mut seen| seen.pop());
        match seen {
            Some(Ok(now)) if now.slots[0].content == Content::Absent => Ok(Outcome::Done),
            _ => Err(unknown),
        }
    }
}

/// The Redis key that goes comes first, as the script wants it.
fn key_order(change: &Change) -> Vec<usize> {
    let others = (0..change.seen.slots.len()).filter(|slot| *slot != change.slot);
    std::iter::once(change.slot).chain(others).collect()
}

/// How the script is told what must be there: `=` and the bytes, or `-` for nothing.
fn expected(content: &Content) -> Vec<u8> {
    match content {
        Content::Text { head, .. } => [b"=", &head[..]].concat(),
        Content::Absent | Content::Other(_) => b"-".to_vec(),
    }
}

fn server_millis(time: Value) -> Option<u64> {
    let [seconds, micros] = <[Value; 2]>::try_from(reply::array(time)?).ok()?;
    let seconds: u64 = reply::word(seconds)?.parse().ok()?;
    let micros: u64 = reply::word(micros)?.parse().ok()?;
    Some(seconds * 1_000 + micros / 1_000)
}
