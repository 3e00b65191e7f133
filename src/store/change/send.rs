//! Sends a batch once, and reads the records back if a reply was lost.

use std::collections::HashSet;

use redis::Value;

use super::batch::{self, Batch};
use super::change::{Change, KeyAction, Outcome};
use super::writer::Writer;
use crate::domain::record::{Comparison, Identity, Observation};
use crate::store::cluster::scripted::ScriptRef;
use crate::store::connection::reply;
use crate::store::error::StoreError;
use crate::store::read::key_query::{KeyQuery, ReadLimit};
use crate::store::scripts;

/// The rights that the change script needs.
const RIGHTS: &str = "+unlink +pexpire +getrange +strlen +pexpiretime +pttl +time +dump";

impl Writer {
    /// Sends a batch once, and sets the outcome of each change. `Ok(Some(error))` means that the
    /// outcomes are set although an error occurred, e.g. because the reply was lost. A connection
    /// that lost a reply is not used again, even if a later read showed the outcomes.
    ///
    /// # Errors
    /// Nothing was done.
    pub(super) async fn send(
        &self,
        batch: &mut Batch<'_>,
        action: KeyAction,
    ) -> Result<Option<StoreError>, StoreError> {
        if !self.runs_scripts {
            return self.send_in_transaction(batch, action).await;
        }
        if self.client().is_cluster() {
            return self.send_apart(batch, action).await;
        }
        let Some(command) = batch.command(action) else { return Ok(None) };
        let why = match self.client().ask(&command).await {
            Ok(value) => {
                let letters = reply::bytes(value).unwrap_or_default();
                match batch::parse_letters(&letters, action) {
                    Some(outcomes) if outcomes.len() == batch.len() => {
                        batch.set_outcomes(outcomes);
                        return Ok(None);
                    }
                    // A server that answers unexpectedly is not Redis, so the outcome is unknown.
                    _ => self.client().unexpected("EVAL"),
                }
            }
            Err(error) if error.is_without_effect() => return Err(error.naming(RIGHTS)),
            Err(error) => error,
        };
        let (outcomes, error) = self.read_back(&batch.changes(), action, why).await;
        batch.set_outcomes(outcomes);
        Ok(Some(error))
    }

