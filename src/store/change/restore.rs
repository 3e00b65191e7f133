//! Restores Redis keys from a backup. Only absent keys are restored, with the expiry from the
//! backup.

mod outlook;
mod restore_outcome;
mod scriptless;

use std::iter;

use redis::Cmd;

pub use self::restore_outcome::{KeyResult, RestoreOutcome, RestoreResult, Return};
use super::batch::MAX_KEYS;
use super::writer::{ChangeAttempt, Writer};
use crate::domain::record::{Deadline, KeyState};
use crate::store::backup::{HeldKey, Saved};
use crate::store::cluster::client::Client;
use crate::store::cluster::scripted::ScriptRef;
use crate::store::cluster::slot_map::SlotMap;
use crate::store::error::StoreError;
use crate::store::scripts;

/// The rights that the restore script needs.
const RIGHTS: &str = "+restore +exists +time +unlink";

impl Writer {
    /// Restores records, each as a whole, in one round trip. A call of the script restores up to a
    /// hundred Redis keys, and on a cluster one record. Existing keys are not touched, so a restore
    /// can be repeated.
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
        // A key without an outcome got no reply from the script.
        let unanswered = Err(client.unexpected("EVAL"));
        let mut outcomes: Vec<RestoreResult> = Vec::with_capacity(records.len());
        let mut parted = Vec::new();
        let mut units = Vec::new();
        for (index, record) in records.iter().enumerate() {
            outcomes.push(vec![unanswered.clone(); record.keys.len()]);
            if client.parts_record(record) {
                parted.push(index);
            } else {
                units.push(RestoreUnit { index, first: 0, record: record.clone() });
            }
        }
        // No script can check the keys of a record in several slots, so they are read right before
        // the restore.
        let parted_records: Vec<_> = parted.iter().map(|index| records[*index].clone()).collect();
        let predictions = client.would_restore(&parted_records).await?;
        let mut later = Vec::new();
        for (index, predicted) in parted.into_iter().zip(predictions) {
            if !predicted.iter().any(is_restored) {
                outcomes[index] = predicted;
                continue;
            }
            // Each of its Redis keys needs its own call, the last one first. Parts alone are no
            // record, a result without its parts would be replayed incompletely, and a lock that is
            // restored alone would block requests without a reason.
            for (first, key) in records[index].keys.iter().enumerate().rev() {
                let record = Return { keys: vec![*key], bars: Vec::new() };
                let unit = RestoreUnit { index, first, record };
                let is_last = first + 1 == records[index].keys.len();
                if is_last { units.push(unit) } else { later.push(unit) }
            }
        }
        self.bring(&units, &mut outcomes).await;
        for unit in later {
            // If the key after it was not restored, this one is not sent.
            match outcomes[unit.index][unit.first + 1].clone() {
                Ok(RestoreOutcome::Present | RestoreOutcome::Barred) => {
                    outcomes[unit.index][unit.first] = Ok(RestoreOutcome::Barred);
                }
                Err(error) => outcomes[unit.index][unit.first] = Err(error),
                Ok(_) => self.bring(std::slice::from_ref(&unit), &mut outcomes).await,
            }
        }
        Ok(outcomes)
    }

    /// Restores units in one round trip, and notes the outcome of each Redis key.
    async fn bring(&self, units: &[RestoreUnit<'_>], outcomes: &mut [RestoreResult]) {
        if !self.runs_scripts {
            return self.bring_in_transactions(units, outcomes).await;
        }
        let client = self.client();
        let most_keys = units.iter().map(|unit| unit.record.all().count()).max();
        let is_cluster = client.is_cluster();
        let most_units = if is_cluster { 1 } else { MAX_KEYS / most_keys.unwrap_or(1) };
        let mut calls: Vec<_> = units.chunks(most_units.max(1)).collect();
        let mut lost: Vec<&RestoreUnit<'_>> = Vec::new();
        let mut why = None;
        while !calls.is_empty() {
            let commands = |script: ScriptRef<'_>| -> Vec<Cmd> {
                calls.iter().map(|units| command(script, units)).collect()
            };
            let replies = if is_cluster {
                let script = scripts::RESTORE_MANY_IF_ABSENT;
                let replies = client.ask_script_each(script, commands).await;
                replies.unwrap_or_else(|error| vec![Err(error); calls.len()])
            } else {
                client.send_each(commands(ScriptRef::Text)).await
            };
            let mut apart = Vec::new();
            for (call, reply) in calls.into_iter().zip(replies) {
                match reply.and_then(|reply| client.restored(reply, call)) {
                    Ok(restored) => {
                        let mut restored = restored.into_iter();
                        for unit in call {
                            unit.note(&mut restored, outcomes);
                        }
                    }
                    // The Redis user may have no right to the keys of one record alone.
                    Err(error) if error.is_permission() && call.len() > 1 => {
                        apart.extend(call.chunks(1));
                    }
                    Err(error) if error.is_without_effect() => {
                        let error = error.naming(RIGHTS);
                        for unit in call {
                            unit.note(iter::repeat(Err(error.clone())), outcomes);
                        }
                    }
                    // This includes an unexpected reply, because its server is not Redis.
                    Err(error) => {
                        lost.extend(call);
                        why.get_or_insert(error);
                    }
                }
            }
            calls = apart;
        }
        let Some(why) = why else { return };
        let mut found = self.found_back(&lost, &why).await.into_iter();
        for unit in lost {
            unit.note(&mut found, outcomes);
        }
    }

    /// Reads the keys back on a new connection, because the old one may be broken. A Redis key with
    /// the value and the expiry of the backup is restored. A key with another value is left alone.
    /// If only some keys of a unit exist, the others have expired. If none exists, the call may still
    /// be executed later, so its outcome is unknown. The outcome of a key that cannot be read is
    /// unknown too.
    async fn found_back(&self, lost: &[&RestoreUnit<'_>], why: &StoreError) -> Vec<KeyResult> {
        let mut redis_keys: Vec<&[u8]> = Vec::new();
        for unit in lost {
            redis_keys.extend(unit.record.keys.iter().map(|key| key.saved.redis_key.as_slice()));
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
        let mut found = Vec::with_capacity(now.len());
        let mut unknown_records = 0;
        for RestoreUnit { record, .. } in lost {
            let (current, more) = rest.split_at(record.keys.len());
            rest = more;
            let any_there = current.iter().any(|key| matches!(key, CurrentKey::There(..)));
            let first = found.len();
            for (key, current) in record.keys.iter().zip(current) {
                found.push(match current {
                    CurrentKey::There(dump, seen) if is_back(&key.saved, dump, seen) => {
                        Ok(RestoreOutcome::FoundBack(outlook::left(&key.saved, None)))
                    }
                    CurrentKey::There(..) => Ok(RestoreOutcome::Present),
                    CurrentKey::Absent if any_there => Ok(RestoreOutcome::Expired),
                    CurrentKey::Absent | CurrentKey::Unread => Err(why.clone()),
                });
            }
            unknown_records += usize::from(found[first..].iter().any(Result::is_err));
        }
        let what = format!("the return of {unknown_records} of {} records", lost.len());
        let unknown = self.outcome_unknown(what, why);
        for outcome in found.iter_mut().filter(|outcome| outcome.is_err()) {
            *outcome = Err(unknown.clone());
        }
        found
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
        let mut keys = Vec::new();
        for (record, outcomes) in self.records.iter().zip(&self.outcomes) {
            for (key, outcome) in record.keys.iter().zip(outcomes) {
                if is_restored(outcome) {
                    keys.push(key.saved.redis_key.as_slice());
                }
            }
        }
        keys
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
        let outcomes = self.outcomes.iter_mut().flatten();
        for (outcome, here) in outcomes.zip(here.into_iter().flatten()) {
            *outcome = either(outcome.clone(), here);
        }
        Ok(())
    }
}

/// The Redis keys of a record that are restored together.
struct RestoreUnit<'a> {
    /// The index of the record.
    index: usize,
    /// The index of its first Redis key in the record.
    first: usize,
    record: Return<'a>,
}

