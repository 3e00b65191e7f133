//! Predicts a restore before anything is sent: which keys have expired by their node's clock, and
//! which existing keys prevent it.

use redis::Value;

use super::restore_outcome::{RestoreOutcome, RestoreResult, Return};
use crate::domain::hash_slot;
use crate::domain::record::{Content, Observation};
use crate::store::backup::Saved;
use crate::store::change::Writer;
use crate::store::cluster::client::Client;
use crate::store::connection::reply;
use crate::store::error::StoreError;
use crate::store::read::key_query::ReadLimit;

impl Client {
    /// Predicts the outcomes of [`Writer::restore`].
    ///
    /// # Errors
    /// The server could not be reached at all.
    pub async fn would_restore(
        &self,
        records: &[Return<'_>],
    ) -> Result<Vec<RestoreResult>, StoreError> {
        let mut wanted = Vec::new();
        for record in records {
            wanted.extend(record.all().map(|key| vec![key.to_vec()]));
        }
        // Each Redis key is read separately, because on a cluster each may have its own node and
        // clock.
        let mut seen = self.reader().read_each(&wanted, ReadLimit::Bytes(1)).await?.into_iter();
        let mut outcomes = Vec::with_capacity(records.len());
        for record in records {
            let seen: Result<Vec<_>, _> = seen.by_ref().take(record.all().count()).collect();
            outcomes.push(match seen {
                Ok(seen) => predict(record, &seen).into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error); record.keys.len()],
            });
        }
        Ok(outcomes)
    }

    /// True if a cluster stores the Redis keys of a record in different slots, so that no script
    /// can read them all.
    pub fn parts_record(&self, record: &Return<'_>) -> bool {
        self.is_cluster() && !hash_slot::is_one(record.all())
    }

    /// The outcomes of a record's Redis keys in the script's reply.
    pub(super) fn outcome(
        &self,
        reply: Value,
        record: &Return<'_>,
    ) -> Result<Vec<RestoreOutcome>, StoreError> {
        let unexpected = || self.unexpected("EVAL");
        let mut reply = reply::array(reply).ok_or_else(unexpected)?.into_iter();
        let letters = reply.next().and_then(reply::bytes).ok_or_else(unexpected)?;
        let now = reply.next().as_ref().and_then(reply::integer).ok_or_else(unexpected)?;
        let now = u64::try_from(now).ok();
        if letters.len() != record.keys.len() {
            return Err(unexpected());
        }
        let mut outcomes = Vec::with_capacity(letters.len());
        for (letter, key) in letters.iter().zip(&record.keys) {
            outcomes.push(match letter {
                b'R' => RestoreOutcome::Restored(left(&key.saved, now)),
                b'P' => RestoreOutcome::Present,
                b'B' => RestoreOutcome::Barred,
                b'E' => RestoreOutcome::Expired,
                _ => return Err(unexpected()),
            });
        }
        Ok(outcomes)
    }
}

impl Writer {
    /// Like [`Client::parts_record`].
    pub fn parts_record(&self, record: &Return<'_>) -> bool {
        self.client().parts_record(record)
    }
}

/// The milliseconds that a Redis key has left; `None` if it never expires. If the server's time is
/// unknown, the time that was left at the backup.
pub(super) fn left(saved: &Saved, now_ms: Option<u64>) -> Option<u64> {
    let at = saved.expires_at_ms?;
    now_ms.map_or(saved.ttl_ms, |now| Some(at.saturating_sub(now)))
}

/// What the script would do with a record in its current state, by the rule of
/// `restore_if_absent.lua`.
fn predict(record: &Return<'_>, seen: &[Observation]) -> Vec<RestoreOutcome> {
    let is_there = |seen: &Observation| seen.keys.iter().any(|key| key.content != Content::Absent);
    let is_blocked = seen.iter().any(is_there);
    let mut outcomes = Vec::with_capacity(record.keys.len());
    for (key, seen) in record.keys.iter().zip(seen) {
        let is_over =
            key.saved.expires_at_ms.zip(seen.server_ms).is_some_and(|(at, now)| at <= now);
        outcomes.push(match is_there(seen) {
            _ if is_over => RestoreOutcome::Expired,
            true => RestoreOutcome::Present,
            false if is_blocked => RestoreOutcome::Barred,
            false => RestoreOutcome::Restored(left(&key.saved, seen.server_ms)),
        });
    }
    outcomes
}
