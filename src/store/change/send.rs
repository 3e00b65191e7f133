//! One batch on its way: sent once, and read back where no reply tells what became of it.

use redis::Value;

use super::batch::{self, Batch};
use super::change::{Action, Outcome};
use super::writer::Writer;
use crate::domain::record::deadline::SLACK_MS;
use crate::domain::record::{Comparison, Content, Expiry, Identity, Observation, SeenKey};
use crate::store::cluster::scripted::Script;
use crate::store::connection::reply;
use crate::store::error::StoreError;
use crate::store::read::reader::Head;
use crate::store::scripts;

/// What the script runs that compares and changes.
const RIGHTS: &str = "+unlink +pexpire +getrange +strlen +pexpiretime +pttl +time +dump";

impl Writer {
    /// Sends a batch once; the batch then knows what became of each change. Gives why nothing is to be sent after it, if
    /// so: a connection that lost a reply is not to be used for more, also where reading back told what became of it.
    ///
    /// # Errors
    /// Nothing was done.
    pub(super) async fn send(&self, batch: &mut Batch<'_>, action: Action) -> Result<Option<StoreError>, StoreError> {
        if self.link().is_cluster() {
            return self.send_apart(batch, action).await;
        }
        let Some(command) = batch.command(action) else { return Ok(None) };
        let told = match self.link().ask(&command).await {
            Ok(value) => reply::bytes(value).unwrap_or_default(),
            Err(error) if error.is_without_effect() => return Err(error.naming(RIGHTS)),
            Err(error) => return Ok(Some(self.all_read_back(batch, action, error).await)),
        };
        let outcomes: Option<Vec<_>> = told.iter().map(|letter| batch::outcome(*letter)).collect();
        match outcomes.filter(|outcomes| outcomes.len() == batch.len()) {
            Some(outcomes) => {
                batch.came_to(outcomes);
                Ok(None)
            }
            None => Ok(Some(self.all_read_back(batch, action, self.link().unexpected("EVAL")).await)),
        }
    }

    /// Reads back what became of every change of a batch; gives the error to end with.
    async fn all_read_back(&self, batch: &mut Batch<'_>, action: Action, why: StoreError) -> StoreError {
        let redis_keys = batch.redis_keys();
        let (outcomes, error) = self.read_back(&redis_keys, action, why).await;
        batch.came_to(outcomes);
        error
    }

    /// On a cluster: a call for each change, all in one write a node. What a node refuses or does not answer is no matter
    /// of the others.
    async fn send_apart(&self, batch: &mut Batch<'_>, action: Action) -> Result<Option<StoreError>, StoreError> {
        let (mut stopped, mut open) = (None, Vec::new());
        while let Err(error) = self.look_elsewhere(batch).await {
            self.fell_silent(&error)?;
            self.leave_out_silent(batch);
            stopped = Some(error);
        }
        let mut outcomes = Vec::with_capacity(batch.len());
        let calls = |script: Script<'_>| batch.commands_apart(action, script);
        let replies = self.link().ask_script_each(scripts::CHANGE_MANY_IF_SAME, calls).await?;
        for (index, reply) in replies.into_iter().enumerate() {
            outcomes.push(match reply.and_then(|value| self.letter(value)) {
                Ok(outcome) => outcome,
                Err(error) if error.is_without_effect() => {
                    stopped = Some(error.naming(RIGHTS));
                    Outcome::Refused
                }
                Err(error) => {
                    open.push((index, error));
                    Outcome::Unknown
                }
            });
        }
        if let Some((_, why)) = open.first() {
            // Nothing more is sent to any that is silent; which they are is told by the first.
            open.iter().for_each(|(_, error)| drop(self.fell_silent(error)));
            let all = batch.redis_keys();
            let redis_keys: Vec<_> = open.iter().map(|(index, _)| all[*index]).collect();
            let (found, error) = self.read_back(&redis_keys, action, why.clone()).await;
            for ((index, _), found) in open.iter().zip(found) {
                outcomes[*index] = found;
            }
            // What another node refuses is no matter of reading back, and is told beside.
            stopped = Some(error.with_refusal(stopped));
        }
        batch.came_to(outcomes);
        Ok(stopped)
    }

    /// What the reply to a call for one change says.
    fn letter(&self, value: Value) -> Result<Outcome, StoreError> {
        let told = reply::bytes(value).unwrap_or_default();
        let outcome = if let [letter] = told[..] { batch::outcome(letter) } else { None };
        outcome.ok_or_else(|| self.link().unexpected("EVAL"))
    }

