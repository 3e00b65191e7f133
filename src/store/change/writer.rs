//! The protocol that batches, guarded steps and restores share: the writer detects a failover
//! around each attempt, and waits for replicas. Services' steps in `sim/` send changes of their
//! own.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::domain::record::age::millis;
use crate::domain::step::StepReply;
use crate::store::cluster::client::{Client, Failover};
use crate::store::cluster::slot_map::SlotMap;
use crate::store::connection::{Connection, Permit, pack};
use crate::store::error::StoreError;

/// Sends changes to records.
pub struct Writer {
    /// The current client; a failover replaces it. The lock is held only to copy or replace it,
    /// never during a request, so that a poisoned lock is still usable.
    client: Mutex<Client>,
    /// False if the Redis user may not run scripts, or the server has none. Each change is then a
    /// transaction.
    pub(super) runs_scripts: bool,
    /// How many replicas must have each batch of changes, and how long to wait for them.
    replicas: Option<(u32, Duration)>,
    /// Why the replicas did not have a service's own step in time.
    not_replicated: Mutex<Option<StoreError>>,
    /// Masters of a cluster that did not answer; nothing more is sent to them. `client` may be
    /// locked while this is locked, but not the other way round. Otherwise two threads could wait
    /// for each other's lock.
    pub(super) unreachable: Mutex<HashSet<String>>,
}

/// Changes that are sent together, and their outcomes.
pub(super) trait ChangeAttempt {
    /// Sends the changes once. Batches write and sync their backup first; a step was backed up
    /// before. A change whose reply is lost is not sent again: it may have been made, and then the
    /// reply to the second call would say that nothing was done. The record is read back instead.
    ///
    /// # Errors
    /// What ended the attempt. The changes before it remain made.
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

    /// Waits until as many replicas have the changes since this moment as the operator requires.
    ///
    /// # Errors
    /// They did not have them in time. The changes remain made.
    async fn wait_for_replicas(
        &mut self,
        writer: &Writer,
        since: Instant,
    ) -> Result<(), StoreError> {
        writer.replicated(&self.changed_keys(), since).await
    }
}

impl Client {
    /// A writer, for a caller that holds a permit to change records.
    pub fn writer(&self, _: &Permit) -> Writer {
        Writer::new(self.clone())
    }
}

impl Writer {
    /// A writer that waits for no replicas.
    pub(in crate::store) fn new(client: Client) -> Self {
        Self {
            client: Mutex::new(client),
            runs_scripts: true,
            replicas: None,
            not_replicated: Mutex::default(),
            unreachable: Mutex::default(),
        }
    }

    /// This writer, but waiting after each batch of changes until this many replicas have it.
    #[must_use]
    pub fn waiting_for(self, replicas: Option<(u32, Duration)>) -> Self {
        Self { replicas, ..self }
    }

    /// A writer to the same server that waits for no replicas.
    #[must_use]
    pub fn without_waiting(&self) -> Self {
        Self { runs_scripts: self.runs_scripts, ..Self::new(self.client()) }
    }

    /// Finds out whether scripts work here. Returns false if they do not.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn try_scripts(&mut self) -> Result<bool, StoreError> {
        match self.client().ask(redis::cmd("EVAL").arg("return 1").arg(0)).await {
            Err(error) if error.lost_the_reply() => return Err(error),
            Err(error) => self.runs_scripts = !error.refuses_command(),
            Ok(_) => {}
        }
        Ok(self.runs_scripts)
    }

    /// Checks, before anything is changed without scripts, that the Redis user may send a command.
    /// Its first argument is any Redis key. The command is not executed.
    ///
    /// # Errors
    /// The user may not, or there is no reply.
    pub async fn require(&self, command: &[&str]) -> Result<(), StoreError> {
        if self.runs_scripts {
            return Ok(());
        }
        let words: Vec<&[u8]> = command.iter().map(|word| word.as_bytes()).collect();
        let refusals = self.client().refusals(words[1], &[words]).await?;
        // A user who may send it for some Redis keys gets another error for this one.
        match refusals.into_iter().find(StoreError::refuses_command) {
            Some(refusal) => Err(refusal),
            None => Ok(()),
        }
    }

    /// Makes changes by the protocol that all changes share.
    ///
    /// # Errors
    /// The nodes of the cluster are unknown, and nothing was sent. Otherwise the error of the
    /// attempt, or of the servers after it.
    pub(super) async fn run_attempt(
        &self,
        attempt: &mut impl ChangeAttempt,
    ) -> Result<(), StoreError> {
        // The nodes must be known before anything is sent. Otherwise a failover could not be
        // noticed afterwards.
        self.client().masters().await?;
        let before = self.client().slot_map();

        let since = Instant::now();
        let sent = attempt.send(self).await;
        if !attempt.may_have_changed() {
            return sent;
        }

        // A replaced master still confirms changes until it learns of its replacement, and those
        // changes are lost.
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
        attempt.wait_for_replicas(self, since).await
    }

    /// A client to read back a change whose reply was lost. Its connections are new, because the
    /// old one may be broken.
    ///
    /// # Errors
    /// No server can be reached.
    pub(super) async fn reconnect(&self) -> Result<Client, StoreError> {
        self.client().anew().await
    }

    /// The error that the outcome of `what` is unknown, because its reply was lost for the reason
    /// `why`, and a later read did not show it.
    pub(super) fn outcome_unknown(&self, what: String, why: &StoreError) -> StoreError {
        // In a cluster, the node that did not answer, which need not be the one that the operator
        // named.
        let target = match why.silent_server() {
            Some(server) => server.to_owned(),
            None => self.name(),
        };
        StoreError::OutcomeUnknown { target, what, why: why.to_string() }
    }

    /// Succeeds if the required number of replicas had every executed step of a service in time.
    ///
    /// # Errors
    /// They did not have it; the step remains made.
    pub fn replicas_have_it(&self) -> Result<(), StoreError> {
        match self.not_replicated.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(missing) => Err(missing),
            None => Ok(()),
        }
    }

    /// Waits for the replicas of a step that was made on its own connection, because WAIT counts
    /// only the changes of the connection that sends it. Without that connection, the number of
    /// replicas is unknown. Returns the error if they do not have it. [`Writer::replicas_have_it`]
    /// returns it later too, because the step's reply is reported first.
    pub(super) async fn wait_for_step(
        &self,
        connection: Option<&mut Connection>,
    ) -> Option<StoreError> {
        let (wanted, wait) = self.replicas?;
        let mut have = 0;
        if let Some(connection) = connection {
            let wait = millis(wait).to_string();
            let wait = pack(["WAIT", &wanted.to_string(), &wait]);
            if let Ok(StepReply::Integer(count)) = connection.ask(&wait).await {
                have = count;
            }
        }
        if have >= i64::from(wanted) {
            return None;
        }
        let missing = StoreError::NotReplicated { target: self.name(), have, wanted };
        *self.not_replicated.lock().unwrap_or_else(PoisonError::into_inner) = Some(missing.clone());
        Some(missing)
    }

    /// Waits for the replicas of the masters of these Redis keys, if the operator requires that.
    async fn replicated(&self, changed: &[&[u8]], since: Instant) -> Result<(), StoreError> {
        match self.replicas {
            Some((wanted, wait)) => self.client().replicated(changed, wanted, wait, since).await,
            None => Ok(()),
        }
    }

    /// The client of the server, or of the current master after a failover.
    pub(in crate::store) fn client(&self) -> Client {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Switches to the current master if another one took over since the slot map was `before`.
    /// Returns the failover as the error to stop with.
    ///
    /// # Errors
    /// The Sentinels know no master at the moment.
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
