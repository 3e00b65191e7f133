//! Bringing Redis keys back from a backup: only where nothing is, until the moment that the backup says.

mod outlook;
mod restore_outcome;

use self::outlook::Left;
pub use self::restore_outcome::{RestoreOutcome, RestoreResult, Return};
use super::writer::Writer;
use crate::domain::record::{Deadline, SeenKey};
use crate::store::backup::Saved;
use crate::store::cluster::client::Client;
use crate::store::error::StoreError;
use crate::store::scripts;

/// What the script runs that brings a Redis key back.
const RIGHTS: &str = "+restore +exists";

impl Writer {
    /// Brings Redis keys back in one round trip after the question for the time. Nothing that is there is touched, so
    /// that it can be done again.
    ///
    /// Gives what became of each, with an own error for each Redis key that is refused, and
    /// [`StoreError::OutcomeUnknown`] for each whose reply was lost and of which reading back could not tell; and the
    /// error that came in between. Where the server could not be asked at all nothing became of any.
    pub async fn restore(&self, backup: &[Return<'_>]) -> (Vec<RestoreResult>, Result<(), StoreError>) {
        // Which nodes there are is known before anything is sent.
        if let Err(error) = self.client().masters().await {
            return (Vec::new(), Err(error));
        }
        let before = self.client().slot_map();
        let there = match self.restore_here(backup).await {
            Ok(there) => there,
            Err(error) => return (Vec::new(), Err(error)),
        };
        match self.follow(before.as_deref()).await {
            Ok(None) => {
                let replicated = self.replicated(&brought_back(backup, &there)).await;
                (there, replicated)
            }
            Err(why) if !brought_back(backup, &there).is_empty() => {
                let why = StoreError::MasterUnknown { target: self.name(), why: why.to_string() };
                (there, Err(why))
            }
            Err(error) => (there, Err(error)),
            // What came back on the old master may be lost.
            Ok(Some(_)) => match self.restore_here(backup).await {
                Ok(here) => (there.into_iter().zip(here).map(|(there, here)| either(there, here)).collect(), Ok(())),
                Err(error) => (there, Err(error)),
            },
        }
    }

    async fn restore_here(&self, backup: &[Return<'_>]) -> Result<Vec<RestoreResult>, StoreError> {
        let client = self.client();
        let left = client.left(backup).await?;
        let mut outcomes = client.foresee(backup, &left, |wanted| client.looks_ahead(wanted)).await?;
        let sent: Vec<_> = (0..backup.len()).filter(|index| outcomes[*index].is_none()).collect();
        let replies = client.ask_each(&client.returns(sent.iter().map(|index| &backup[*index]))).await;
        let mut lost = Vec::new();
        for (index, reply) in sent.iter().zip(replies) {
            match reply.map(|reply| client.outcome(reply, left[*index])) {
                Ok(Ok(outcome)) => outcomes[*index] = Some(Ok(outcome)),
                // What answers so is no Redis, and what Redis did is not told by it.
                Ok(Err(odd)) => lost.push((*index, odd)),
                Err(error) if error.is_without_effect() || is_of_restore(&error) => {
                    outcomes[*index] = Some(Err(error.naming(RIGHTS)));
                }
                Err(error) => lost.push((*index, error)),
            }
        }
        if let Some((_, why)) = lost.first() {
            let some: Vec<_> = lost.iter().map(|(index, _)| (backup[*index].saved, left[*index])).collect();
            for ((index, _), outcome) in lost.iter().zip(self.found_back(&some, why).await) {
                outcomes[*index] = Some(outcome);
            }
        }
        Ok(outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| Err(client.unexpected("EVAL")))).collect())
    }

    /// On a new connection, for the old one may be what was lost. A Redis key that holds what the backup holds, and expires
    /// when the backup says, is back; one that holds something else is left to whoever wrote it. One that is not there may
    /// come yet: that is unknown.
    async fn found_back(&self, lost: &[(&Saved, Left)], why: &StoreError) -> Vec<RestoreResult> {
        let mut now = vec![None; lost.len()];
        if let Ok(client) = self.client().anew().await {
            let redis_keys: Vec<_> = lost.iter().map(|(saved, _)| saved.redis_key.as_slice()).collect();
            for indexes in client.by_master(&redis_keys) {
                let some: Vec<_> = indexes.iter().map(|index| redis_keys[*index]).collect();
                for (index, there) in indexes.iter().zip(there(&client, &some).await.unwrap_or_default()) {
                    now[*index] = there;
                }
            }
        }
        let outcome = |((saved, left), now): (&(&Saved, Left), Option<There>)| {
            let (dump, seen) = now?;
            let is_back = is_back(saved, &dump, &seen);
            Some(if is_back { RestoreOutcome::FoundBack(left.millis()) } else { RestoreOutcome::Present })
        };
        let outcomes: Vec<_> = lost.iter().zip(now).map(outcome).collect();
        let unknown = outcomes.iter().filter(|outcome| outcome.is_none()).count();
        let what = format!("the return of {unknown} of {} Redis keys", lost.len());
        let unknown = StoreError::OutcomeUnknown { target: self.client().name(), what, why: why.to_string() };
        outcomes.into_iter().map(|outcome| outcome.ok_or_else(|| unknown.clone())).collect()
    }
}

