//! Restores records without scripts: one transaction per record.

use std::iter;

use super::outlook::left;
use super::{KeyResult, RestoreOutcome, RestoreResult, RestoreUnit, Return, is_restored};
use crate::store::change::Writer;
use crate::store::change::set_words::{Words, words};
use crate::store::change::transaction::Transaction;
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
        let client = self.client();
        let mut keys = Vec::with_capacity(units.len());
        for unit in units {
            keys.push(unit.record.keys[0].saved.redis_key.as_slice());
        }
        for indexes in client.by_master(&keys) {
            // Nothing more is sent to a master that did not answer.
            let mut silent: Option<StoreError> = None;
            for index in indexes {
                let unit = &units[index];
                let keys: Vec<&[u8]> = unit.record.all().collect();
                let sent = match &silent {
                    Some(error) => Err(error.clone()),
                    None => {
                        let attempt = |route| restore_at(&client, route, &unit.record, &keys);
                        client.at_node_of(&keys, attempt).await
                    }
                };
                if let Ok(Err(error)) | Err(error) = &sent
                    && error.lost_the_reply()
                {
                    silent = Some(error.clone());
                }
                match sent {
                    Ok(Ok(restored)) => unit.note(restored.into_iter(), outcomes),
                    Ok(Err(why)) => {
                        unit.note(self.found_back(&[unit], &why).await.into_iter(), outcomes);
                    }
                    Err(error) => unit.note(iter::repeat(Err(error)), outcomes),
                }
            }
        }
    }
}

/// Restores a record on its node, if none of its Redis keys exists, with the outcomes that
/// `restore_many_if_absent.lua` would reply.
///
/// # Errors
/// Inside: the reply was lost. Outside: nothing was done.
async fn restore_at(
    client: &Client,
    route: Route,
    record: &Return<'_>,
    keys: &[&[u8]],
) -> Result<Result<Vec<KeyResult>, StoreError>, StoreError> {
    let mut connection = client.node(&route.node).await?.lock().await?;
    let mut transaction = Transaction::watch(&mut connection, &route, keys).await?;
    // RESTORE with a past expiry checks the bytes, and stores nothing. A transaction would restore
    // the other keys of the record although Redis refuses the bytes of one.
    let mut trials = vec![words(&[&[&b"EXISTS"[..]], keys].concat()), words(&[b"TIME"])];
    let mut restores = Vec::with_capacity(record.keys.len());
    let mut exist = Vec::with_capacity(record.keys.len());
    for key in &record.keys {
        let saved = &key.saved;
        trials.push(restore(&saved.redis_key, 1, &saved.dump));
        restores.push(restore(&saved.redis_key, saved.expires_at_ms.unwrap_or(0), &saved.dump));
        exist.push(words(&[b"EXISTS", &saved.redis_key]));
    }
    let mut trials = transaction.ask(&trials).await?.into_iter();
    let existing = client.no_error(trials.next().unwrap_or_default())?;
    let now_ms = trials.next().and_then(reply::millis);
    if reply::integer(&existing) == Some(0) {
        for trial in trials {
            client.no_error(trial)?;
        }
        restores.append(&mut exist);
        match transaction.execute(&restores).await? {
            Ok(Some(mut replies)) => {
                let exist = replies.split_off(record.keys.len());
                let mut outcomes = Vec::with_capacity(exist.len());
                for ((key, restored), exists) in record.keys.iter().zip(replies).zip(exist) {
                    outcomes.push(match client.no_error(restored) {
                        Err(error) => Err(error),
                        // RESTORE replies OK for an expiry in the past, but stores nothing.
                        Ok(_) if reply::integer(&exists) == Some(0) => Ok(RestoreOutcome::Expired),
                        Ok(_) => Ok(RestoreOutcome::Restored(left(&key.saved, now_ms))),
                    });
                }
                return Ok(Ok(outcomes));
            }
            Ok(None) => {}
            Err(why) => return Ok(Err(why)),
        }
    }
    drop(connection);
    let mut now = client.would_restore(std::slice::from_ref(record)).await?.concat();
    // A Redis key that existed is gone again.
    for outcome in now.iter_mut().filter(|outcome| is_restored(outcome)) {
        *outcome = Ok(RestoreOutcome::Barred);
    }
    Ok(Ok(now))
}

fn restore(redis_key: &[u8], at: u64, dump: &[u8]) -> Words {
    words(&[b"RESTORE", redis_key, at.to_string().as_bytes(), dump, b"ABSTTL"])
}