    /// On a cluster: one call per change, with all calls to a node in one write. A node that
    /// refuses or does not answer does not affect the others.
    async fn send_apart(
        &self,
        batch: &mut Batch<'_>,
        action: KeyAction,
    ) -> Result<Option<StoreError>, StoreError> {
        let mut stopped = self.leave_out_changed(batch).await?;
        let mut outcomes = Vec::with_capacity(batch.len());
        let mut lost = Vec::new();
        let replies = self
            .client()
            .ask_script_each(scripts::CHANGE_MANY_IF_SAME, |script: ScriptRef<'_>| {
                batch.commands_apart(action, script)
            })
            .await?;
        for (index, reply) in replies.into_iter().enumerate() {
            outcomes.push(match reply.and_then(|value| self.only_outcome(value, action)) {
                Ok(outcome) => outcome,
                Err(error) if error.is_without_effect() => {
                    stopped = Some(error.naming(RIGHTS));
                    Outcome::NotMade
                }
                Err(error) => {
                    lost.push((index, error));
                    Outcome::Unknown
                }
            });
        }
        if let Some((_, why)) = lost.first() {
            let all = batch.changes();
            let mut changes = Vec::with_capacity(lost.len());
            for (index, error) in &lost {
                // Nothing more is sent to a node that did not answer. The first error is reported
                // for all of them.
                let _ = self.note_unreachable(error);
                changes.push(all[*index]);
            }
            let (found, error) = self.read_back(&changes, action, why.clone()).await;
            for ((index, _), found) in lost.iter().zip(found) {
                outcomes[*index] = found;
            }
            // A refusal by another node is reported beside the unknown outcomes.
            stopped = Some(error.with_refusal(stopped));
        }
        batch.set_outcomes(outcomes);
        Ok(stopped)
    }

    /// Leaves out the changes of records with a Redis key in another slot that changed, or cannot be
    /// read. Returns why one could not be read.
    ///
    /// # Errors
    /// A node did not answer to which nothing should have been sent.
    pub(super) async fn leave_out_changed(
        &self,
        batch: &mut Batch<'_>,
    ) -> Result<Option<StoreError>, StoreError> {
        let mut stopped = None;
        loop {
            match self.recheck_other_slots(batch).await {
                Ok(unread) => return Ok(unread.or(stopped)),
                Err(error) => {
                    self.note_unreachable(&error)?;
                    self.leave_out_unreachable(batch);
                    stopped = Some(error);
                }
            }
        }
    }

    /// The outcome in the reply to a call for one change.
    fn only_outcome(&self, value: Value, action: KeyAction) -> Result<Outcome, StoreError> {
        let letters = reply::bytes(value).unwrap_or_default();
        match batch::parse_letters(&letters, action).as_deref() {
            Some([outcome]) => Ok(*outcome),
            _ => Err(self.client().unexpected("EVAL")),
        }
    }

    /// Rechecks the Redis keys that a cluster stores in another slot than the one to change. This
    /// happens right before the change, because no script can compare both. If the other key
    /// changed or cannot be read, its record is left alone. Returns why a key could not be read.
    ///
    /// # Errors
    /// A node did not answer.
    async fn recheck_other_slots(
        &self,
        batch: &mut Batch<'_>,
    ) -> Result<Option<StoreError>, StoreError> {
        let others = batch.elsewhere();
        if others.is_empty() {
            return Ok(None);
        }
        let mut wanted = Vec::with_capacity(others.len());
        let mut least = 0;
        for (_, seen) in &others {
            wanted.push(vec![seen.redis_key.clone()]);
            least = least.max(seen.content.read_bytes());
        }
        let now = self.client().reader().read_for_change(&wanted, least).await?;
        let mut changed = HashSet::new();
        let mut unread = HashSet::new();
        let mut why = None;
        for ((index, seen), now) in others.iter().zip(now) {
            match now {
                Ok(now) => {
                    let keys = vec![(*seen).clone()];
                    let seen = Observation { server_ms: None, keys, atomic: true };
                    if Identity::of(&seen).compare(&now) != Comparison::Same {
                        changed.insert(*index);
                    }
                }
                Err(error) if error.lost_the_reply() => return Err(error),
                // A node that refuses to answer does not show that the record changed.
                Err(error) => {
                    unread.insert(*index);
                    why = why.or(Some(error));
                }
            }
        }
        batch.leave_out(&changed, &unread);
        Ok(why)
    }

    /// Reads back changes whose replies were lost, for the reason `why`. Returns their outcomes and
    /// the error to stop with, which is `why`, or that some outcomes are unknown.
    ///
    /// If all Redis keys of a record are gone, it was removed, or needs no removal. A key got its
    /// TTL if it expires exactly that long after a time between the first read and this one. Any
    /// other record may have been left alone or re-acquired, and a slow server may still execute
    /// the change. Its outcome is unknown.
    pub(super) async fn read_back(
        &self,
        changes: &[&Change],
        action: KeyAction,
        why: StoreError,
    ) -> (Vec<Outcome>, StoreError) {
        let mut wanted = Vec::with_capacity(changes.len());
        for change in changes {
            wanted.push(change.changed_keys().map(|key| key.redis_key.clone()).collect::<Vec<_>>());
        }
        // The absence of the keys shows a removal, and plain commands report it. For a TTL, the
        // server's time is needed as well.
        let now = match self.reconnect().await {
            Ok(client) if action == KeyAction::Remove => {
                client.reader().read_query(&wanted, KeyQuery::heads(ReadLimit::Bytes(1))).await
            }
            Ok(client) => {
                client.reader().read_each(&wanted, ReadLimit::Bytes(1)).await.unwrap_or_default()
            }
            Err(_) => Vec::new(),
        };
        let mut outcomes = Vec::with_capacity(changes.len());
        let mut unknown = Vec::new();
        for (index, change) in changes.iter().enumerate() {
            if let Some(Ok(now)) = now.get(index)
                && is_made(change, now, action)
            {
                outcomes.push(Outcome::FoundDone);
            } else {
                outcomes.push(Outcome::Unknown);
                unknown.push(change.redis_key());
            }
        }
        let verb = if action == KeyAction::Remove { "removal" } else { "expiry" };
        let what = match (unknown.as_slice(), changes.len()) {
            ([], _) => return (outcomes, why),
            ([only], 1) => format!("the {verb} of {:?}", bstr::BStr::new(only)),
            (some, all) => format!("the {verb} of {} of {all} records", some.len()),
        };
        (outcomes, self.outcome_unknown(what, &why))
    }
}

