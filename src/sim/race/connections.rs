//! The connections of a race: one for each worker, and one that deletes their keys and holds a
//! witness lock.

use futures_util::{StreamExt as _, stream};
use uuid::Uuid;

use super::worker::WorkerConnection;
use crate::domain::record::Response;
use crate::domain::schema::Schema;
use crate::domain::step::{StepInputs, StepReply};
use crate::sim::test_keys::removals;
use crate::store::{Client, Connection, Packed, StoreError, Writable, pack};

/// How many connections are opened at the same time. Servers queue a few hundred, and some fewer.
const OPENED_AT_ONCE: usize = 32;

/// The workers' connections, and one connection that deletes their keys.
pub struct Connections {
    pub(super) workers: Vec<WorkerConnection>,
    client: Client,
    target: Writable,
    /// Opened first, so that it exists even if the server has no room for all workers.
    cleanup: Connection,
}

/// Why not all workers are connected.
#[derive(Debug, thiserror::Error)]
#[error("cannot open {wanted} connections, {open} are open: {error}")]
pub struct NotConnected {
    pub open: usize,
    pub wanted: usize,
    #[source]
    pub error: StoreError,
}

impl Connections {
    /// Opens this number of connections. In a cluster, all of them lead to one master.
    ///
    /// # Errors
    /// The first connection that cannot be opened, and how many are open.
    pub async fn open(
        client: &Client,
        server: &Writable,
        concurrency: usize,
    ) -> Result<Self, NotConnected> {
        let not_connected = |open, error| NotConnected { open, wanted: concurrency, error };
        let none = |error| not_connected(0, error);
        let target = client.playground(server).await.map_err(none)?;
        let cleanup = Connection::connect(&target).await.map_err(none)?;
        let connecting = (0..concurrency).map(|_| Connection::connect(&target));
        let mut connected = stream::iter(connecting).buffered(OPENED_AT_ONCE);
        let mut workers = Vec::with_capacity(concurrency);
        while let Some(connection) = connected.next().await {
            let connection = connection.map_err(|error| not_connected(workers.len(), error))?;
            workers.push(WorkerConnection {
                id: workers.len() + 1,
                owner: Uuid::new_v4().to_string(),
                connection: Some(connection),
            });
        }
        // `connected` still borrows `target`.
        drop(connected);
        Ok(Self { workers, client: client.clone(), target, cleanup })
    }

    /// True if the node of the race serves all of these Redis keys.
    pub(super) fn serves(&self, redis_keys: &[Vec<u8>]) -> bool {
        self.client.serves(&self.target, redis_keys)
    }

    pub(super) fn cleanup(&mut self) -> &mut Connection {
        &mut self.cleanup
    }

    /// Opens a new connection for each worker whose connection broke.
    pub(super) async fn reconnect_workers(&mut self) -> Result<(), StoreError> {
        for worker in &mut self.workers {
            if worker.connection.is_none() {
                worker.connection = Some(Connection::connect(&self.target).await?);
            }
        }
        Ok(())
    }

    /// Deletes Redis keys.
    pub(super) async fn remove(&mut self, redis_keys: &[Vec<u8>]) -> Result<(), StoreError> {
        for removal in removals(redis_keys, self.client.is_cluster()) {
            self.ask(&removal).await?;
        }
        Ok(())
    }

    /// Sends a request over the cleanup connection. If that connection is broken, the request is
    /// sent again over a new one. The server may therefore execute a request twice.
    pub(super) async fn ask(&mut self, request: &Packed) -> Result<StepReply, StoreError> {
        match self.cleanup.ask(request).await {
            Err(error) if error.lost_the_reply() => {
                self.cleanup = Connection::connect(&self.target).await?;
                self.cleanup.ask(request).await
            }
            replied => replied,
        }
    }
}

/// A lock that no worker races for. Whatever ends or deletes the locks of a round ends or deletes
/// this lock too.
///
/// Locks end during a race when idemctl, the server or the machine is paused. They also end when
/// another client flushes the database or deletes keys by a pattern. A second worker that then
/// acquires the lock is not evidence about the schema's steps.
pub(super) struct WitnessLock {
    /// Sets the lock again, and returns the value before.
    renewal: Packed,
    /// False if the Redis user may not set the lock, or if the server does not support SET with
    /// GET.
    is_of_use: bool,
}

impl WitnessLock {
    /// Creates a lock that is not set yet. Its TTL is the shorter TTL of the round's keys.
    pub(super) fn new(schema: &Schema, key: &[u8], owner: &str) -> Self {
        let redis_key = schema.keys[schema.lock_key_index()].template.redis_key(key);
        let value = StepInputs::new(schema, key, owner, &Response::default()).lock_value();
        let ttl_ms = schema.lock_ttl.min(schema.result_ttl).as_millis().to_string();
        let renewal = pack([b"SET", &redis_key[..], &value, b"PX", ttl_ms.as_bytes(), b"GET"]);
        Self { renewal, is_of_use: true }
    }

    /// Sets the lock again for the next round; false if the lock no longer existed.
    pub(super) async fn renew(
        &mut self,
        connections: &mut Connections,
    ) -> Result<bool, StoreError> {
        if !self.is_of_use {
            return Ok(true);
        }
        match connections.ask(&self.renewal).await {
            Ok(StepReply::Text(_)) => Ok(true),
            Ok(StepReply::Nil) => Ok(false),
            Err(error) if !error.is_permission() => Err(error),
            // SET with GET needs Redis 6.2, and some users may not run it. Rounds are then judged
            // without a witness.
            _ => {
                self.is_of_use = false;
                Ok(true)
            }
        }
    }
}
