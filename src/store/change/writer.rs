//! Changing records: compare and change, atomically, against exactly what was seen.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::domain::record::age::millis;
use crate::domain::step::StepReply;
use crate::store::cluster::client::{Client, Failover};
use crate::store::cluster::slot_map::SlotMap;
use crate::store::connection::{Connection, Permit, pack};
use crate::store::error::StoreError;

/// What may change: the one place that sends a change.
pub struct Writer {
    /// Another one after a failover.
    client: Mutex<Client>,
    /// How many replicas are to have each batch of changes, and how long that may take.
    replicas: Option<(u32, Duration)>,
    /// That the replicas did not have a service's own step in time.
    behind: Mutex<Option<StoreError>>,
    /// Masters of a cluster that did not answer: nothing more is sent there.
    pub(super) silent: Mutex<HashSet<String>>,
}

impl Client {
    /// What may change, for whoever has leave to.
    pub fn writer(&self, _: &Permit) -> Writer {
        Writer::new(self.clone())
    }
}

impl Writer {
    pub(in crate::store) fn new(client: Client) -> Self {
        Self {
            client: Mutex::new(client),
            replicas: None,
            behind: Mutex::default(),
            silent: Mutex::default(),
        }
    }

    /// The same, which waits after each batch of changes until so many replicas have it.
    #[must_use]
    pub fn waiting_for(self, replicas: Option<(u32, Duration)>) -> Self {
        Self { replicas, ..self }
    }

    /// Passes when the replicas had every step of a service in time that was made, as many as were to be waited for.
    ///
    /// # Errors
    /// They had not; the step was made.
    pub fn replicas_have_it(&self) -> Result<(), StoreError> {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    /// Waits for the replicas behind a connection of its own, for Redis counts what came through that one alone.
    pub(in crate::store) async fn wait_behind(&self, connection: &mut Connection) {
        let Some((wanted, wait)) = self.replicas else { return };
        let asked =
            connection.ask(&pack(["WAIT", &wanted.to_string(), &millis(wait).to_string()])).await;
        let have = match asked {
            Ok(StepReply::Integer(have)) => have,
            _ => 0,
        };
        if have < i64::from(wanted) {
            let behind = StoreError::NotReplicated { target: self.name(), have, wanted };
            *self.behind.lock().unwrap_or_else(PoisonError::into_inner) = Some(behind);
        }
    }

    /// Waits for the replicas of the masters of these Redis keys, where they are to be waited for.
    pub(in crate::store) async fn replicated(&self, changed: &[&[u8]]) -> Result<(), StoreError> {
        match self.replicas {
            Some((wanted, wait)) => self.client().replicated(changed, wanted, wait).await,
            None => Ok(()),
        }
    }

    /// The way to the server; to the master of now, where a failover was noticed.
    pub(in crate::store) fn client(&self) -> Client {
        self.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Goes to the master of now, where another one has taken over since the slot map was this: that it was so, as an
    /// error to end with.
    pub(in crate::store) async fn follow(
        &self,
        before: Option<&SlotMap>,
    ) -> Result<Option<StoreError>, StoreError> {
        let Some(Failover { client, from, to }) = self.client().failover(before).await? else {
            return Ok(None);
        };
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
        Ok(Some(StoreError::FailedOver { from, to }))
    }

    /// The server's name for people.
    pub fn name(&self) -> String {
        self.client().name()
    }
}