/// What stands at a Redis key: its DUMP, and a look at the key.
type There = (Vec<u8>, SeenKey);

/// The DUMP of each Redis key and a look at the key; `None` for one that is gone.
async fn there(client: &Client, redis_keys: &[&[u8]]) -> Result<Vec<Option<There>>, StoreError> {
    let wanted: Vec<_> = redis_keys.iter().map(|redis_key| vec![redis_key.to_vec()]).collect();
    let seen = client.reader().look(&wanted, 0).await?;
    let dumps = client.dumps(redis_keys).await?;
    let pairs = dumps.into_iter().zip(seen);
    Ok(pairs.map(|(dump, seen)| Some((dump?, seen.ok()?.keys.pop()?))).collect())
}

impl Client {
    /// A call of the script for each. Where a cluster keeps a Redis key and what bars it apart, the script sees the one.
    fn returns<'a>(&self, wanted: impl Iterator<Item = &'a Return<'a>>) -> redis::Pipeline {
        let mut pipeline = redis::pipe();
        for wanted in wanted {
            let Saved { redis_key, dump, expires_at_ms, .. } = wanted.saved;
            let bar = if self.looks_ahead(wanted) { redis_key } else { wanted.bar() };
            pipeline.cmd("EVAL").arg(scripts::RESTORE_IF_ABSENT).arg(2).arg(redis_key).arg(bar);
            pipeline.arg(dump).arg(expires_at_ms.unwrap_or(0));
        }
        pipeline
    }
}

/// True when RESTORE refuses the bytes, which is all that the script writes.
fn is_of_restore(error: &StoreError) -> bool {
    let StoreError::Refused { why, .. } = error else { return false };
    ["DUMP payload version or checksum are wrong", "Bad data format"].iter().any(|words| why.contains(words))
}

/// True when what is there is what was sent: many locks hold the same bytes, and end at another moment. What was sent is a
/// DUMP, or was made from the string.
fn is_back(saved: &Saved, dump: &[u8], now: &SeenKey) -> bool {
    let same_deadline = match saved.expires_at_ms {
        Some(at) => now.deadline.is_at(at),
        None => now.deadline == Deadline::Never,
    };
    let same_value = saved.dump == dump || Saved::of_whole(now).is_some_and(|now| now.dump == saved.dump);
    same_value && same_deadline
}

/// The Redis keys that are back.
fn brought_back<'a>(backup: &[Return<'a>], became: &[RestoreResult]) -> Vec<&'a [u8]> {
    let is_back =
        |became: &RestoreResult| matches!(became, Ok(RestoreOutcome::Restored(_) | RestoreOutcome::FoundBack(_)));
    let back = backup.iter().zip(became).filter(|(_, became)| is_back(became));
    back.map(|(wanted, _)| wanted.saved.redis_key.as_slice()).collect()
}

/// What became of a Redis key that was brought back on one master and then on another.
fn either(there: RestoreResult, here: RestoreResult) -> RestoreResult {
    match (there, here) {
        (
            Ok(back @ (RestoreOutcome::Restored(_) | RestoreOutcome::FoundBack(_))),
            Ok(RestoreOutcome::Present) | Err(_),
        ) => Ok(back),
        (_, here) => here,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::{Content, Expiry};

    #[test]
    fn a_lock_taken_anew_with_the_same_bytes_is_not_what_came_back() {
        let sent = |expires_at_ms| Saved { redis_key: b"a".to_vec(), dump: b"1".to_vec(), ttl_ms: None, expires_at_ms };
        let now = |deadline| SeenKey::new(b"a", Content::Other("hash".to_owned()), Expiry::Never, deadline);
        let is_there = |dump: &str, deadline| is_back(&sent(Some(50_000)), dump.as_bytes(), &now(deadline));
        assert!(is_there("1", Deadline::At(50_000)) && is_there("1", Deadline::Between(50_001, 50_001)));
        for other in [Deadline::At(50_001), Deadline::Between(50_055, 50_055), Deadline::Never, Deadline::Unknown] {
            assert!(!is_there("1", other), "{other:?}");
        }
        assert!(!is_there("2", Deadline::At(50_000)));
        assert!(
            is_back(&sent(None), b"1", &now(Deadline::Never)) && !is_back(&sent(None), b"1", &now(Deadline::At(1)))
        );
    }

    #[test]
    fn what_was_made_from_a_string_is_known_by_the_string() {
        let seen = |text: &str| SeenKey::new(b"a", Content::text(text.into()), Expiry::Never, Deadline::Never);
        let saved = Saved::of_whole(&seen("1")).unwrap();
        assert!(is_back(&saved, b"as the server writes it", &seen("1")));
        assert!(!is_back(&saved, b"as the server writes it", &seen("2")));
    }
}
