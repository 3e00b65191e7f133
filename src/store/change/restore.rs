//! Restores Redis keys from a backup. Only absent keys are restored, with the expiry from the
//! backup.

mod outlook;
mod restore_outcome;

pub use self::restore_outcome::{KeyResult, RestoreOutcome, RestoreResult, Return};
use super::writer::{ChangeAttempt, Writer};
use crate::domain::record::{Deadline, KeyState};
use crate::store::backup::Saved;
use crate::store::cluster::client::Client;
use crate::store::cluster::slot_map::SlotMap;
use crate::store::error::StoreError;
use crate::store::scripts;

/// The rights that the restore script needs.
const RIGHTS: &str = "+restore +exists +time +unlink";

impl Writer {
    /// Restores records, each as a whole, in one round trip. Existing keys are not touched, so a
    /// restore can be repeated.
    ///
    /// Returns the outcome of each Redis key, and the error that stopped the run. A refused key has
    /// its own error. A key has the error [`StoreError::OutcomeUnknown`] if its reply was lost, and
    /// a later read did not show the outcome. There are no outcomes if the server could not be
    /// reached at all.
    pub async fn restore(
        &self,
        records: &[Return<'_>],
    ) -> (Vec<RestoreResult>, Result<(), StoreError>) {
        let mut attempt = RestoreAttempt { records, outcomes: Vec::new() };
        let ended = self.perform(&mut attempt).await;
        (attempt.outcomes, ended)
    }

    async fn restore_here(&self, records: &[Return<'_>]) -> Result<Vec<RestoreResult>, StoreError> {
        let client = self.client();
        let mut outcomes: Vec<Vec<Option<KeyResult>>> = Vec::with_capacity(records.len());
        let mut parted = Vec::new();
        let mut calls = Vec::new();
        for (index, record) in records.iter().enumerate() {
            outcomes.push(vec![None; record.keys.len()]);
            if client.parts_record(record) {
                parted.push(index);
            } else {
                calls.push(RestoreCall { index, first: 0, record: record.clone() });
            }
        }
        // No script can check both keys of a record in two slots, so they are read right before the
        // restore.
        let some: Vec<_> = parted.iter().map(|index| records[*index].clone()).collect();
        let mut later = Vec::new();
        for (index, predicted) in parted.into_iter().zip(client.would_restore(&some).await?) {
            let comes =
                |outcome: &KeyResult| outcome.as_ref().is_ok_and(|outcome| outcome.is_back());
            if !predicted.iter().any(comes) {
                outcomes[index] = predicted.into_iter().map(Some).collect();
                continue;
            }
            // Each of its Redis keys needs its own call. The result is restored first, because a
            // lock that is restored alone would block requests without a reason.
            let mut of_record = records[index].keys.iter().copied().enumerate().rev();
            let call = |(first, key)| RestoreCall {
                index,
                first,
                record: Return { keys: vec![key], bars: Vec::new() },
            };
            calls.extend(of_record.next().map(call));
            later.extend(of_record.map(call));
        }
        self.bring(&calls, &mut outcomes).await;
        for call in later {
            // If the result was not restored, the lock is not sent.
            let behind = match &outcomes[call.index][call.first + 1] {
                Some(Ok(RestoreOutcome::Present | RestoreOutcome::Barred)) => {
                    Some(Ok(RestoreOutcome::Barred))
                }
                Some(Err(error)) => Some(Err(error.clone())),
                _ => None,
            };
            match behind {
                Some(behind) => outcomes[call.index][call.first] = Some(behind),
                None => self.bring(std::slice::from_ref(&call), &mut outcomes).await,
            }
        }
        let missing = || Err(client.unexpected("EVAL"));
        let mut all = Vec::with_capacity(outcomes.len());
        for of_record in outcomes {
            all.push(
                of_record.into_iter().map(|outcome| outcome.unwrap_or_else(missing)).collect(),
            );
        }
        Ok(all)
    }

    /// Sends calls in one round trip, and notes the outcome of each Redis key.
    async fn bring(&self, calls: &[RestoreCall<'_>], outcomes: &mut [Vec<Option<KeyResult>>]) {
        let client = self.client();
        let replies = client.ask_each(&returns(calls.iter().map(|call| &call.record))).await;
        let mut lost = Vec::new();
        for (call, reply) in calls.iter().zip(replies) {
            let became = match reply.map(|reply| client.outcome(reply, &call.record)) {
                Ok(Ok(outcomes)) => outcomes.into_iter().map(Ok).collect(),
                Err(error) if error.is_without_effect() || is_of_restore(&error) => {
                    vec![Err(error.naming(RIGHTS)); call.record.keys.len()]
                }
                // A server that answers unexpectedly is not Redis, so the outcome is unknown.
                Ok(Err(error)) | Err(error) => {
                    lost.push((call, error));
                    continue;
                }
            };
            call.note(became, outcomes);
        }
        if let Some((_, why)) = lost.first() {
            let some: Vec<_> = lost.iter().map(|(call, _)| &call.record).collect();
            for ((call, _), became) in lost.iter().zip(self.found_back(&some, why).await) {
                call.note(became, outcomes);
            }
        }
    }

    /// Reads the keys back on a new connection, because the old one may be broken. A Redis key with
    /// the value and the expiry of the backup is restored. A key with another value is left alone.
    /// If one call restores several keys and only some exist, the others have expired. If none of a
    /// call's keys exists, the call may still be executed later, so its outcome is unknown. The
    /// outcome of a key that cannot be read is unknown too.
    async fn found_back(&self, lost: &[&Return<'_>], why: &StoreError) -> Vec<RestoreResult> {
        let mut redis_keys: Vec<&[u8]> = Vec::new();
        for record in lost {
            redis_keys.extend(record.keys.iter().map(|key| key.saved.redis_key.as_slice()));
        }
        let mut now = vec![CurrentKey::Unread; redis_keys.len()];
        if let Ok(client) = self.reconnect().await {
            for indexes in client.by_master(&redis_keys) {
                let some: Vec<_> = indexes.iter().map(|index| redis_keys[*index]).collect();
                for (index, found) in
                    indexes.iter().zip(found(&client, &some).await.unwrap_or_default())
                {
                    now[*index] = found;
                }
            }
        }
        let mut rest = &now[..];
        let mut told: Vec<Vec<Option<RestoreOutcome>>> = Vec::with_capacity(lost.len());
        for record in lost {
            let (found, more) = rest.split_at(record.keys.len());
            rest = more;
            let any_there = found.iter().any(|found| matches!(found, CurrentKey::There(..)));
            let mut of_record = Vec::with_capacity(found.len());
            for (key, found) in record.keys.iter().zip(found) {
                of_record.push(match found {
                    CurrentKey::There(dump, seen) if is_back(&key.saved, dump, seen) => {
                        Some(RestoreOutcome::FoundBack(outlook::left(&key.saved, None)))
                    }
                    CurrentKey::There(..) => Some(RestoreOutcome::Present),
                    CurrentKey::Absent if any_there => Some(RestoreOutcome::Expired),
                    CurrentKey::Absent | CurrentKey::Unread => None,
                });
            }
            told.push(of_record);
        }
        let unknown = told.iter().filter(|of_record| of_record.iter().any(Option::is_none)).count();
        let what = format!("the return of {unknown} of {} records", lost.len());
        let unknown = self.outcome_unknown(what, why);
        let mut results = Vec::with_capacity(told.len());
        for of_record in told {
            results.push(
                of_record
                    .into_iter()
                    .map(|outcome| outcome.ok_or_else(|| unknown.clone()))
                    .collect(),
            );
        }
        results
    }
}

/// Records that are restored together.
struct RestoreAttempt<'a, 'b> {
    records: &'a [Return<'b>],
    /// The outcome of each record; empty if the server could not be reached at all.
    outcomes: Vec<RestoreResult>,
}

impl ChangeAttempt for RestoreAttempt<'_, '_> {
    async fn send(&mut self, writer: &Writer) -> Result<(), StoreError> {
        self.outcomes = writer.restore_here(self.records).await?;
        Ok(())
    }

    fn may_have_changed(&self) -> bool {
        !self.outcomes.is_empty()
    }

    fn changed_keys(&self) -> Vec<&[u8]> {
        brought_back(self.records, &self.outcomes)
    }

    async fn after_failover(
        &mut self,
        writer: &Writer,
        _before: Option<&SlotMap>,
        sent: Result<(), StoreError>,
        _failed_over: StoreError,
    ) -> Result<(), StoreError> {
        sent?;
        // Keys that were restored on the old master may be lost. A restore can be repeated, because
        // it does not touch existing keys.
        let here = writer.restore_here(self.records).await?;
        let there = std::mem::take(&mut self.outcomes);
        for (there, here) in there.into_iter().zip(here) {
            self.outcomes.push(either(there, here));
        }
        Ok(())
    }
}

/// The keys that one call of the script restores.
struct RestoreCall<'a> {
    /// The index of its record.
    index: usize,
    /// The index of its first Redis key in the record.
    first: usize,
    record: Return<'a>,
}

impl RestoreCall<'_> {
    /// Notes the outcomes of its Redis keys.
    fn note(&self, became: RestoreResult, outcomes: &mut [Vec<Option<KeyResult>>]) {
        for (outcome, became) in outcomes[self.index][self.first..].iter_mut().zip(became) {
            *outcome = Some(became);
        }
    }
}

/// One call of the script for each record.
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

/// The current content of a Redis key.
#[derive(Clone)]
enum CurrentKey {
    /// Its DUMP and its state.
    There(Vec<u8>, KeyState),
    Absent,
    /// It could not be read.
    Unread,
}

async fn found(client: &Client, redis_keys: &[&[u8]]) -> Result<Vec<CurrentKey>, StoreError> {
    let wanted: Vec<_> = redis_keys.iter().map(|redis_key| vec![redis_key.to_vec()]).collect();
    let seen = client.reader().read_for_change(&wanted, 0).await?;
    let dumps = client.dumps(redis_keys).await?;
    let mut all = Vec::with_capacity(redis_keys.len());
    for (dump, seen) in dumps.into_iter().zip(seen) {
        let key = seen.ok().and_then(|mut seen| seen.keys.pop());
        all.push(match (dump, key) {
            (Some(dump), Some(key)) => CurrentKey::There(dump, key),
            (None, Some(_)) => CurrentKey::Absent,
            (_, None) => CurrentKey::Unread,
        });
    }
    Ok(all)
}

/// True if RESTORE rejected the bytes. The script then leaves no key of the record restored.
fn is_of_restore(error: &StoreError) -> bool {
    let StoreError::Refused { why, .. } = error else { return false };
    ["DUMP payload version or checksum are wrong", "Bad data format"]
        .iter()
        .any(|words| why.contains(words))
}

/// True if the Redis key has the value and the expiry that were sent. The value alone is not
/// enough, because many locks hold the same bytes. The sent value is a DUMP, or was built from the
/// string.
fn is_back(saved: &Saved, dump: &[u8], now: &KeyState) -> bool {
    let same_deadline = match saved.expires_at_ms {
        Some(at) => now.deadline.is_at(at),
        None => now.deadline == Deadline::Never,
    };
    let same_value =
        saved.dump == dump || Saved::of_whole(now).is_some_and(|now| now.dump == saved.dump);
    same_value && same_deadline
}

/// The Redis keys that were restored.
fn brought_back<'a>(records: &[Return<'a>], became: &[RestoreResult]) -> Vec<&'a [u8]> {
    let mut back = Vec::new();
    for (record, became) in records.iter().zip(became) {
        for (key, outcome) in record.keys.iter().zip(became) {
            if outcome.as_ref().is_ok_and(|outcome| outcome.is_back()) {
                back.push(key.saved.redis_key.as_slice());
            }
        }
    }
    back
}

