//! One instance of the service that serves one request: the calls that it sends, and the answers
//! that its client gets.

use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::run::{RecordOwners, ScenarioRun};
use super::story::{BeginOutcome, ClientRequest, LONG, LockLifetime, PAYMENT, ScenarioResult};
use super::worker_calls::{CallOutcome, WorkerCalls};
use crate::domain::record::{Observation, Response, decode};
use crate::domain::schema::{Call, Meaning, PayloadUse, Schema, State};
use crate::domain::simulation::{ClientAnswer, Execution};
use crate::domain::step::{StepInputs, StepKind, WorkerSteps};
use crate::sim::service::words;
use crate::sim::test_keys::TEST_KEYS_LIVE;
use crate::store::{Connection, pack};

/// The data of a worker's request, and its response so far.
pub(crate) struct Job {
    owner: String,
    client_request: ClientRequest,
    /// The text that is sent, in seconds.
    lock_ttl: String,
    response: Response,
    error: Option<String>,
}

/// The fingerprint that the service computes of a request.
fn fingerprint(schema: &Schema, request: ClientRequest) -> &'static str {
    // That of something that another payload does not change.
    if schema.service.payload == Some(PayloadUse::Ignored) {
        return PAYMENT.fingerprint;
    }
    request.fingerprint
}

impl Job {
    /// A job without a response. `lock_ttl` is the text that is sent, in seconds.
    pub(crate) fn new(owner: &str, client_request: ClientRequest, lock_ttl: String) -> Self {
        let response = Response::default();
        Self { owner: owner.to_owned(), client_request, lock_ttl, response, error: None }
    }

    /// The handler succeeds, and the operation has its effect.
    pub(crate) fn succeed(&mut self, schema: &Schema, by: &str) {
        let body = match schema.service.sample_body_of(by) {
            Some(sample) => sample,
            None => format!(r#"{{"made":"{}","by":"{by}"}}"#, self.client_request.operation),
        };
        self.respond(201, body);
    }

    /// The handler succeeds, but the operation has no effect.
    fn succeed_without_effect(&mut self, schema: &Schema, by: &str) {
        let made_up = format!(r#"{{"made":null,"by":"{by}"}}"#);
        self.respond(200, schema.service.sample_body_of(by).unwrap_or(made_up));
    }

    /// The handler fails without effect.
    pub(crate) fn fail(&mut self) {
        self.error = Some("provider unavailable".to_owned());
        self.respond(500, String::new());
    }

    fn respond(&mut self, status: i64, body: String) {
        let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        self.response =
            Response { status: Some(status), headers, body: body.into_bytes(), whole: true };
    }

    /// The job as a request of this schema's service. `now_ms` is in milliseconds since the epoch.
    pub(crate) fn request<'a>(
        &'a self,
        schema: &'a Schema,
        key: &'a [u8],
        now_ms: u64,
    ) -> StepInputs<'a> {
        StepInputs {
            fingerprint: fingerprint(schema, self.client_request),
            error: self.error.as_deref(),
            now_ms,
            lock_ttl: Some(&self.lock_ttl),
            ..StepInputs::new(schema, key, &self.owner, &self.response)
        }
    }
}

/// One instance of the service, which serves one request.
pub(super) struct ScenarioWorker<'s> {
    calls: WorkerCalls<'s>,
    job: Job,
    /// The time by the worker's clock when it began, in milliseconds since the epoch.
    now_ms: u64,
    /// How long its lock certainly lives, if the story relies on that.
    lock_lives: Option<Duration>,
    /// True if its lock was lost before its effect, so that it does nothing more.
    has_stopped: bool,
}

impl<'s> ScenarioWorker<'s> {
    pub(super) fn new(
        run: Rc<ScenarioRun<'s>>,
        name: &str,
        client_request: ClientRequest,
        lifetime: LockLifetime,
        connection: Connection,
    ) -> Self {
        let lock_ttl = match lifetime {
            LockLifetime::Short => seconds_up(run.lock_ttl),
            LockLifetime::Long => seconds_up(LONG),
            LockLifetime::OfSchema => seconds_up(run.schema().lock_ttl),
            LockLifetime::Raw(text) => text.to_owned(),
        };
        let lock_lives = match lifetime {
            LockLifetime::Short => Some(run.lock_ttl),
            LockLifetime::Long | LockLifetime::OfSchema => None,
            LockLifetime::Raw(text) => positive_seconds(text),
        };
        // Each worker has its own owner ID, so that a lock shows its owner even if workers share a
        // name.
        let job = Job::new(&Uuid::new_v4().to_string(), client_request, lock_ttl);
        let now_ms = run.now_ms;
        let calls = WorkerCalls::new(run, name, connection);
        Self { calls, job, now_ms, lock_lives, has_stopped: false }
    }

