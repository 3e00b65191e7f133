//! Clients: each asks a worker of the service for an operation, once or until it is served.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::abort::Played;
use super::run::Run;
use super::story::{Begun, Lock, Operation};
use super::worker::Worker;
use crate::domain::record::age::millis;
use crate::domain::schema::Meaning;
use crate::domain::simulation::{Block, Told};
use crate::store::{Connection, Writable};

/// How soon a client asks again that is turned away.
const RETRY: Duration = Duration::from_millis(25);

impl<'s> Run<'s> {
    /// A worker of the service, on a connection of its own.
    pub(super) async fn worker(self: &Rc<Self>, name: &str, operation: Operation, lock: Lock) -> Played<Worker<'s>> {
        self.worker_at(&self.target, name, operation, lock).await
    }

    /// A worker of the service, on a connection of its own to another server.
    pub(super) async fn worker_at(
        self: &Rc<Self>,
        target: &Writable,
        name: &str,
        operation: Operation,
        lock: Lock,
    ) -> Played<Worker<'s>> {
        let connection = Connection::connect(target).await?;
        Ok(Worker::new(Rc::clone(self), name, operation, lock, connection))
    }

    /// A client asks once; when it gets the lock the operation is made.
    pub(super) async fn asks(self: &Rc<Self>, client: &str, operation: Operation) -> Played {
        let mut worker = self.worker(client, operation, Lock::Long).await?;
        match worker.begins().await? {
            Begun::Acquired => _ = makes(&mut worker).await?,
            Begun::Fails(why) | Begun::Unreachable(why) => self.told(operation, Told::Error(why)),
            Begun::Conflict(_) | Begun::Replayed | Begun::Mismatch(_) => {}
        }
        Ok(())
    }

    /// A client asks again and again until it is served: how long that takes is how long a client waits with nobody at work.
    /// A client that made the operation for the first time asks once more, as a client does that lost the response.
    pub(super) async fn retries(self: &Rc<Self>, client: &str, operation: Operation) -> Played {
        let made = self.is_served(client, operation).await? == Served::Made;
        if made && self.history.borrow().times(operation.what) == 1 {
            self.is_served(&format!("{client}, again"), operation).await?;
        }
        Ok(())
    }

    async fn is_served(self: &Rc<Self>, client: &str, operation: Operation) -> Played<Served> {
        let mut worker = self.worker(client, operation, Lock::Short).await?;
        let (by, reply) = match worker.begins().await? {
            Begun::Acquired => return makes(&mut worker).await,
            Begun::Replayed => return Ok(Served::Told),
            Begun::Conflict(reply) => (Meaning::Conflict, reply),
            Begun::Mismatch(reply) => (Meaning::Mismatch, reply),
            Begun::Fails(reply) => (Meaning::Fail, reply),
            Begun::Unreachable(reply) => {
                self.told(operation, Told::Error(reply));
                return Ok(Served::Told);
            }
        };
        let until = self.until().await?;
        self.may_run_out();
        let since = Instant::now();
        let served = self.waits(&mut worker, until).await?;
        let lock_ms = millis(self.lock_ttl);
        let ms = match (until, served) {
            // It was to end and did not, or the other way round: what happened counts.
            (Some(ms), Served::Never) if ms <= lock_ms => None,
            (None, Served::Made | Served::Told) => Some(millis(since.elapsed())),
            (until, _) => until,
        };
        let ms = ms.map(|ms| self.in_the_schemas_time(ms));
        self.history.borrow_mut().turned_away(Block { ms, by, reply });
        Ok(served)
    }

    /// Waits and asks until the client is served, or until it is clear that waiting does not help.
    async fn waits(&self, worker: &mut Worker<'s>, until: Option<u64>) -> Played<Served> {
        let patience = match until {
            // A result's TTL: nobody waits for that here. That it goes on is seen once more.
            Some(ms) if ms > millis(self.lock_ttl) => Duration::ZERO,
            Some(ms) => Duration::from_millis(ms).saturating_add(self.lock_ttl),
            None => self.lock_ttl.saturating_add(self.lock_ttl / 4),
        };
        let since = Instant::now();
        loop {
            let left = patience.saturating_sub(since.elapsed());
            tokio::time::sleep(left.min(RETRY)).await;
            match worker.begins_again().await? {
                Begun::Acquired => return makes(worker).await,
                Begun::Replayed => return Ok(Served::Told),
                _ if left.is_zero() => return Ok(Served::Never),
                _ => {}
            }
        }
    }
}

/// How a client was served that asked until it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Served {
    /// It got the lock, and the operation was made.
    Made,
    /// It got the stored response, or an error.
    Told,
    Never,
}

async fn makes(worker: &mut Worker<'_>) -> Played<Served> {
    worker.works();
    worker.completes().await?;
    Ok(Served::Made)
}