/// True if the Redis keys are as only the change can have left them.
fn is_made(change: &Change, now: &Observation, action: KeyAction) -> bool {
    let Some(ttl) = action.ttl() else { return now.is_absent() };
    let (Some(before), Some(key), Some(now_ms)) =
        (change.seen.server_ms, now.keys.first(), now.server_ms)
    else {
        return false;
    };
    // The TTL that is left may be an older one.
    if key.content.is_absent() || key.deadline.is_same(change.first().deadline) {
        return false;
    }
    let Some(expires_at) = key.deadline.millis() else { return false };
    let Some(given_at) = expires_at.checked_sub(ttl) else { return false };
    (before..=now_ms).contains(&given_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::Content;
    use crate::domain::record::{Deadline, KeyState, RecordName, TimeLeft};
    use crate::store::backup::RecordLabel;

    /// A key seen at 1,000 ms by its node's clock, with this deadline.
    fn seen(deadline: Deadline, server_ms: u64) -> Observation {
        let key =
            KeyState::new(b"idem:k", Content::text(b"x".to_vec()), TimeLeft::NoExpiry, deadline);
        Observation { server_ms: Some(server_ms), keys: vec![key], atomic: true }
    }

    fn is_given(before: Deadline, now: Deadline) -> bool {
        let label = RecordLabel {
            name: RecordName::parse(b"express/k").unwrap(),
            state: "in-progress",
            roles: Vec::new(),
        };
        let change = Change::new(vec![0], seen(before, 1_000), label);
        is_made(&change, &seen(now, 1_500), KeyAction::Prolong(60_000))
    }

    /// Rule: a TTL whose reply was lost was given if the deadline is that TTL after a moment since
    /// the first read.
    #[test]
    fn reading_back_shows_which_ttl_was_given() {
        let had = Deadline::At(31_000);
        assert!(is_given(had, Deadline::At(61_000)) && is_given(had, Deadline::At(61_500)));
        assert!(is_given(Deadline::Never, Deadline::At(61_200)));
        for other in [had, Deadline::At(60_999), Deadline::At(61_501), Deadline::Never] {
            assert!(!is_given(had, other), "{other:?}");
        }
        assert!(!is_given(Deadline::At(61_100), Deadline::At(61_100)), "it was there before");
    }

    /// Rule: a removal whose reply was lost was made if none of the Redis keys is there.
    #[test]
    fn reading_back_shows_what_was_removed() {
        let label = RecordLabel {
            name: RecordName::parse(b"express/k").unwrap(),
            state: "in-progress",
            roles: Vec::new(),
        };
        let change = Change::new(vec![0], seen(Deadline::Never, 1_000), label);
        let mut gone = seen(Deadline::Never, 1_500);
        assert!(!is_made(&change, &gone, KeyAction::Remove));
        gone.keys[0].content = Content::Absent;
        assert!(is_made(&change, &gone, KeyAction::Remove));
        assert!(!is_made(&change, &gone, KeyAction::Prolong(9)), "gone, and nobody knows by whom");
    }
}
