//! Restores records without scripts: one transaction per record.

use std::collections::HashMap;
use std::iter;

use super::outlook::predict;
use super::{KeyResult, RestoreOutcome, RestoreResult, RestoreUnit, Return, is_restored};
use crate::domain::record::{Content, Deadline, KeyState, Observation, TimeLeft};
use crate::store::change::Writer;
use crate::store::change::set_words::{Words, words};
use crate::store::change::transaction::{Executed, Transaction};
use crate::store::cluster::client::Client;
use crate::store::cluster::routing::Route;
use crate::store::connection::reply;
use crate::store::error::StoreError;

impl Writer {
    /// Restores units one after the other, and notes the outcome of each Redis key.
    pub(super) async fn bring_in_transactions(
        &self,
        units: &[RestoreUnit<'_>],
        outcomes: &mut [RestoreResult],
    ) {
        // The masters that did not answer, to which nothing more is sent.
        let mut silent: HashMap<String, StoreError> = HashMap::new();
        for unit in units {
            let master = match self.client().master_of(&unit.record.keys[0].saved.redis_key).await {
                Ok(master) => master.to_string(),
                Err(_) => String::new(),
            };
            if let Some(error) = silent.get(&master) {
                unit.note(iter::repeat(Err(error.clone())), outcomes);
                continue;
            }
            let error = match self.restore_in_transaction(&unit.record).await {
                Ok(Ok(restored)) => {
                    unit.note(restored.into_iter(), outcomes);
                    continue;
                }
                Ok(Err(why)) => {
                    let found = self.found_back(&[unit], &why).await;
                    unit.note(found.into_iter(), outcomes);
                    why
                }
                Err(error) => {
                    unit.note(iter::repeat(Err(error.clone())), outcomes);
                    error
                }
            };
            if error.lost_the_reply() {
                silent.insert(master, error);
            }
        }
    }

    /// Restores a record as a whole, if none of its Redis keys exists.
    ///
    /// # Errors
    /// Inside: the reply was lost. Outside: nothing was done.
    async fn restore_in_transaction(
        &self,
        record: &Return<'_>,
    ) -> Result<Result<Vec<KeyResult>, StoreError>, StoreError> {
        let client = self.client();
        let keys: Vec<&[u8]> = record.all().collect();
        let mut route = client.route_to(&keys).await?;
        let mut tries = 0;
        loop {
            match restore_at(&client, &route, record, &keys).await {
                Err(error) if error.is_redirect() => {
                    route = client.route_after(&error, keys[0], &mut tries).await?;
                }
                sent => return sent,
            }
        }
    }
}

/// Restores a record on its node. The outcomes are those that `restore_many_if_absent.lua` would
/// reply.
async fn restore_at(
    client: &Client,
    route: &Route,
    record: &Return<'_>,
    keys: &[&[u8]],
) -> Result<Result<Vec<KeyResult>, StoreError>, StoreError> {
    let mut connection = client.node(&route.node).await?.lock().await?;
    let mut transaction = Transaction::watch(&mut connection, route, keys).await?;
    // RESTORE with a past expiry checks the bytes and stores nothing. Redis would execute
    // the others of a transaction although the bytes of one key are refused.
    let mut refused = None;
    if record.keys.len() > 1 {
        let mut trials = Vec::with_capacity(record.keys.len());
        for key in &record.keys {
            trials.push(restore(&key.saved.redis_key, 1, &key.saved.dump));
        }
        for trial in transaction.ask(&trials).await? {
            refused = refused.or(client.no_error(trial).err());
        }
    }
    let mut outcomes = outlook(client, &mut transaction, record).await?;
    let mut commands: Vec<Words> = Vec::new();
    let mut exist: Vec<Words> = Vec::new();
    for (key, outcome) in record.keys.iter().zip(&mut outcomes) {
        if !is_restored(outcome) {
            continue;
        }
        if let Some(error) = &refused {
            *outcome = Err(error.clone());
            continue;
        }
        let saved = &key.saved;
        let at = saved.expires_at_ms.unwrap_or(0);
        commands.push(restore(&saved.redis_key, at, &saved.dump));
        exist.push(words(&[b"EXISTS", &saved.redis_key]));
    }
    if commands.is_empty() {
        return Ok(Ok(outcomes));
    }
    commands.append(&mut exist);
    let mut replies = match transaction.execute(&commands).await? {
        Executed::All(replies) => replies,
        Executed::Lost(why) => return Ok(Err(why)),
        // A Redis key of the record was created, and may be gone again.
        Executed::Nothing => {
            let mut now = outlook(client, &mut transaction, record).await?;
            for outcome in now.iter_mut().filter(|outcome| is_restored(outcome)) {
                *outcome = Ok(RestoreOutcome::Barred);
            }
            return Ok(Ok(now));
        }
    };
    let exist = replies.split_off(replies.len() / 2);
    let mut replies = replies.into_iter().zip(exist);
    for outcome in outcomes.iter_mut().filter(|outcome| is_restored(outcome)) {
        let Some((restored, exists)) = replies.next() else { break };
        if let Err(error) = client.no_error(restored) {
            *outcome = Err(error);
        } else if reply::integer(&exists) == Some(0) {
            // RESTORE replies OK for an expiry in the past, but stores nothing.
            *outcome = Ok(RestoreOutcome::Expired);
        }
    }
    Ok(Ok(outcomes))
}

/// What a restore would do with a record now.
async fn outlook(
    client: &Client,
    transaction: &mut Transaction<'_>,
    record: &Return<'_>,
) -> Result<RestoreResult, StoreError> {
    let mut commands = vec![words(&[b"TIME"])];
    commands.extend(record.all().map(|key| words(&[b"EXISTS", key])));
    let mut replies = transaction.ask(&commands).await?.into_iter();
    // Without the right to send TIME, only EXISTS after RESTORE shows what has expired.
    let server_ms = replies.next().and_then(reply::millis);
    let mut seen = Vec::with_capacity(replies.len());
    for (key, exists) in record.all().zip(replies) {
        let exists = reply::integer(&client.no_error(exists)?) != Some(0);
        let content = if exists { Content::not_read() } else { Content::Absent };
        let key = KeyState::new(key, content, TimeLeft::NoExpiry, Deadline::Never);
        seen.push(Observation { server_ms, keys: vec![key], atomic: true });
    }
    Ok(predict(record, &seen))
}

fn restore(redis_key: &[u8], at: u64, dump: &[u8]) -> Words {
    words(&[b"RESTORE", redis_key, at.to_string().as_bytes(), dump, b"ABSTTL"])
}
