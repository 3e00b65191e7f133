//! Predicts a restore before anything is sent: which keys have expired by their node's clock, and
//! which existing keys prevent it.

use redis::Value;

use super::restore_outcome::{KeyResult, RestoreOutcome, RestoreResult, Return};
use super::{RIGHTS, RestoreUnit};
use crate::domain::hash_slot;
use crate::domain::record::Observation;
use crate::store::backup::Saved;
use crate::store::change::Writer;
use crate::store::cluster::client::Client;
use crate::store::connection::reply;
use crate::store::error::StoreError;
use crate::store::read::key_query::KeyQuery;

impl Client {
    /// Predicts the outcomes of [`Writer::restore`].
    ///
    /// # Errors
    /// The server could not be reached at all.
    pub async fn would_restore(
        &self,
        records: &[Return<'_>],
    ) -> Result<Vec<RestoreResult>, StoreError> {
        let redis_keys: Vec<&[u8]> = records.iter().flat_map(|record| record.all()).collect();
        let wanted: Vec<_> = redis_keys.iter().map(|key| vec![key.to_vec()]).collect();
        let mut seen = self.reader().read_query(&wanted, KeyQuery::deadlines()).await;
        // The clock of its node decides whether a key has expired. A node that does not answer is
        // not asked again.
        for indexes in self.by_master(&redis_keys) {
            let Some(first) = indexes.iter().find(|index| seen[**index].is_ok()) else { continue };
            let master = self.master_of(redis_keys[*first]).await?;
            let time = self.node(&master).await?.ask(&redis::cmd("TIME")).await;
            let server_ms = time.ok().and_then(reply::millis);
            for index in indexes {
                if let Ok(seen) = &mut seen[index] {
                    seen.server_ms = server_ms;
                }
            }
        }
        let mut seen = seen.into_iter();
        let mut outcomes = Vec::with_capacity(records.len());
        for record in records {
            let seen: Result<Vec<_>, _> = seen.by_ref().take(record.all().count()).collect();
            outcomes.push(match seen {
                Ok(seen) => predict(record, &seen),
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

    /// The outcome of each Redis key of these units, in the script's reply.
    pub(super) fn restored(
        &self,
        reply: Value,
        units: &[RestoreUnit<'_>],
    ) -> Result<Vec<KeyResult>, StoreError> {
        let mut parts = reply::array(reply).unwrap_or_default().into_iter();
        let mut letters = parts.next().and_then(reply::bytes).unwrap_or_default().into_iter();
        // The script replies -1 if the Redis user may not send TIME.
        let now = parts.next().as_ref().and_then(reply::integer);
        let now = now.and_then(|now| u64::try_from(now).ok());
        let mut outcomes = Vec::new();
        for key in units.iter().flat_map(|unit| &unit.record.keys) {
            outcomes.push(match letters.next() {
                Some(b'R') => Ok(RestoreOutcome::Restored(left(&key.saved, now))),
                Some(b'P') => Ok(RestoreOutcome::Present),
                Some(b'B') => Ok(RestoreOutcome::Barred),
                Some(b'E') => Ok(RestoreOutcome::Expired),
                Some(b'X') => match parts.next() {
                    Some(Value::ServerError(error)) => {
                        Err(self.error(&error.into()).naming(RIGHTS))
                    }
                    _ => return Err(self.unexpected("EVAL")),
                },
                _ => return Err(self.unexpected("EVAL")),
            });
        }
        if letters.next().is_some() { Err(self.unexpected("EVAL")) } else { Ok(outcomes) }
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
    match now_ms {
        Some(now) => Some(at.saturating_sub(now)),
        None => saved.ttl_ms,
    }
}

/// What the script would do with a record in its current state, by the rule of
/// `restore_many_if_absent.lua`.
fn predict(record: &Return<'_>, seen: &[Observation]) -> RestoreResult {
    let is_blocked = seen.iter().any(|seen| !seen.is_absent());
    let mut outcomes = Vec::with_capacity(record.keys.len());
    for (key, seen) in record.keys.iter().zip(seen) {
        let is_over = match (key.saved.expires_at_ms, seen.server_ms) {
            (Some(at), Some(now)) => at <= now,
            _ => false,
        };
        // In the order of the script, which reports an expired key even if a value is there.
        outcomes.push(Ok(if is_over {
            RestoreOutcome::Expired
        } else if !seen.is_absent() {
            RestoreOutcome::Present
        } else if is_blocked {
            RestoreOutcome::Barred
        } else {
            RestoreOutcome::Restored(left(&key.saved, seen.server_ms))
        }));
    }
    outcomes
}
