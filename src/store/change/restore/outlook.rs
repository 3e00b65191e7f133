//! Predicts a restore before anything is sent: which keys have expired by their node's clock, and
//! which existing keys prevent it.

use redis::Value;

use super::restore_outcome::{RestoreOutcome, RestoreResult, Return};
use crate::domain::hash_slot;
use crate::domain::record::Observation;
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
        let Some((letters, now)) = letters_and_time(reply) else {
            return Err(self.unexpected("EVAL"));
        };
        // The script replies -1 if the Redis user may not send TIME.
        let now = u64::try_from(now).ok();
        if letters.len() != record.keys.len() {
            return Err(self.unexpected("EVAL"));
        }
        let mut outcomes = Vec::with_capacity(letters.len());
        for (letter, key) in letters.iter().zip(&record.keys) {
            outcomes.push(match letter {
                b'R' => RestoreOutcome::Restored(left(&key.saved, now)),
                b'P' => RestoreOutcome::Present,
                b'B' => RestoreOutcome::Barred,
                b'E' => RestoreOutcome::Expired,
                _ => return Err(self.unexpected("EVAL")),
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

/// The parts of the script's reply: a letter for each Redis key, and the server's time.
fn letters_and_time(reply: Value) -> Option<(Vec<u8>, i64)> {
    let mut parts = reply::array(reply)?.into_iter();
    let letters = reply::bytes(parts.next()?)?;
    let now = reply::integer(&parts.next()?)?;
    Some((letters, now))
}

/// The milliseconds that a Redis key has left; `None` if it never expires. If the server's time is
/// unknown, the time that was left at the backup.
pub(super) fn left(saved: &Saved, now_ms: Option<u64>) -> Option<u64> {
    let at = saved.expires_at_ms?;
    match now_ms {
        Some(now) => Some(at.saturating_sub(now)),
        None => saved.ttl_ms,
    }
}

/// What the script would do with a record in its current state, by the rule of
/// `restore_if_absent.lua`.
fn predict(record: &Return<'_>, seen: &[Observation]) -> Vec<RestoreOutcome> {
    let is_blocked = seen.iter().any(exists);
    let mut outcomes = Vec::with_capacity(record.keys.len());
    for (key, seen) in record.keys.iter().zip(seen) {
        let is_over = match (key.saved.expires_at_ms, seen.server_ms) {
            (Some(at), Some(now)) => at <= now,
            _ => false,
        };
        // In the order of the script, which reports an expired key even if a value is there.
        outcomes.push(if is_over {
            RestoreOutcome::Expired
        } else if exists(seen) {
            RestoreOutcome::Present
        } else if is_blocked {
            RestoreOutcome::Barred
        } else {
            RestoreOutcome::Restored(left(&key.saved, seen.server_ms))
        });
    }
    outcomes
}

/// True if any of the Redis keys exists.
fn exists(seen: &Observation) -> bool {
    seen.keys.iter().any(|key| !key.content.is_absent())
}
