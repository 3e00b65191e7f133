//! Changes records without scripts: one transaction per record, on the client's own connections,
//! because WAIT counts only the changes of its connection.

use super::batch::Batch;
use super::change::{KeyAction, Outcome};
use super::identity_commands::IdentityCommands;
use super::set_words::words;
use super::transaction::Transaction;
use super::writer::Writer;
use crate::domain::hash_slot;
use crate::domain::record::Observation;
use crate::store::cluster::client::Client;
use crate::store::cluster::routing::Route;
use crate::store::connection::reply;
use crate::store::error::StoreError;

impl Writer {
    /// Sends the only change of a batch, and sets its outcome, as [`Writer::send`] does.
    ///
    /// # Errors
    /// Nothing was done.
    pub(super) async fn send_in_transaction(
        &self,
        batch: &mut Batch<'_>,
        action: KeyAction,
    ) -> Result<Option<StoreError>, StoreError> {
        let client = self.client();
        if client.is_cluster()
            && let Some(unread) = self.leave_out_changed(batch).await?
        {
            return Ok(Some(unread));
        }
        let [change] = batch.changes()[..] else { return Ok(None) };
        let slot = hash_slot::of(change.redis_key());
        let mut seen = change.seen.clone();
        seen.keys.retain(|key| !client.is_cluster() || hash_slot::of(&key.redis_key) == slot);
        let changed: Vec<&[u8]> = change.changed_keys().map(|key| &key.redis_key[..]).collect();
        let attempt = |route| change_at(&client, route, &seen, &changed, action);
        let sent = client.at_node_of(&changed, attempt).await;
        if let Ok(Err(error)) | Err(error) = &sent {
            // Nothing more is sent to a node that did not answer.
            let _ = self.note_unreachable(error);
        }
        let (outcomes, error) = match sent {
            Ok(Ok(outcome)) => (vec![outcome], None),
            Ok(Err(why)) => {
                let (outcomes, error) = self.read_back(&[change], action, why).await;
                (outcomes, Some(error))
            }
            Err(error) if client.is_cluster() => (vec![Outcome::NotMade], Some(error)),
            Err(error) => return Err(error),
        };
        batch.set_outcomes(outcomes);
        Ok(error)
    }
}

/// Changes Redis keys of a record on its node, if those in their slot are still as they were seen.
/// The outcome is the one that `change_many_if_same.lua` would reply.
///
/// # Errors
/// Inside: the reply was lost. Outside: nothing was done.
async fn change_at(
    client: &Client,
    route: Route,
    seen: &Observation,
    changed: &[&[u8]],
    action: KeyAction,
) -> Result<Result<Outcome, StoreError>, StoreError> {
    let keys: Vec<&[u8]> = seen.keys.iter().map(|key| &key.redis_key[..]).collect();
    let mut connection = client.node(&route.node).await?.lock().await?;
    let identity = IdentityCommands::for_node(client, &mut connection, seen, &[]).await?;
    let mut transaction = Transaction::watch(&mut connection, &route, &keys).await?;
    let now = transaction.read(&identity).await?;
    let mut changed_now = now.keys.iter().filter(|key| changed.contains(&&key.redis_key[..]));
    if changed_now.clone().all(|key| key.content.is_absent()) {
        return Ok(Ok(Outcome::Gone));
    }
    if !seen.is_still(&now) {
        return Ok(Ok(Outcome::ChangedMeanwhile));
    }
    let mut command = words(&[&[&b"UNLINK"[..]], changed].concat());
    let mut outcome = Outcome::Done;
    if let Some(ttl) = action.ttl() {
        if changed_now.all(|key| action.keeps(key.time_left)) {
            return Ok(Ok(Outcome::Kept));
        }
        let time = client.no_error(transaction.ask(&[words(&[b"TIME"])]).await?.remove(0))?;
        let now_ms = reply::millis(time).ok_or_else(|| client.unexpected("TIME"))?;
        let at = now_ms.saturating_add(ttl);
        // Only a removal changes several Redis keys of a record.
        command = words(&[b"PEXPIREAT", changed[0], at.to_string().as_bytes()]);
        outcome = Outcome::Expires(at);
    }
    Ok(match transaction.execute(&[command]).await? {
        // An error reply does not show what was done.
        Ok(Some(mut replies)) => client.no_error(replies.remove(0)).map(|_| outcome),
        Ok(None) => {
            // Valkey 9 replies so, not with a redirect, also if the slot has moved. A read is
            // redirected.
            transaction.read(&identity).await?;
            Ok(Outcome::ChangedMeanwhile)
        }
        Err(why) => Err(why),
    })
}
