//! The connections of a race: one for each worker, and one that cleans up after the workers and holds a witness lock.

use futures_util::{StreamExt as _, stream};
use uuid::Uuid;

use super::worker::WorkerConnection;
use crate::domain::record::Response;
use crate::domain::schema::Schema;
use crate::domain::step::{Request, StepReply};
use crate::sim::test_keys::removals;
use crate::store::{Client, Connection, Packed, StoreError, Writable, pack};

/// Connections that are opened at a time: servers queue a few hundred, some fewer.
const OPENED_AT_ONCE: usize = 32;

/// The workers with their connections, and one connection that cleans up after them.
pub struct Connections {
    pub(super) workers: Vec<WorkerConnection>,
    client: Client,
    target: Writable,
    /// Opened first, so that it exists even if the server has no room for all workers.
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
    ///
    /// # Errors
    /// The first connection that cannot be opened.
    pub async fn open(
        client: &Client,
        server: &Writable,
        concurrency: usize,
    ) -> Result<Self, NotConnected> {
        let not_connected = |open, error| NotConnected { open, wanted: concurrency, error };
        let target = client.playground(server).await.map_err(|error| not_connected(0, error))?;
        let cleanup =
            Connection::connect(&target).await.map_err(|error| not_connected(0, error))?;
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
        drop(connected);
        Ok(Self { workers, client: client.clone(), target, cleanup })
    }

    /// True if the node that is raced on serves all of these Redis keys.
    pub(super) fn serves(&self, redis_keys: &[Vec<u8>]) -> bool {
        self.client.serves(&self.target, redis_keys)
    }

    pub(super) fn cleanup(&mut self) -> &mut Connection {
        &mut self.cleanup
    }

    /// Gives workers whose connection broke a new one.
    pub(super) async fn reconnect_workers(&mut self) -> Result<(), StoreError> {
        for worker in &mut self.workers {
            if worker.connection.is_none() {
                worker.connection = Some(Connection::connect(&self.target).await?);
            }
        }
        Ok(())
    }

    pub(super) async fn remove(&mut self, redis_keys: &[Vec<u8>]) -> Result<(), StoreError> {
        for removal in removals(redis_keys, self.client.is_cluster()) {
            self.ask(&removal).await?;
        }
        Ok(())
    }

    /// Sends a request over the connection that cleans up. If that connection is broken, the request is sent again over a
    /// new one: only requests that may be executed twice are sent here.
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

/// A lock that nobody races for: whatever ends or removes the locks of a round ends or removes this lock, too.
///
/// Locks end during a race when idemctl or the server is stopped, when the machine sleeps, when somebody flushes the
/// database or removes keys by a pattern. A second worker that then gets the lock says nothing about the schema's steps.
pub(super) struct WitnessLock {
    /// Sets the lock again, and asks for the value before.
    renewal: Packed,
    /// False if this user may not set the lock, or the server cannot set and ask in one command.
    is_of_use: bool,
}

impl WitnessLock {
    /// A lock that is not set yet. It lives no longer than the first of a round's keys to end.
    pub(super) fn new(schema: &Schema, key: &[u8], owner: &str) -> Self {
        let redis_key = schema.keys[schema.lock_role()].template.redis_key(key);
        let value = Request::new(schema, key, owner, &Response::default()).lock_value();
        let ttl_ms = schema.lock_ttl.min(schema.result_ttl).as_millis().to_string();
        let renewal = pack([b"SET", &redis_key[..], &value, b"PX", ttl_ms.as_bytes(), b"GET"]);
        Self { renewal, is_of_use: true }
    }

    /// Sets the lock again for the next round; false if the lock was gone.
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
            // Redis 6.2 knows SET with GET, older servers and some users do not: rounds are judged without a witness.
            _ => {
                self.is_of_use = false;
                Ok(true)
            }
        }
    }
}
