//! Bringing Redis keys back from a backup: only where nothing is, until the moment that the backup says.

mod outlook;
mod restore_outcome;

pub use self::restore_outcome::{RestoreOutcome, RestoreResult, Return};
use super::writer::Writer;
use crate::domain::record::{Deadline, SeenKey};
use crate::store::backup::Saved;
use crate::store::cluster::client::Client;
use crate::store::error::StoreError;
use crate::store::scripts;

/// What the script runs that brings a Redis key back.
const RIGHTS: &str = "+restore +exists +time +unlink";

impl Writer {
    /// Brings records back, each as a whole, in one round trip. Nothing that is there is touched, so that it can be done again.
    ///
    /// Gives what became of each, with an own error for each record that is refused, and
    /// [`StoreError::OutcomeUnknown`] for each whose reply was lost and of which reading back could not tell; and the
    /// error that came in between. If the server could not be asked at all nothing became of any.
    pub async fn restore(&self, records: &[Return<'_>]) -> (Vec<RestoreResult>, Result<(), StoreError>) {
        // Which nodes there are is known before anything is sent.
        if let Err(error) = self.client().masters().await {
            return (Vec::new(), Err(error));
        }
        let before = self.client().slot_map();
        let there = match self.restore_here(records).await {
            Ok(there) => there,
            Err(error) => return (Vec::new(), Err(error)),
        };
        match self.follow(before.as_deref()).await {
            Ok(None) => {
                let replicated = self.replicated(&brought_back(records, &there)).await;
                (there, replicated)
            }
            Err(why) if !brought_back(records, &there).is_empty() => {
                let why = StoreError::MasterUnknown { target: self.name(), why: why.to_string() };
                (there, Err(why))
            }
            Err(error) => (there, Err(error)),
            // What came back on the old master may be lost.
            Ok(Some(_)) => match self.restore_here(records).await {
                Ok(here) => (there.into_iter().zip(here).map(|(there, here)| either(there, here)).collect(), Ok(())),
                Err(error) => (there, Err(error)),
            },
        }
    }

    async fn restore_here(&self, records: &[Return<'_>]) -> Result<Vec<RestoreResult>, StoreError> {
        let client = self.client();
        let mut outcomes: Vec<Option<RestoreResult>> = vec![None; records.len()];
        // A record in two slots is read right before it comes back, for no script sees both.
        let parted: Vec<_> = (0..records.len()).filter(|index| client.parts_record(&records[*index])).collect();
        let some: Vec<_> = parted.iter().map(|index| records[*index].clone()).collect();
        let mut sent: Vec<_> = (0..records.len()).filter(|index| !parted.contains(index)).collect();
        for (index, predicted) in parted.into_iter().zip(client.would_restore(&some).await?) {
            match predicted {
                Ok(predicted) if predicted.iter().any(|outcome| outcome.is_back()) => sent.push(index),
                other => outcomes[index] = Some(other),
            }
        }
        // Each Redis key of a record in two slots has a call of its own, the result first.
        let mut calls: Vec<(usize, Return<'_>)> = Vec::with_capacity(sent.len());
        for index in sent {
            let record = &records[index];
            if !client.parts_record(record) {
                calls.push((index, record.clone()));
                continue;
            }
            for key in record.keys.iter().rev() {
                calls.push((index, Return { keys: vec![key], bars: Vec::new() }));
            }
        }
        let replies = client.ask_each(&returns(calls.iter().map(|(_, call)| call))).await;
        let mut lost = Vec::new();
        for ((index, call), reply) in calls.iter().zip(replies) {
            let became = match reply.map(|reply| client.outcome(reply, call)) {
                Ok(Ok(outcome)) => Ok(outcome),
                // What answers so is no Redis, and what Redis did is not told by it.
                Ok(Err(odd)) => {
                    lost.push((*index, odd.clone()));
                    Err(odd)
                }
                Err(error) if error.is_without_effect() || is_of_restore(&error) => Err(error.naming(RIGHTS)),
                Err(error) => {
                    lost.push((*index, error.clone()));
                    Err(error)
                }
            };
            outcomes[*index] = Some(match (outcomes[*index].take(), became) {
                // The second key of a record in two slots: the first stands before it again.
                (Some(Ok(others)), Ok(mut first)) => {
                    first.extend(others);
                    Ok(first)
                }
                (Some(Err(error)), _) | (_, Err(error)) => Err(error),
                (None, became) => became,
            });
        }
        lost.dedup_by_key(|(index, _)| *index);
        if let Some((_, why)) = lost.first() {
            let some: Vec<_> = lost.iter().map(|(index, _)| &records[*index]).collect();
            for ((index, _), outcome) in lost.iter().zip(self.found_back(&some, why).await) {
                outcomes[*index] = Some(outcome);
            }
        }
        Ok(outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(|| Err(client.unexpected("EVAL")))).collect())
    }

    /// Reads on a new connection, because the old one may be what was lost. A Redis key that holds what the backup holds, and expires
    /// when the backup says, is back; one that holds something else is left to whoever wrote it. A record of which nothing
    /// is there may come yet: that is unknown.
    async fn found_back(&self, lost: &[&Return<'_>], why: &StoreError) -> Vec<RestoreResult> {
        let mut redis_keys: Vec<&[u8]> = Vec::new();
        for record in lost {
            redis_keys.extend(record.keys.iter().map(|key| key.saved.redis_key.as_slice()));
        }
        let mut now = vec![None; redis_keys.len()];
        if let Ok(client) = self.client().anew().await {
            for indexes in client.by_master(&redis_keys) {
                let some: Vec<_> = indexes.iter().map(|index| redis_keys[*index]).collect();
                for (index, there) in indexes.iter().zip(there(&client, &some).await.unwrap_or_default()) {
                    now[*index] = there;
                }
            }
        }
        let mut now = now.into_iter();
        let mut outcomes = Vec::with_capacity(lost.len());
        for record in lost {
            let mut of_record = Vec::with_capacity(record.keys.len());
            for key in &record.keys {
                of_record.push(now.next().flatten().map(|(dump, seen)| match is_back(&key.saved, &dump, &seen) {
                    true => RestoreOutcome::FoundBack(outlook::left(&key.saved, None)),
                    false => RestoreOutcome::Present,
                }));
            }
            let any_there = of_record.iter().any(Option::is_some);
            let all = of_record.into_iter().map(|outcome| outcome.unwrap_or(RestoreOutcome::Expired));
            outcomes.push(any_there.then(|| all.collect::<Vec<_>>()));
        }
        let unknown = outcomes.iter().filter(|outcome| outcome.is_none()).count();
        let what = format!("the return of {unknown} of {} records", lost.len());
        let unknown = StoreError::OutcomeUnknown { target: self.client().name(), what, why: why.to_string() };
        outcomes.into_iter().map(|outcome| outcome.ok_or_else(|| unknown.clone())).collect()
    }
}

/// A call of the script for each.
fn returns<'a>(wanted: impl Iterator<Item = &'a Return<'a>>) -> redis::Pipeline {
    let mut pipeline = redis::pipe();
    for record in wanted {
        let all: Vec<_> = record.all().collect();
        pipeline.cmd("EVAL").arg(scripts::RESTORE_IF_ABSENT).arg(all.len());
        for redis_key in all {
            pipeline.arg(redis_key);
        }
        for key in &record.keys {
            pipeline.arg(&key.saved.dump);
        }
        for _ in &record.bars {
            pipeline.arg("");
        }
        for key in &record.keys {
            pipeline.arg(key.saved.expires_at_ms.unwrap_or(0));
        }
        for _ in &record.bars {
            pipeline.arg(0);
        }
    }
    pipeline
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
fn brought_back<'a>(records: &[Return<'a>], became: &[RestoreResult]) -> Vec<&'a [u8]> {
    let mut back = Vec::new();
    for (record, became) in records.iter().zip(became) {
        let Ok(became) = became else { continue };
        for (key, outcome) in record.keys.iter().zip(became) {
            if outcome.is_back() {
                back.push(key.saved.redis_key.as_slice());
            }
        }
    }
    back
}

/// What became of a record that was brought back on one master and then on another.
fn either(there: RestoreResult, here: RestoreResult) -> RestoreResult {
    match (there, here) {
        (Ok(there), Err(_)) if there.iter().any(|outcome| outcome.is_back()) => Ok(there),
        (Ok(there), Ok(here)) => {
            let mut outcomes = Vec::with_capacity(here.len());
            for (there, here) in there.into_iter().zip(here) {
                let came_along = here == RestoreOutcome::Present || here == RestoreOutcome::Barred;
                outcomes.push(if there.is_back() && came_along { there } else { here });
            }
            Ok(outcomes)
        }
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