impl RestoreUnit<'_> {
    /// Notes the outcomes of its Redis keys.
    fn note(&self, became: impl Iterator<Item = KeyResult>, outcomes: &mut [RestoreResult]) {
        let outcomes = &mut outcomes[self.index][self.first..][..self.record.keys.len()];
        for (outcome, became) in outcomes.iter_mut().zip(became) {
            *outcome = became;
        }
    }
}

/// A call of the script that restores these units.
fn command(script: ScriptRef<'_>, units: &[RestoreUnit<'_>]) -> Cmd {
    let mut redis_keys: Vec<&[u8]> = Vec::new();
    let mut payloads: Vec<&[u8]> = Vec::new();
    // By the grammar in the script.
    let mut deadlines = Vec::new();
    for RestoreUnit { record, .. } in units {
        redis_keys.extend(record.all());
        let mut role = "";
        for HeldKey { saved, .. } in &record.keys {
            payloads.push(&saved.dump);
            deadlines.push(format!("{role}{}", saved.expires_at_ms.unwrap_or(0)));
            role = "*";
        }
        for _ in &record.bars {
            payloads.push(b"");
            deadlines.push("-".to_owned());
        }
    }
    let mut command = script.command("EVAL", scripts::RESTORE_MANY_IF_ABSENT);
    command.arg(redis_keys.len()).arg(redis_keys).arg(payloads).arg(deadlines);
    command
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
        let key = seen.ok().and_then(|mut seen| seen.keys.pop());
        all.push(match (dump, key) {
            (Some(dump), Some(key)) => CurrentKey::There(dump, key),
            (None, Some(_)) => CurrentKey::Absent,
            (_, None) => CurrentKey::Unread,
        });
    }
    Ok(all)
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

fn is_restored(outcome: &KeyResult) -> bool {
    outcome.as_ref().is_ok_and(|outcome| outcome.is_back())
}

/// The outcome of a Redis key that was restored on one master and then on another.
fn either(there: KeyResult, here: KeyResult) -> KeyResult {
    // The second restore finds a key that was replicated, and reports it as present. The first
    // outcome says more.
    let tells_nothing =
        matches!(here, Err(_) | Ok(RestoreOutcome::Present | RestoreOutcome::Barred));
    let may_be_restored =
        is_restored(&there) || matches!(there, Err(StoreError::OutcomeUnknown { .. }));
    if may_be_restored && tells_nothing { there } else { here }
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
        for here in [Ok(RestoreOutcome::Present), Ok(RestoreOutcome::Barred), unknown()] {
            let outcome = either(unknown(), here);
            assert!(matches!(outcome, Err(StoreError::OutcomeUnknown { .. })), "{outcome:?}");
        }
        let outcome = either(unknown(), Ok(RestoreOutcome::Expired));
        assert!(matches!(outcome, Ok(RestoreOutcome::Expired)), "{outcome:?}");
    }
}