/// The outcome of a record that was restored on one master and then on another.
fn either(there: RestoreResult, here: RestoreResult) -> RestoreResult {
    let mut outcomes = Vec::with_capacity(here.len());
    for (there, here) in there.into_iter().zip(here) {
        let was_back = there.as_ref().is_ok_and(|there| there.is_back());
        let tells_nothing =
            matches!(here, Err(_) | Ok(RestoreOutcome::Present | RestoreOutcome::Barred));
        outcomes.push(if was_back && tells_nothing { there } else { here });
    }
    outcomes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::{Content, Expiry};

    #[test]
    fn a_lock_taken_anew_with_the_same_bytes_is_not_what_came_back() {
        let sent = |expires_at_ms| Saved {
            redis_key: b"a".to_vec(),
            dump: b"1".to_vec(),
            ttl_ms: None,
            expires_at_ms,
        };
        let now = |deadline| {
            KeyState::new(b"a", Content::Other("hash".to_owned()), Expiry::Never, deadline)
        };
        let is_there =
            |dump: &str, deadline| is_back(&sent(Some(50_000)), dump.as_bytes(), &now(deadline));
        assert!(
            is_there("1", Deadline::At(50_000)) && is_there("1", Deadline::Between(50_001, 50_001))
        );
        for other in [
            Deadline::At(50_001),
            Deadline::Between(50_055, 50_055),
            Deadline::Never,
            Deadline::Unknown,
        ] {
            assert!(!is_there("1", other), "{other:?}");
        }
        assert!(!is_there("2", Deadline::At(50_000)));
        assert!(
            is_back(&sent(None), b"1", &now(Deadline::Never))
                && !is_back(&sent(None), b"1", &now(Deadline::At(1)))
        );
    }

    #[test]
    fn what_was_made_from_a_string_is_known_by_the_string() {
        let seen = |text: &str| {
            KeyState::new(b"a", Content::text(text.into()), Expiry::Never, Deadline::Never)
        };
        let saved = Saved::of_whole(&seen("1")).unwrap();
        assert!(is_back(&saved, b"as the server writes it", &seen("1")));
        assert!(!is_back(&saved, b"as the server writes it", &seen("2")));
    }
}
