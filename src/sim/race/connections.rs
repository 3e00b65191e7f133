//! The connections of a race: one for each worker, and one that cleans up behind the workers.

use futures_util::{StreamExt as _, stream};
use uuid::Uuid;

use super::worker::Worker;
use crate::domain::step::StepReply;
use crate::sim::test_keys::removals;
use crate::store::{Client, Connection, Packed, StoreError, Writable};

/// Connections that are opened at a time: servers queue a few hundred, some fewer.
const OPENED_AT_ONCE: usize = 32;

/// The workers with their connections, and one connection that cleans up behind them.
pub struct Connections {
    pub(super) workers: Vec<Worker>,
    client: Client,
    pub(super) target: Writable,
    /// The connection that is no worker's, opened first: it is there even when the server has no room for all workers.
    cleanup: Connection,
}

/// Why the workers are not all connected.
#[derive(Debug, thiserror::Error)]
#[error("cannot open {wanted} connections, {open} are open: {error}")]
pub struct NotConnected {
    pub open: usize,
    pub wanted: usize,
    #[source]
    pub error: StoreError,
}

impl Connections {
    /// Connects so many workers; in a cluster all of them to one master.
    pub async fn open(client: &Client, server: &Writable, concurrency: usize) -> Result<Self, NotConnected> {
        let not_connected = |open, error| NotConnected { open, wanted: concurrency, error };
        let target = &client.playground(server).await.map_err(|error| not_connected(0, error))?;
        let cleanup = Connection::connect(target).await.map_err(|error| not_connected(0, error))?;
        let mut connections =
            stream::iter((0..concurrency).map(|_| Connection::connect(target))).buffered(OPENED_AT_ONCE);
        let mut workers = Vec::with_capacity(concurrency);
        while let Some(connection) = connections.next().await {
            let connection = connection.map_err(|error| not_connected(workers.len(), error))?;
            workers.push(Worker {
                id: workers.len() + 1,
                owner: Uuid::new_v4().to_string(),
                connection: Some(connection),
            });
        }
        Ok(Self { workers, client: client.clone(), target: target.clone(), cleanup })
    }

    /// True when the node that is raced on serves all of these Redis keys.
    pub(super) fn serves(&self, redis_keys: &[Vec<u8>]) -> bool {
        self.client.serves(&self.target, redis_keys)
    }

    pub(super) fn cleanup(&mut self) -> &mut Connection {
        &mut self.cleanup
    }

    /// Gives workers whose connection broke a new one.
    pub(super) async fn mend(&mut self) -> Result<(), StoreError> {
        for worker in self.workers.iter_mut().filter(|worker| worker.connection.is_none()) {
            worker.connection = Some(Connection::connect(&self.target).await?);
        }
        Ok(())
    }

    pub(super) async fn remove(&mut self, redis_keys: &[Vec<u8>]) -> Result<(), StoreError> {
        for removal in removals(redis_keys, self.client.is_cluster()) {
            self.ask(&removal).await?;
        }
        Ok(())
    }

    /// Asks on the connection that is no worker's. Where that is broken, the request is sent again on a new one: only requests
    /// that may be sent twice come here.
    pub(super) async fn ask(&mut self, request: &Packed) -> Result<StepReply, StoreError> {
        match self.cleanup.ask(request).await {
            Err(error) if error.lost_the_reply() => {
                self.cleanup = Connection::connect(&self.target).await?;
                self.cleanup.ask(request).await
            }
            answered => answered,
        }
    }
}
