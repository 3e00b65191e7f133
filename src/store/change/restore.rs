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
        let ended = self.run_attempt(&mut attempt).await;
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
        // No script can check the keys of a record in several slots, so they are read right before
        // the restore.
        let parted_records: Vec<_> = parted.iter().map(|index| records[*index].clone()).collect();
        let predictions = client.would_restore(&parted_records).await?;
        let mut later = Vec::new();
        for (index, predicted) in parted.into_iter().zip(predictions) {
            if !predicted.iter().any(is_restored) {
                outcomes[index] = predicted.into_iter().map(Some).collect();
                continue;
            }
            // Each of its Redis keys needs its own call, the last one first. Parts alone are no
            // record, a result without its parts would be replayed incompletely, and a lock that is
            // restored alone would block requests without a reason.
            for (first, key) in records[index].keys.iter().enumerate().rev() {
                let record = Return { keys: vec![*key], bars: Vec::new() };
                let call = RestoreCall { index, first, record };
                let is_last = first + 1 == records[index].keys.len();
                if is_last { calls.push(call) } else { later.push(call) }
            }
        }
        self.bring(&calls, &mut outcomes).await;
        for call in later {
            // If the key after it was not restored, this one is not sent.
            match outcomes[call.index][call.first + 1].clone() {
                Some(Ok(RestoreOutcome::Present | RestoreOutcome::Barred)) => {
                    outcomes[call.index][call.first] = Some(Ok(RestoreOutcome::Barred));
                }
                Some(Err(error)) => outcomes[call.index][call.first] = Some(Err(error)),
                _ => self.bring(std::slice::from_ref(&call), &mut outcomes).await,
            }
        }
        let mut results = Vec::with_capacity(outcomes.len());
        for of_record in outcomes {
            let mut result = Vec::with_capacity(of_record.len());
            for outcome in of_record {
                // A key without an outcome got no reply from the script.
                result.push(match outcome {
                    Some(outcome) => outcome,
                    None => Err(client.unexpected("EVAL")),
                });
            }
            results.push(result);
        }
        Ok(results)
    }

    /// Sends calls in one round trip, and notes the outcome of each Redis key.
    async fn bring(&self, calls: &[RestoreCall<'_>], outcomes: &mut [Vec<Option<KeyResult>>]) {
        let client = self.client();
        let replies = client.ask_each(&returns(calls.iter().map(|call| &call.record))).await;
        let mut lost = Vec::new();
        for (call, reply) in calls.iter().zip(replies) {
            let reply = match reply {
                Ok(reply) => reply,
                Err(error) if error.is_without_effect() || is_of_restore(&error) => {
                    let refused = vec![Err(error.naming(RIGHTS)); call.record.keys.len()];
                    call.note(refused, outcomes);
                    continue;
                }
                Err(error) => {
                    lost.push((call, error));
                    continue;
                }
            };
            match client.outcome(reply, &call.record) {
                Ok(restored) => call.note(restored.into_iter().map(Ok).collect(), outcomes),
                // A server that answers unexpectedly is not Redis, so the outcome is unknown.
                Err(error) => lost.push((call, error)),
            }
        }
        let Some((_, why)) = lost.first() else { return };
        let lost_records: Vec<_> = lost.iter().map(|(call, _)| &call.record).collect();
        let read_back = self.found_back(&lost_records, why).await;
        for ((call, _), became) in lost.iter().zip(read_back) {
            call.note(became, outcomes);
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
            // Each master is read separately, so that one that does not answer leaves only its own
            // keys unread.
            for indexes in client.by_master(&redis_keys) {
                let of_master: Vec<_> = indexes.iter().map(|index| redis_keys[*index]).collect();
                let Ok(current) = read_current(&client, &of_master).await else { continue };
                for (index, key) in indexes.into_iter().zip(current) {
                    now[index] = key;
                }
            }
        }
        let mut rest = &now[..];
        let mut read_back: Vec<Vec<Option<RestoreOutcome>>> = Vec::with_capacity(lost.len());
        let mut unknown_records = 0;
        for record in lost {
            let (current, more) = rest.split_at(record.keys.len());
            rest = more;
            let any_there = current.iter().any(|key| matches!(key, CurrentKey::There(..)));
            let mut of_record = Vec::with_capacity(current.len());
            for (key, current) in record.keys.iter().zip(current) {
                of_record.push(match current {
                    CurrentKey::There(dump, seen) if is_back(&key.saved, dump, seen) => {
                        Some(RestoreOutcome::FoundBack(outlook::left(&key.saved, None)))
                    }
                    CurrentKey::There(..) => Some(RestoreOutcome::Present),
                    CurrentKey::Absent if any_there => Some(RestoreOutcome::Expired),
                    CurrentKey::Absent | CurrentKey::Unread => None,
                });
            }
            unknown_records += usize::from(of_record.contains(&None));
            read_back.push(of_record);
        }
        let what = format!("the return of {unknown_records} of {} records", lost.len());
        let unknown = self.outcome_unknown(what, why);
        let mut results = Vec::with_capacity(read_back.len());
        for of_record in read_back {
            let mut result: RestoreResult = Vec::with_capacity(of_record.len());
            for outcome in of_record {
                result.push(match outcome {
                    Some(outcome) => Ok(outcome),
                    None => Err(unknown.clone()),
                });
            }
            results.push(result);
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
    // A bar has an empty payload and no deadline. The script only checks that it is absent.
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

/// Reads the current content of Redis keys, all on one master.
async fn read_current(
    client: &Client,
    redis_keys: &[&[u8]],
) -> Result<Vec<CurrentKey>, StoreError> {
    let wanted: Vec<_> = redis_keys.iter().map(|redis_key| vec![redis_key.to_vec()]).collect();
    let seen = client.reader().read_for_change(&wanted, 0).await?;
    let dumps = client.dumps(redis_keys).await?;
    let mut all = Vec::with_capacity(redis_keys.len());
    for (dump, seen) in dumps.into_iter().zip(seen) {
        let key = match seen {
            Ok(mut seen) => seen.keys.pop(),
            Err(_) => None,
        };
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
    let StoreError::ErrorReply { why, .. } = error else { return false };
    why.contains("DUMP payload version or checksum are wrong") || why.contains("Bad data format")
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
            if is_restored(outcome) {
                back.push(key.saved.redis_key.as_slice());
            }
        }
    }
    back
}

fn is_restored(outcome: &KeyResult) -> bool {
    outcome.as_ref().is_ok_and(|outcome| outcome.is_back())
}

/// The outcome of a record that was restored on one master and then on another.
fn either(there: RestoreResult, here: RestoreResult) -> RestoreResult {
    let mut outcomes = Vec::with_capacity(here.len());
    for (there, here) in there.into_iter().zip(here) {
        // The second restore finds a key that was replicated, and reports it as present. The first
        // outcome says more.
        let tells_nothing =
            matches!(here, Err(_) | Ok(RestoreOutcome::Present | RestoreOutcome::Barred));
        let may_be_restored =
            is_restored(&there) || matches!(there, Err(StoreError::OutcomeUnknown { .. }));
        outcomes.push(if may_be_restored && tells_nothing { there } else { here });
    }
    outcomes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::{Content, TimeLeft};

    #[test]
    fn a_lock_taken_anew_with_the_same_bytes_is_not_what_came_back() {
        let sent = |expires_at_ms| Saved {
            redis_key: b"a".to_vec(),
            dump: b"1".to_vec(),
            ttl_ms: None,
            expires_at_ms,
        };
        let now = |deadline| {
            KeyState::new(b"a", Content::Other("hash".to_owned()), TimeLeft::NoExpiry, deadline)
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
            KeyState::new(b"a", Content::text(text.into()), TimeLeft::NoExpiry, Deadline::Never)
        };
        let saved = Saved::of_whole(&seen("1")).unwrap();
        assert!(is_back(&saved, b"as the server writes it", &seen("1")));
        assert!(!is_back(&saved, b"as the server writes it", &seen("2")));
    }

    /// Rule: a restore whose outcome is unknown stays so, unless the new master shows what became of it.
    #[test]
    fn an_unknown_outcome_is_not_taken_for_a_key_that_was_there_before() {
        let unknown = || {
            Err(StoreError::OutcomeUnknown {
                target: "a:1".to_owned(),
                what: "RESTORE".to_owned(),
                why: "closed".to_owned(),
            })
        };
        let became = |there, here| either(vec![there], vec![here]).pop().unwrap();
        for here in [Ok(RestoreOutcome::Present), Ok(RestoreOutcome::Barred), unknown()] {
            let outcome = became(unknown(), here);
            assert!(matches!(outcome, Err(StoreError::OutcomeUnknown { .. })), "{outcome:?}");
        }
        let outcome = became(unknown(), Ok(RestoreOutcome::Expired));
        assert!(matches!(outcome, Ok(RestoreOutcome::Expired)), "{outcome:?}");
    }
}