    /// A second look, right before the change, at the Redis keys of records that a cluster keeps apart from the one to
    /// change: no script can compare both. A record whose other Redis key is no longer as it was seen is left alone.
    async fn look_elsewhere(&self, batch: &mut Batch<'_>) -> Result<(), StoreError> {
        let elsewhere = batch.elsewhere();
        if elsewhere.is_empty() {
            return Ok(());
        }
        let wanted: Vec<_> = elsewhere.iter().map(|(_, seen)| vec![seen.redis_key.clone()]).collect();
        let least = elsewhere.iter().map(|(_, seen)| seen.content.read_bytes()).max().unwrap_or(0);
        let now = self.link().reader().look(&wanted, least).await?;
        if let Some(Err(error)) = now.iter().find(|now| now.as_ref().is_err_and(StoreError::lost_the_reply)) {
            return Err(error.clone());
        }
        let is_still = |seen: &SeenKey, now: &Observation| {
            let seen = Observation { server_ms: None, keys: vec![seen.clone()], atomic: true };
            Identity::of(&seen).compare(now) == Comparison::Same
        };
        let pairs = elsewhere.iter().zip(&now);
        let changed = pairs.filter(|((_, seen), now)| !now.as_ref().is_ok_and(|now| is_still(seen, now)));
        batch.leave_out(&changed.map(|((place, _), _)| *place).collect());
        Ok(())
    }

    /// What became of changes to these Redis keys of which no reply tells, for the reason `why`; and the error to end with:
    /// that one, or that the outcome of some is unknown.
    ///
    /// On a new connection, for the old one may be what was lost. A Redis key that is gone, or expires as it should,
    /// was changed or needs no change. One that is still there may have been left alone or taken anew since, and a slow
    /// server may get to it yet: that is unknown.
    async fn read_back(&self, redis_keys: &[&[u8]], action: Action, why: StoreError) -> (Vec<Outcome>, StoreError) {
        let wanted: Vec<_> = redis_keys.iter().map(|key| vec![key.to_vec()]).collect();
        let now = match self.link().anew().await {
            Ok(link) => link.reader().peek_each(&wanted, Head::Bytes(1)).await,
            Err(_) => Vec::new(),
        };
        let outcome = |index: usize| match now.get(index) {
            Some(Ok(now)) if is_made(now, action) => Outcome::FoundDone,
            _ => Outcome::Unknown,
        };
        let outcomes: Vec<_> = (0..wanted.len()).map(outcome).collect();
        let unknown: Vec<_> = (0..wanted.len()).filter(|index| outcomes[*index] == Outcome::Unknown).collect();
        let verb = if action == Action::Remove { "removal" } else { "expiry" };
        let what = match (&unknown[..], wanted.len()) {
            ([], _) => return (outcomes, why),
            ([only], 1) => format!("the {verb} of {:?}", bstr::BStr::new(redis_keys[*only])),
            (some, all) => format!("the {verb} of {} of {all} Redis keys", some.len()),
        };
        // Of a cluster's nodes the one that did not answer, and not the one that was named.
        let target = why.silent_server().map_or_else(|| self.link().name(), str::to_owned);
        (outcomes, StoreError::OutcomeUnknown { target, what, why: why.to_string() })
    }
}

fn is_made(now: &Observation, action: Action) -> bool {
    let key = &now.keys[0];
    match action {
        Action::Remove => key.content == Content::Absent,
        Action::ExpireIn(ttl) => {
            key.content != Content::Absent && matches!(key.expiry, Expiry::In(left) if left <= ttl)
        }
        Action::ExpireAt(at) => {
            let ends = |left: u64| now.server_ms.is_some_and(|now| now + left <= at + SLACK_MS);
            key.content != Content::Absent && matches!(key.expiry, Expiry::In(left) if ends(left))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::Deadline;

    fn made(content: Content, expiry: Expiry, action: Action) -> bool {
        let keys = vec![SeenKey::new(b"idem:k", content, expiry, Deadline::Unknown)];
        is_made(&Observation { server_ms: Some(1), keys, atomic: true }, action)
    }

    /// Rule: a change whose reply was lost was made when the Redis key is as the change would have left that key.
    #[test]
    fn reading_back_tells_what_was_made() {
        let there = || Content::text(b"x".to_vec());
        assert!(made(Content::Absent, Expiry::In(0), Action::Remove));
        assert!(!made(there(), Expiry::Never, Action::Remove));
        let expire = Action::ExpireIn(1_000);
        assert!(made(there(), Expiry::In(900), expire) && made(there(), Expiry::In(1_000), expire));
        assert!(!made(there(), Expiry::In(1_001), expire) && !made(there(), Expiry::Never, expire));
        assert!(!made(Content::Absent, Expiry::In(0), expire), "gone, and nobody knows by whom");
        // The server's clock says 1.
        let at = Action::ExpireAt(1_001);
        assert!(made(there(), Expiry::In(900), at) && made(there(), Expiry::In(1_002), at));
        assert!(!made(there(), Expiry::In(1_003), at) && !made(there(), Expiry::Never, at));
    }
}
