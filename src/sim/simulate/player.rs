//! Workers that play a schedule on a real server. Each executes its service's own steps, one call
//! at a time, and everything that happens is added to the history.

use std::time::Instant;

use super::job::{Job, Played};
use super::local_servers::Cluster;
use super::outcome::CallOutcome;
use crate::domain::exploration::{Act, ENDED, NextAction, Position, WorkerProgram};
use crate::domain::record::age::millis;
use crate::domain::record::{Deadline, KeyState, Observation, TimeLeft};
use crate::domain::schema::{Action, Meaning, Schema};
use crate::domain::simulation::{Execution, History, HistoryEvent};
use crate::domain::step::{StepCall, StepKind, StepReply};
use crate::sim::service::{LoadedService, is_no_script, read_content, words};
use crate::sim::stopped_clock::words_at;
use crate::store::{Connection, Packed, StoreError, Writable, pack};

/// A later time than that of the server, although both are rounded down to milliseconds. If a
/// worker's time were behind, a lock of 30 seconds would have 30,001 ms left.
const ROUNDING_MS: u64 = 2;

/// One instance of a service, which serves one request.
pub(super) struct Worker {
    pub(super) name: String,
    /// The index of its service in the program.
    pub(super) service: usize,
    /// Its position in the program.
    pub(super) position: u8,
    pub(super) job: Job,
    /// `None` if it is cut off from Redis.
    connection: Option<Connection>,
    /// The time by its clock, in milliseconds since the epoch.
    now_ms: u64,
}

/// What happened so far, and when it began.
struct Timeline {
    history: History,
    clock: Instant,
}

impl Timeline {
    fn note(&mut self, actor: &str, step: &str, reply: Option<String>, client: Option<&str>) {
        self.history.events.push(HistoryEvent {
            at_us: u64::try_from(self.clock.elapsed().as_micros()).unwrap_or(u64::MAX),
            actor: actor.to_owned(),
            step: step.to_owned(),
            reply,
            client: client.map(str::to_owned),
        });
    }
}

/// The workers of one schedule, all with one idempotency key.
pub(crate) struct Player<'s> {
    pub(super) program: &'s WorkerProgram,
    services: Vec<LoadedService<'s>>,
    pub(super) key: Vec<u8>,
    pub(super) redis_keys: Vec<Vec<u8>>,
    target: Writable,
    /// True on a local server of the schedule's own, whose refusals are part of the story.
    is_private: bool,
    pub(super) cluster: Option<Cluster>,
    pub(super) workers: Vec<Worker>,
    timeline: Timeline,
    /// The time that clients and scripts see, in milliseconds since the epoch; `None` for the
    /// server's own time.
    pub(super) stopped_at: Option<u64>,
    /// Separate from the workers' connections, and not part of the story.
    control: Connection,
}

impl<'s> Player<'s> {
    pub(crate) async fn new(
        program: &'s WorkerProgram,
        key: &[u8],
        target: &Writable,
        is_private: bool,
    ) -> Result<Self, StoreError> {
        let mut control = Connection::connect(target).await?;
        let mut services = Vec::new();
        for schema in &program.services {
            services.push(LoadedService::load(schema, &mut control).await?);
        }
        Ok(Self {
            program,
            services,
            key: key.to_vec(),
            redis_keys: program.services[0].redis_keys(key),
            target: target.clone(),
            is_private,
            cluster: None,
            workers: Vec::new(),
            timeline: Timeline { history: History::default(), clock: Instant::now() },
            stopped_at: None,
            control,
        })
    }

