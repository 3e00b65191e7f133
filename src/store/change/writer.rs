//! The one place that sends changes, and the protocol of every change: batches, guarded steps and
//! restores alike.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::domain::record::age::millis;
use crate::domain::step::StepReply;
use crate::store::cluster::client::{Client, Failover};
use crate::store::cluster::slot_map::SlotMap;
use crate::store::connection::{Connection, Permit, pack};
use crate::store::error::StoreError;

/// What may change records.
pub struct Writer {
    /// Another one after a failover.
    client: Mutex<Client>,
    /// How many replicas are to have each batch of changes, and how long that may take.
    replicas: Option<(u32, Duration)>,
    /// That the replicas did not have a service's own step in time.
    behind: Mutex<Option<StoreError>>,
    /// Masters of a cluster that did not answer: nothing more is sent there.
    pub(super) unreachable: Mutex<HashSet<String>>,
}

/// Changes that are sent together, and their outcomes.
pub(super) trait ChangeAttempt {
    /// Sends the changes once. A change whose reply is lost is read back and never sent again: it
    /// may have been made, and then the reply to the second call would say that nothing was done.
    ///
    /// # Errors
    /// What ended the attempt; the changes that were made before it are made.
    async fn send(&mut self, writer: &Writer) -> Result<(), StoreError>;

    /// False if nothing was changed, so that it does not matter who the master is now.
    fn may_have_changed(&self) -> bool;

    /// The Redis keys that were changed.
    fn changed_keys(&self) -> Vec<&[u8]>;

    /// Handles a failover: `writer` works on the new master now, and changes on the old one may be
    /// lost. `before` is the slot map before the changes, and `sent` is how they ended.
    ///
    /// # Errors
    /// The changes cannot be confirmed or made again.
    async fn after_failover(
        &mut self,
        writer: &Writer,
        before: Option<&SlotMap>,
        sent: Result<(), StoreError>,
        failed_over: StoreError,
    ) -> Result<(), StoreError>;

    /// Handles an unknown master: Sentinels do not agree on one, so the changes may be lost.
    ///
    /// # Errors
    /// The master is unknown.
    async fn after_unknown_master(
        &mut self,
        writer: &Writer,
        why: StoreError,
    ) -> Result<(), StoreError> {
        Err(StoreError::MasterUnknown { target: writer.name(), why: why.to_string() })
    }

    /// Waits until as many replicas have the changes as the operator wants.
    ///
    /// # Errors
    /// They did not have them in time; the changes are made.
    async fn wait_for_replicas(&mut self, writer: &Writer) -> Result<(), StoreError> {
        writer.replicated(&self.changed_keys()).await
    }
}

impl Client {
    /// What may change, for whoever has leave to.
    pub fn writer(&self, _: &Permit) -> Writer {
        Writer::new(self.clone())
    }
}

impl Writer {
    /// A writer that waits for no replicas.
    pub(in crate::store) fn new(client: Client) -> Self {
        Self {
            client: Mutex::new(client),
            replicas: None,
            behind: Mutex::default(),
            unreachable: Mutex::default(),
        }
    }

    /// The same, which waits after each batch of changes until so many replicas have it.
    #[must_use]
    pub fn waiting_for(self, replicas: Option<(u32, Duration)>) -> Self {
        Self { replicas, ..self }
    }

    /// Makes changes by the protocol of every change.
    ///
    /// # Errors
    /// The nodes of the cluster are unknown, and nothing was sent; else the error of the attempt,
    /// or of the servers after it.
    pub(super) async fn perform(&self, attempt: &mut impl ChangeAttempt) -> Result<(), StoreError> {
        // Which nodes there are is known before anything is sent: afterwards a failover could not
        // be noticed.
        self.client().masters().await?;
        let before = self.client().slot_map();

        let sent = attempt.send(self).await;
        if !attempt.may_have_changed() {
            return sent;
        }

        // A master that was replaced confirms changes for some time before it knows, and those are
        // lost.
        match self.follow(before.as_deref()).await {
            Ok(None) => sent?,
            Ok(Some(failed_over)) => {
                return attempt.after_failover(self, before.as_deref(), sent, failed_over).await;
            }
            Err(why) => {
                sent?;
                if attempt.changed_keys().is_empty() {
                    return Err(why);
                }
                return attempt.after_unknown_master(self, why).await;
            }
        }
        attempt.wait_for_replicas(self).await
    }

    /// A client to read back a change whose reply was lost. Its connections are new, because the
    /// old one may be broken.
    ///
    /// # Errors
    /// No server can be reached.
    pub(super) async fn reconnect(&self) -> Result<Client, StoreError> {
        self.client().anew().await
    }

    /// The error that the outcome of `what` is unknown: its reply was lost, for the reason `why`,
    /// and reading back did not show it.
    pub(super) fn outcome_unknown(&self, what: String, why: &StoreError) -> StoreError {
        // Of a cluster's nodes the one that did not answer, and not the one that was named.
        let target = why.silent_server().map_or_else(|| self.name(), str::to_owned);
        StoreError::OutcomeUnknown { target, what, why: why.to_string() }
    }

    /// Passes if the replicas had every step of a service in time that was made, as many as the
    /// operator wants.
    ///
    /// # Errors
    /// They had not; the step was made.
    pub fn replicas_have_it(&self) -> Result<(), StoreError> {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    /// Waits for the replicas of a step that was made through a connection of its own, because
    /// Redis counts the changes of the connection that asks. Without that connection nobody can
    /// say how many have it. [`Writer::replicas_have_it`] says whether they had it: the step's
    /// reply is reported first.
    pub(super) async fn wait_behind(&self, connection: Option<&mut Connection>) {
        let Some((wanted, wait)) = self.replicas else { return };
        let mut have = 0;
        if let Some(connection) = connection {
            let wait = millis(wait).to_string();
            let wait = pack(["WAIT", &wanted.to_string(), &wait]);
            if let Ok(StepReply::Integer(count)) = connection.ask(&wait).await {
                have = count;
            }
        }
        if have < i64::from(wanted) {
            let behind = StoreError::NotReplicated { target: self.name(), have, wanted };
            *self.behind.lock().unwrap_or_else(PoisonError::into_inner) = Some(behind);
        }
    }

    /// Waits for the replicas of the masters of these Redis keys, if the operator wants that.
    async fn replicated(&self, changed: &[&[u8]]) -> Result<(), StoreError> {
        match self.replicas {
            Some((wanted, wait)) => self.client().replicated(changed, wanted, wait).await,
            None => Ok(()),
        }
    }

    /// The way to the server; after a failover that was noticed, to the master of now.
    pub(in crate::store) fn client(&self) -> Client {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Goes to the master of now, if another one has taken over since the slot map was this: then
    /// gives that as an error to end with.
    ///
    /// # Errors
    /// Sentinels know no master just now.
    async fn follow(&self, before: Option<&SlotMap>) -> Result<Option<StoreError>, StoreError> {
        let Some(failover) = self.client().failover(before).await? else { return Ok(None) };
        let Failover { client, from, to } = failover;
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
        Ok(Some(StoreError::FailedOver { from, to }))
    }

    /// The server's name for people.
    pub fn name(&self) -> String {
        self.client().name()
    }
}
