//! Clients of a scenario: each requests an operation from a worker of the service, once or until it
//! is served.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::run::ScenarioRun;
use super::story::{BeginOutcome, ClientRequest, LockLifetime, ScenarioResult};
use super::worker::ScenarioWorker;
use crate::domain::record::age::millis;
use crate::domain::schema::Meaning;
use crate::domain::simulation::{Block, ClientAnswer};
use crate::store::{Connection, Writable};

/// How long a client waits after a rejection before it asks again. It is a small part of the lock
/// TTLs of the stories, which are a second or longer, so the time until a client is served is
/// nearly exact.
const RETRY_AFTER: Duration = Duration::from_millis(25);

impl<'s> ScenarioRun<'s> {
    /// A worker of the service with its own connection.
    pub(super) async fn worker(
        self: &Rc<Self>,
        name: &str,
        client_request: ClientRequest,
        lifetime: LockLifetime,
    ) -> ScenarioResult<ScenarioWorker<'s>> {
        self.worker_at(&self.target, name, client_request, lifetime).await
    }

    /// A worker of the service with its own connection to another server.
    pub(super) async fn worker_at(
        self: &Rc<Self>,
        target: &Writable,
        name: &str,
        client_request: ClientRequest,
        lifetime: LockLifetime,
    ) -> ScenarioResult<ScenarioWorker<'s>> {
        let connection = Connection::connect(target).await?;
        Ok(ScenarioWorker::new(Rc::clone(self), name, client_request, lifetime, connection))
    }

    /// A client asks once. If it gets the lock, the operation is executed.
    pub(super) async fn request_once(
        self: &Rc<Self>,
        client: &str,
        client_request: ClientRequest,
    ) -> ScenarioResult {
        let mut worker = self.worker(client, client_request, LockLifetime::Long).await?;
        match worker.begin().await? {
            BeginOutcome::Acquired => {
                work_and_complete(&mut worker).await?;
            }
            BeginOutcome::Fails(why) | BeginOutcome::Unreachable(why) => {
                self.note_client_answer(client_request, ClientAnswer::Error(why));
            }
            BeginOutcome::Conflict(_) | BeginOutcome::Replayed | BeginOutcome::Mismatch(_) => {}
        }
        Ok(())
    }

    /// A client asks repeatedly until it is served. The time until then is the time that a client
    /// waits although no worker is running. After a first execution the client asks once more, as a
    /// client does that lost the response.
    pub(super) async fn retry_until_served(
        self: &Rc<Self>,
        client: &str,
        client_request: ClientRequest,
    ) -> ScenarioResult {
        let served = self.serve(client, client_request).await?;
        let effects = self.history.borrow().effects_of(client_request.operation);
        if served == Served::Executed && effects == 1 {
            self.serve(&format!("{client}, again"), client_request).await?;
        }
        Ok(())
    }

    async fn serve(
        self: &Rc<Self>,
        client: &str,
        client_request: ClientRequest,
    ) -> ScenarioResult<Served> {
        let mut worker = self.worker(client, client_request, LockLifetime::Short).await?;
        // The verdict reports the client's first answer, whatever it gets while it waits.
        let (by, reply) = match worker.begin().await? {
            BeginOutcome::Acquired => return work_and_complete(&mut worker).await,
            BeginOutcome::Replayed => return Ok(Served::Answered),
            BeginOutcome::Unreachable(why) => {
                self.note_client_answer(client_request, ClientAnswer::Error(why));
                return Ok(Served::Answered);
            }
            BeginOutcome::Conflict(reply) => (Meaning::Conflict, reply),
            BeginOutcome::Mismatch(reply) => (Meaning::Mismatch, reply),
            BeginOutcome::Fails(reply) => (Meaning::Fail, reply),
        };
        let lease_ms = self.fixed_lease_ms().await?;
        let predicted_ms = self.predict_block().await?;
        // The client waits for the lock to expire, so that an expired lock does not make the
        // scenario late.
        self.let_lock_expire();
        let since = Instant::now();
        let served = self.wait_until_served(&mut worker, predicted_ms).await?;
        let ms = match (predicted_ms, served) {
            // If the prediction was wrong, the observed result counts.
            (Some(ms), Served::Never) if ms <= millis(self.lock_ttl) => None,
            (None, Served::Executed | Served::Answered) => Some(millis(since.elapsed())),
            (predicted_ms, _) => predicted_ms,
        };
        // Reported in the schema's own TTLs, because the simulation shortens them.
        let ms = ms.map(|ms| self.to_time_of_schema(ms).min(lease_ms.unwrap_or(u64::MAX)));
        self.history.borrow_mut().note_block(Block { ms, by, reply });
        Ok(served)
    }

    /// Waits and asks until the client is served, or until it is clear that waiting does not help.
    async fn wait_until_served(
        &self,
        worker: &mut ScenarioWorker<'s>,
        predicted_ms: Option<u64>,
    ) -> ScenarioResult<Served> {
        let patience = match predicted_ms {
            // This is a result's TTL, for which the simulation does not wait. One more request
            // checks the rejection.
            Some(ms) if ms > millis(self.lock_ttl) => Duration::ZERO,
            Some(ms) => Duration::from_millis(ms).saturating_add(self.lock_ttl),
            None => self.lock_ttl.saturating_add(self.lock_ttl / 4),
        };
        let since = Instant::now();
        loop {
            // One more request after the time is over, because the lock may have expired during the
            // last pause.
            let left = patience.saturating_sub(since.elapsed());
            tokio::time::sleep(left.min(RETRY_AFTER)).await;
            match worker.begin_again().await? {
                BeginOutcome::Acquired => return work_and_complete(worker).await,
                BeginOutcome::Replayed => return Ok(Served::Answered),
                _ if left.is_zero() => return Ok(Served::Never),
                _ => {}
            }
        }
    }
}

/// How a client was finally served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Served {
    /// It got the lock, and the operation was executed.
    Executed,
    /// It got the stored response, or an error.
    Answered,
    Never,
}

async fn work_and_complete(worker: &mut ScenarioWorker<'_>) -> ScenarioResult<Served> {
    if !worker.work().await? {
        return Ok(Served::Answered);
    }
    worker.complete().await?;
    Ok(Served::Executed)
}