    /// The same worker with this owner ID.
    pub(super) fn with_owner(mut self, owner: String) -> Self {
        self.job.owner = owner;
        self
    }

    fn run(&self) -> &Rc<ScenarioRun<'s>> {
        &self.calls.run
    }

    fn schema(&self) -> &'s Schema {
        self.calls.run.schema()
    }

    fn request(&self) -> StepInputs<'_> {
        self.job.request(self.schema(), &self.calls.run.key, self.now_ms)
    }

    /// Executes the begin step, and adds its calls to the history.
    pub(super) async fn begin(&mut self) -> ScenarioResult<BeginOutcome> {
        self.calls.forget_previous();
        self.begin_again().await
    }

    /// Begins; true if the worker acquired the lock.
    pub(super) async fn acquire_lock(&mut self) -> ScenarioResult<bool> {
        Ok(matches!(self.begin().await?, BeginOutcome::Acquired))
    }

    /// Begins once more. The history shows only the calls whose outcome differs from before.
    pub(super) async fn begin_again(&mut self) -> ScenarioResult<BeginOutcome> {
        match self.begin_with_calls(0..self.begin_calls()).await? {
            Some(outcome) => Ok(outcome),
            None => Ok(BeginOutcome::Fails("no reply decided".to_owned())),
        }
    }

    /// The number of calls in the begin step.
    pub(super) fn begin_calls(&self) -> usize {
        self.schema().begin_calls().len()
    }

    /// Makes some calls of the begin step; `None` if the calls after them decide.
    pub(super) async fn begin_with_calls(
        &mut self,
        calls: Range<usize>,
    ) -> ScenarioResult<Option<BeginOutcome>> {
        // A lock with a contained expiry is compared with the worker's own time, which must be
        // current.
        if calls.start == 0 && self.schema().contains_expiry() {
            self.now_ms = self.run().time_ms();
        }
        // Taken before the call, because the lock's TTL starts when Redis executes the call.
        let since = Instant::now();
        let Some(outcome) =
            self.execute(verb(StepKind::Begin), &self.schema().begin_calls()[calls]).await?
        else {
            return Ok(None);
        };
        let reply = match outcome {
            CallOutcome::Replied(reply) => reply,
            CallOutcome::Error(why) => return Ok(Some(BeginOutcome::Fails(why))),
            CallOutcome::Unreachable(why) => return Ok(Some(BeginOutcome::Unreachable(why))),
        };
        let begun = match reply.meaning {
            Meaning::Acquired => {
                self.note_held_lock(since);
                self.run().owners.borrow_mut().lock = Some(self.calls.name.clone());
                BeginOutcome::Acquired
            }
            Meaning::Conflict => BeginOutcome::Conflict(reply.words),
            Meaning::Mismatch => BeginOutcome::Mismatch(reply.words),
            Meaning::Replay => {
                self.run().note_client_answer(
                    self.job.client_request,
                    ClientAnswer::Done(reply.response),
                );
                BeginOutcome::Replayed
            }
            _ => BeginOutcome::Fails(reply.words),
        };
        Ok(Some(begun))
    }

    /// Works as every worker does: it renews its lock if its service can, and has its effect. False
    /// if the lock is lost, so that the worker stops.
    pub(super) async fn work(&mut self) -> ScenarioResult<bool> {
        if !self.renew_lock().await? {
            return Ok(false);
        }
        self.have_effect();
        Ok(true)
    }

    /// The handler succeeds, and its effect is counted. A story that disturbs the worker around
    /// its effect calls this without a renewal, as if the disturbance came right after one.
    pub(super) fn have_effect(&mut self) {
        let schema = self.schema();
        self.job.succeed(schema, &self.calls.name);
        self.count_execution(true);
        self.calls.note(&format!("executes the {}", self.job.client_request.operation), None, None);
    }

    /// The handler requests the operation, which has no effect.
    pub(super) fn work_without_effect(&mut self) {
        let schema = self.schema();
        self.job.succeed_without_effect(schema, &self.calls.name);
        self.count_execution(false);
        let what =
            format!("requests the {}, which has no effect", self.job.client_request.operation);
        self.calls.note(&what, None, None);
    }

    fn count_execution(&mut self, effect: bool) {
        let execution = Execution {
            worker: self.calls.name.clone(),
            operation: self.job.client_request.operation,
            effect,
            response: self.request().replayed(),
        };
        self.run().history.borrow_mut().executions.push(execution);
    }

    /// Executes the step that the service has between begin and the effect; false if the worker
    /// does not own the lock any more, so that it stops.
    pub(super) async fn renew_lock(&mut self) -> ScenarioResult<bool> {
        let Some(step) = WorkerSteps::of(self.schema()).before_effect() else { return Ok(true) };
        let since = Instant::now();
        if self.execute_step(step).await? {
            self.note_held_lock(since);
            return Ok(true);
        }
        self.has_stopped = true;
        self.calls.note("stops: the lock is not its own", None, Some("an error".to_owned()));
        Ok(false)
    }

    /// Executes a whole step; true if the reply is the one after which the worker goes on.
    async fn execute_step(&mut self, step: StepKind) -> ScenarioResult<bool> {
        let outcome = self.execute_watched(step, step.calls(self.schema())).await?;
        Ok(meaning(outcome.as_ref()) == Some(step.wanted()))
    }

    /// Executes calls of a step, and records whether they removed or replaced the lock or result of
    /// another worker.
    async fn execute_watched(
        &mut self,
        step: StepKind,
        calls: &[Call],
    ) -> ScenarioResult<Option<CallOutcome>> {
        let run = Rc::clone(self.run());
        // A server that died in the story has no record.
        let before = run.observe().await.ok();
        let owners = run.owners.borrow().clone();
        let outcome = self.execute(verb(step), calls).await?;
        if let (Some(before), Ok(after)) = (before, run.observe().await) {
            self.note_overwritten(&before, &after, owners);
        }
        if meaning(outcome.as_ref()) == Some(Meaning::Stored) {
            run.owners.borrow_mut().result = Some(self.calls.name.clone());
        }
        Ok(outcome)
    }

    fn note_overwritten(&self, before: &Observation, after: &Observation, owners: RecordOwners) {
        let schema = self.schema();
        for (key_index, reading) in decode::decode_all(schema, before).iter().enumerate() {
            let is_same = before.keys[key_index].content == after.keys[key_index].content;
            let Some(value) = reading.decoded() else { continue };
            if is_same || reading.past_expiry().is_some() {
                continue;
            }
            let (what, owner) = match schema.values[value.format].state {
                State::InProgress => ("lock", &owners.lock),
                _ => ("result", &owners.result),
            };
            let Some(owner) = owner else { continue };
            if *owner != self.calls.name {
                let what = format!("{} removed or replaced the {what} of {owner}", self.calls.name);
                self.run().history.borrow_mut().overwritten.get_or_insert(what);
            }
        }
    }

    /// Executes the complete step, unless the worker has stopped; true if the result is stored.
    pub(super) async fn complete(&mut self) -> ScenarioResult<bool> {
        if self.has_stopped {
            return Ok(false);
        }
        self.execute_step(StepKind::Complete).await
    }

    /// Makes some calls of the complete step; true if the result is stored.
    pub(super) async fn complete_calls(&mut self, calls: Range<usize>) -> ScenarioResult<bool> {
        let calls = &self.schema().complete_calls()[calls];
        let outcome = self.execute_watched(StepKind::Complete, calls).await?;
        Ok(meaning(outcome.as_ref()) == Some(Meaning::Stored))
    }

    /// Releases the lock, if the service has a release step; true if the lock was deleted.
    pub(super) async fn release(&mut self) -> ScenarioResult<bool> {
        if self.schema().release.is_none() {
            return Ok(false);
        }
        self.execute_step(StepKind::Release).await
    }

    /// The handler fails without effect. The service then stores the error, releases the lock, or
    /// keeps it.
    pub(super) async fn fail(&mut self) -> ScenarioResult {
        self.fail_handler();
        if let Some(step) = WorkerSteps::of(self.schema()).after_failure() {
            self.execute_step(step).await?;
        }
        Ok(())
    }

    /// The handler fails without effect.
    pub(super) fn fail_handler(&mut self) {
        self.job.fail();
        self.count_execution(false);
        self.calls.note("fails: the provider is unavailable", None, Some("500".to_owned()));
    }

    /// The handler fails after its effect, for example because the provider's answer is lost.
    pub(super) fn fail_after_effect(&mut self) {
        self.job.fail();
        self.calls.note(
            "fails after its effect: the provider's answer is lost",
            None,
            Some("500".to_owned()),
        );
    }

    /// The worker gives its request up before the effect, for example because the service stops.
    pub(super) fn give_up(&mut self) {
        self.job.fail();
        self.count_execution(false);
        self.calls.note("gives up before the effect", None, Some("an error".to_owned()));
    }

    /// Forgets the previous step, so that the history shows all calls of the next one.
    pub(super) fn forget_previous(&mut self) {
        self.calls.forget_previous();
    }

    /// Makes one call of one step; `None` if the next call decides.
    pub(super) async fn make_call(
        &mut self,
        step: StepKind,
        index: usize,
    ) -> ScenarioResult<Option<CallOutcome>> {
        if let Some(now_ms) = self.run().stopped_at() {
            self.now_ms = now_ms;
        }
        let calls = step.calls(self.schema());
        self.execute(verb(step), calls.get(index..=index).unwrap_or_default()).await
    }

    /// The worker crashes: it sends nothing more.
    pub(super) fn crash(self) {
        self.calls.note("crashes", None, None);
    }

    /// From now on, the worker cannot reach Redis.
    pub(super) fn disconnect(&mut self) {
        self.calls.connection = None;
        self.run().note(
            "network",
            &format!("{} is cut off from Redis", self.calls.name),
            None,
            None,
        );
    }

    /// Records that a lock which expires in the story was requested at `since` and acquired.
    fn note_held_lock(&self, since: Instant) {
        if let Some(lives) = self.lock_lives {
            self.run().lock_is_held(since, lives);
        }
    }

    /// Executes calls of a step. The outcome counts only if the lock is still held that the story
    /// assumes to be held.
    async fn execute(&mut self, what: &str, calls: &[Call]) -> ScenarioResult<Option<CallOutcome>> {
        let run = Rc::clone(&self.calls.run);
        let request = self.job.request(run.schema(), &run.key, self.now_ms);
        let outcome = self.calls.execute(what, calls, &request).await?;
        // A lock that expired too early would make any outcome wrong. The scenario is repeated with
        // longer TTLs.
        run.check_in_time()?;
        Ok(outcome)
    }
}