    /// The schema by which the record is read.
    pub(super) fn schema(&self) -> &'s Schema {
        self.services[0].schema
    }

    pub(super) fn lock_key(&self) -> &[u8] {
        &self.redis_keys[self.schema().lock_key_index()]
    }

    pub(super) fn history(&mut self) -> &mut History {
        &mut self.timeline.history
    }

    /// Milliseconds since the beginning.
    pub(super) fn elapsed_ms(&self) -> u64 {
        millis(self.timeline.clock.elapsed())
    }

    /// The time of all clocks, in milliseconds since the epoch.
    pub(super) fn now_ms(&self) -> u64 {
        self.stopped_at.unwrap_or(self.services[0].now_ms() + ROUNDING_MS)
    }

    /// Adds a worker with its own connection, and returns its index.
    pub(super) async fn add_worker(
        &mut self,
        name: &str,
        service: usize,
        job: Job,
    ) -> Result<usize, StoreError> {
        self.workers.push(Worker {
            name: name.to_owned(),
            service,
            position: self.program.starts[service],
            job,
            connection: Some(Connection::connect(&self.target).await?),
            now_ms: self.now_ms(),
        });
        Ok(self.workers.len() - 1)
    }

    pub(super) fn position(&self, worker: usize) -> Position {
        self.program.positions[usize::from(self.workers[worker].position)]
    }

    /// The step of the worker's next call; `None` if it makes none now.
    pub(super) fn next_step(&self, worker: usize) -> Option<StepKind> {
        let NextAction::Call { number, .. } = self.position(worker).action else { return None };
        Some(self.program.calls[usize::from(number)].step)
    }

    /// Makes the worker's next call; `None` if it makes none now.
    pub(super) async fn call(&mut self, worker: usize) -> Played<Option<CallOutcome>> {
        let action = self.position(worker).action;
        let NextAction::Call { number, .. } = action else { return Ok(None) };
        let step = self.program.calls[usize::from(number)];
        let worker = &mut self.workers[worker];
        let service = &self.services[worker.service];
        let call = &step.step.calls(service.schema)[step.index];
        match self.stopped_at {
            Some(now_ms) => worker.now_ms = now_ms,
            // A lock with a contained expiry is compared with the worker's own time. Later calls
            // may compare the lock with the value that begin wrote.
            None if step.step == StepKind::Begin && step.index == 0 => {
                worker.now_ms = service.now_ms() + ROUNDING_MS;
            }
            None => {}
        }
        let inputs = worker.job.request(service.schema, &self.key, worker.now_ms);
        let sent = StepCall { inputs: &inputs, call, index: step.index };
        if let Some(cluster) = &mut self.cluster {
            cluster.serve_call(sent.redis_keys(), &self.redis_keys).await?;
        }
        let outcome = match &mut worker.connection {
            None => CallOutcome::unreachable(),
            Some(connection) => {
                let packed = match self.stopped_at {
                    Some(now_ms) => pack(words_at(sent, now_ms)),
                    None => service.pack(sent),
                };
                let mut reply = connection.ask(&packed).await;
                if matches!(&reply, Ok(reply) if is_no_script(reply))
                    && matches!(call.action, Action::Script { .. })
                {
                    let forgotten = Some("NOSCRIPT: sends it whole".to_owned());
                    let what = "sends the script by its digest";
                    self.timeline.note(&worker.name, what, forgotten, None);
                    reply = connection.ask(&pack(sent.words())).await;
                }
                match reply {
                    Ok(reply) => CallOutcome::of_reply(&inputs, call, &reply),
                    // If the operator's server refuses a call, this is not evidence about the
                    // schema. If a private server refuses it, this is part of the story.
                    Err(error)
                        if error.lost_the_reply() || error.is_permission() || !self.is_private =>
                    {
                        return Err(error.into());
                    }
                    Err(error) => CallOutcome::of_store_error(&error),
                }
            }
        };
        worker.position = action.follow(outcome.meaning);
        let sees = outcome.client_sees(&worker.job.response);
        let what = format!("{} ({})", verb(step.step), call.name());
        self.timeline.note(&worker.name, &what, Some(outcome.described()), sees.as_deref());
        Ok(Some(outcome))
    }

    /// Makes the calls of the worker's step, at most this many, until a reply decides. Returns the
    /// last outcome; `None` if the worker makes no call now.
    pub(super) async fn step(
        &mut self,
        worker: usize,
        at_most: usize,
    ) -> Played<Option<CallOutcome>> {
        let mut last = None;
        for _ in 0..at_most {
            let Some(outcome) = self.call(worker).await? else { break };
            let decides = outcome.meaning != Some(Meaning::Next);
            last = Some(outcome);
            if decides {
                break;
            }
        }
        Ok(last)
    }

    /// The worker's handler succeeds, with or without the effect, if the worker is there.
    pub(super) fn execute(&mut self, number: usize, effect: bool) {
        let NextAction::Effect { then } = self.position(number).action else { return };
        let worker = &mut self.workers[number];
        worker.position = then;
        let operation = worker.job.client_request.operation;
        let schema = self.services[worker.service].schema;
        let what = if effect {
            worker.job.succeed(schema, &worker.name);
            match self.program.is_lock_alone {
                true => "enters the critical section".to_owned(),
                false => format!("executes the {operation}"),
            }
        } else {
            worker.job.succeed_without_effect(schema, &worker.name);
            format!("requests the {operation}, which has no effect")
        };
        self.timeline.note(&worker.name, &what, None, None);
        self.count_execution(number, effect);
    }

    /// The worker fails before its effect, fails after it, or gives up, if it can do that now.
    pub(super) fn fail(&mut self, number: usize, act: Act) {
        let position = self.position(number);
        let (then, what, sees) = match act {
            Act::Fail(_) => (position.fails_to, "fails: the provider is unavailable", "500"),
            Act::LateFail(_) => (
                position.late_fails_to,
                "fails after its effect: the provider's answer is lost",
                "500",
            ),
            _ => (position.gives_up_to, "gives up before the effect", "an error"),
        };
        let Some(then) = then else { return };
        let worker = &mut self.workers[number];
        worker.position = then;
        worker.job.fail();
        self.timeline.note(&worker.name, what, None, Some(sees));
        if !matches!(act, Act::LateFail(_)) {
            self.count_execution(number, false);
        }
    }

    fn count_execution(&mut self, number: usize, effect: bool) {
        let worker = &self.workers[number];
        let schema = self.services[worker.service].schema;
        self.timeline.history.executions.push(Execution {
            worker: worker.name.clone(),
            operation: worker.job.client_request.operation,
            effect,
            response: worker.job.request(schema, &self.key, worker.now_ms).replayed(),
        });
    }

    /// The worker sends its request again.
    pub(super) fn begin_again(&mut self, worker: usize) {
        let worker = &mut self.workers[worker];
        worker.position = self.program.starts[worker.service];
    }

    /// The worker continues with its effect, whatever begin replied, and without a renewal.
    pub(super) fn skip_to_effect(&mut self, worker: usize) {
        self.begin_again(worker);
        while let NextAction::Call { then, .. } = self.position(worker).action {
            self.workers[worker].position = then;
        }
    }

    /// The worker crashes: it sends nothing more.
    pub(super) fn crash(&mut self, worker: usize) {
        let worker = &mut self.workers[worker];
        worker.position = ENDED;
        self.timeline.note(&worker.name, "crashes", None, None);
    }

    /// From now on, the worker cannot reach Redis.
    pub(super) fn cut_off(&mut self, worker: usize) {
        let worker = &mut self.workers[worker];
        worker.connection = None;
        let what = format!("{} is cut off from Redis", worker.name);
        self.timeline.note("network", &what, None, None);
    }

    /// The worker stores its result with a plain SET, as an older release. A lock with its own Redis
    /// key remains.
    pub(super) async fn set_result(&mut self, worker: usize) -> Played {
        let worker = &self.workers[worker];
        let schema = self.services[worker.service].schema;
        let result = worker.job.request(schema, &self.key, worker.now_ms).result_value();
        let redis_key = &self.redis_keys[schema.result_key_index()];
        let ttl = schema.result_ttl.as_secs().to_string();
        let set = pack([b"SET", &redis_key[..], &result, b"EX", ttl.as_bytes()]);
        let reply = words(&self.control.ask(&set).await?);
        self.timeline.note(&worker.name, "sets its result", Some(reply), None);
        Ok(())
    }

    /// Reads the record's Redis keys.
    pub(super) async fn observe(&mut self) -> Played<Observation> {
        let mut keys = Vec::new();
        for redis_key in &self.redis_keys {
            if let Some(cluster) = &mut self.cluster {
                cluster.serve_key(redis_key).await?;
            }
            let reply = self.control.ask(&pack([b"PTTL", &redis_key[..]])).await?;
            let StepReply::Integer(pttl) = reply else { continue };
            // PTTL is read first. A key that expires in between is then absent, and not a key
            // without a TTL.
            let content = read_content(&mut self.control, redis_key).await?;
            let left = TimeLeft::from_pttl(pttl);
            keys.push(KeyState::new(redis_key, content, left, Deadline::Unknown));
        }
        Ok(Observation { server_ms: Some(self.now_ms()), atomic: false, keys })
    }

    /// Sends a request that is not part of the story.
    pub(super) async fn send(&mut self, request: &Packed) -> Result<StepReply, StoreError> {
        self.control.ask(request).await
    }

    /// From now on, new workers use this server.
    pub(super) async fn move_to(&mut self, target: &Writable) -> Result<(), StoreError> {
        self.control = Connection::connect(target).await?;
        self.target = target.clone();
        Ok(())
    }

    /// Adds an event: who does what, the reply of Redis, and what a client gets.
    pub(super) fn note(
        &mut self,
        actor: &str,
        what: &str,
        reply: Option<String>,
        client: Option<&str>,
    ) {
        self.timeline.note(actor, what, reply, client);
    }

    /// In a cluster, the slots of the record's Redis keys, unless they are all in one slot.
    pub(super) fn slots(&self) -> Option<String> {
        self.cluster.as_ref()?.slots(&self.redis_keys)
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