/// What workers of other releases write, with plain commands.
impl ScenarioWorker<'_> {
    /// Acquires the lock with SET NX, without a TTL.
    pub(super) async fn set_lock_without_ttl(&self) -> ScenarioResult {
        let reply = self
            .set(self.schema().lock_key_index(), &self.request().lock_value(), &[b"NX"])
            .await?;
        self.calls.note("takes the lock with SET NX", Some(reply), None);
        Ok(())
    }

    /// Acquires the lock as the service of another schema with the same Redis keys does.
    pub(super) async fn set_lock_of(&self, other: &Schema) -> ScenarioResult {
        let lock = StepInputs { schema: other, ..self.request() }.lock_value();
        let since = Instant::now();
        let reply = self
            .set(self.schema().lock_key_index(), &lock, &[b"EX", self.job.lock_ttl.as_bytes()])
            .await?;
        self.note_held_lock(since);
        self.calls.note(&format!("takes the lock as {} does", other.name), Some(reply), None);
        Ok(())
    }

    /// Executes the operation, and stores a result as the service of another schema with the same
    /// Redis keys does.
    pub(super) async fn set_result_of(&mut self, other: &Schema) -> ScenarioResult {
        self.have_effect();
        let request = StepInputs { schema: other, ..self.request() };
        let result = request.result_value();
        // `work` recorded the response as this schema replays it, but the stored result is that of
        // the other schema.
        if let Some(execution) = self.run().history.borrow_mut().executions.last_mut() {
            execution.response = request.replayed();
        }
        let ttl = seconds(other.result_ttl.min(TEST_KEYS_LIVE));
        let reply = self.set(self.schema().result_key_index(), &result, &[b"EX", &ttl]).await?;
        self.run().has_result_of(other);
        self.calls.note(&format!("sets the result of {}", other.name), Some(reply), None);
        Ok(())
    }

    /// Stores its result with a plain SET. A lock with its own Redis key remains.
    pub(super) async fn set_result(&self) -> ScenarioResult {
        let result = self.request().result_value();
        let ttl = seconds(self.schema().result_ttl);
        let reply = self.set(self.schema().result_key_index(), &result, &[b"EX", &ttl]).await?;
        self.calls.note("sets its result", Some(reply), None);
        Ok(())
    }

    /// Sets one of the record's Redis keys, and returns the reply in words.
    async fn set(
        &self,
        key_index: usize,
        value: &[u8],
        options: &[&[u8]],
    ) -> ScenarioResult<String> {
        let redis_key = self.schema().keys[key_index].template.redis_key(&self.run().key);
        let mut command = vec![&b"SET"[..], &redis_key, value];
        command.extend(options);
        Ok(words(&self.run().send(&pack(command)).await?))
    }
}

/// What the worker does in a step, as the history says it.
fn verb(step: StepKind) -> &'static str {
    match step {
        StepKind::Begin => "begins",
        StepKind::Renew => "renews its lock",
        StepKind::Complete | StepKind::StoreFailure => "completes",
        StepKind::Release => "releases",
    }
}

fn meaning(outcome: Option<&CallOutcome>) -> Option<Meaning> {
    outcome?.meaning()
}

/// Whole seconds, rounded up, so that a lock's TTL is never 0.
fn seconds_up(ttl: Duration) -> String {
    ttl.as_millis().div_ceil(1_000).to_string()
}

fn seconds(ttl: Duration) -> Vec<u8> {
    ttl.as_secs().to_string().into_bytes()
}

/// The duration of a text with a number of seconds; `None` if it is not a number above 0.
fn positive_seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    if seconds > 0.0 { Duration::try_from_secs_f64(seconds).ok() } else { None }
}
