//! Plays one take of a scenario: the acts of its row, one after another, while the TTLs pass.

use std::time::{Duration, Instant};

use fastrand::Rng;
use uuid::Uuid;

use super::job::{Aborted, ClientRequest, Job, OTHER_PAYMENT, PAYMENT, Played};
use super::outcome::CallOutcome;
use super::player::Player;
use super::redis_faults::{self, Replicas};
use crate::domain::exploration::{Act, NextAction};
use crate::domain::record::age::millis;
use crate::domain::record::{Decoded, Observation, Reading, TimeLeft, decode};
use crate::domain::schema::{Meaning, OnHangUp, Schema, State, WithoutRedis};
use crate::domain::simulation::{ActKind, Block, ClientAnswer, History, ScenarioAct, Take};
use crate::domain::step::{StepKind, next_request};
use crate::store::pack;

/// How long a client waits after a rejection before it asks again. It is a small part of the lock
/// TTLs of the scenarios, which are a second or longer.
const RETRY_AFTER: Duration = Duration::from_millis(25);

/// One take while it is played.
pub(super) struct PlayedTake<'s> {
    pub(super) player: Player<'s>,
    pub(super) take: &'static Take,
    /// How many calls a part of a step has.
    pub(super) calls: usize,
    /// The seed of the random numbers.
    pub(super) seed: u64,
    /// The schemas of the services, with their own TTLs, in which times are reported. A second one
    /// is that of the first worker.
    pub(super) own: Vec<&'s Schema>,
    /// The TTL of locks.
    pub(super) lock_ttl: Duration,
    pub(super) replicas: Option<Replicas>,
    /// The index of each worker of the row. The clients are workers of the player, too.
    pub(super) workers: Vec<usize>,
    /// True if a client has requested the operation.
    pub(super) has_client: bool,
    /// Until when the last acquired lock is certainly held; `None` if it may expire.
    pub(super) held_until: Option<Instant>,
    /// The worker that took the lock; `None` if no worker did.
    pub(super) lock_of: Option<usize>,
    /// The worker that stored the result.
    pub(super) result_of: Option<usize>,
}

impl PlayedTake<'_> {
    /// Plays the acts, and returns what happened.
    pub(super) async fn play(mut self) -> Played<History> {
        for act in &self.take.acts {
            if !self.apply(*act).await? {
                break;
            }
        }
        Ok(std::mem::take(self.player.history()))
    }

    /// Applies one act; false if the take ends with it.
    async fn apply(&mut self, act: ScenarioAct) -> Played<bool> {
        let ScenarioAct { kind, number } = act;
        let worker = self.worker(if kind == ActKind::Crowd { 0 } else { number }).await?;
        match kind {
            ActKind::Begin | ActKind::Step => {
                let fails = self.step_and_answer(worker, usize::MAX).await?;
                return Ok(kind == ActKind::Step || !fails);
            }
            ActKind::Part => {
                self.step_and_answer(worker, self.calls).await?;
            }
            ActKind::Ready => self.get_ready(worker).await?,
            ActKind::Effect => self.work(worker, true).await?,
            ActKind::NoEffect => self.work(worker, false).await?,
            ActKind::Rush => {
                if self.player.next_step(worker) == Some(StepKind::Renew) {
                    self.player.skip_to_effect(worker);
                }
                self.player.execute(worker, true);
            }
            ActKind::Fail => self.player.fail(worker, Act::Fail(0)),
            ActKind::GiveUp => self.player.fail(worker, Act::GiveUp(0)),
            ActKind::Crash => self.player.crash(worker),
            ActKind::CutOff => self.player.cut_off(worker),
            ActKind::HangUp => self.hang_up(worker).await?,
            ActKind::OldResult => self.player.set_result(worker).await?,
            ActKind::Expiry => self.wait_for_expiry("lock").await?,
            ActKind::ResultExpiry => self.wait_for_expiry("result").await?,
            ActKind::Delay => tokio::time::sleep(self.lock_ttl / 4).await,
            ActKind::Persist => {
                let redis_key = self.player.lock_key().to_vec();
                self.player.send(&pack([b"PERSIST", &redis_key[..]])).await?;
                self.player.note("world", "the lock loses its TTL", None, None);
            }
            ActKind::Evict => redis_faults::fill(&mut self.player).await?,
            ActKind::Failover => {
                if let Some(replicas) = &mut self.replicas {
                    replicas.fail_over(&mut self.player).await?;
                }
            }
            ActKind::Flush => {
                self.player.send(&pack(["SCRIPT", "FLUSH"])).await?;
                self.player.note("world", "the scripts are flushed", None, None);
            }
            ActKind::Crowd => self.crowd(number).await?,
            ActKind::Next => {
                self.has_client = true;
                self.request("a retry", PAYMENT).await?;
            }
            ActKind::Other => self.request("another client", OTHER_PAYMENT).await?,
            ActKind::Retry => self.retry().await?,
        }
        Ok(true)
    }

    /// The index of a worker of the row, which is added if it is new.
    async fn worker(&mut self, number: usize) -> Played<usize> {
        while self.workers.len() <= number {
            let is_first = self.workers.is_empty();
            // The first worker belongs to the other schema, if there is one.
            let service = if is_first { self.own.len() - 1 } else { 0 };
            let name = format!("worker {}", self.workers.len() + 1);
            let worker = self.add(&name, service, PAYMENT).await?;
            if is_first && let Some(lock_ttl) = &self.take.lock_ttl {
                self.player.workers[worker].job.lock_ttl.clone_from(lock_ttl);
            }
            self.workers.push(worker);
        }
        Ok(self.workers[number])
    }

    async fn add(&mut self, name: &str, service: usize, request: ClientRequest) -> Played<usize> {
        // Each worker has its own owner ID, so that a lock shows its owner.
        let owner = Uuid::new_v4().to_string();
        let job = Job::new(&owner, request, self.lock_ttl.as_secs().to_string());
        Ok(self.player.add_worker(name, service, job).await?)
    }

    /// Makes the calls of the worker's step, at most this many, and returns the last outcome.
    async fn step(&mut self, worker: usize, at_most: usize) -> Played<Option<CallOutcome>> {
        let Some(step) = self.player.next_step(worker) else { return Ok(None) };
        let before = if step == StepKind::Begin { None } else { self.player.observe().await.ok() };
        // Taken before the call, because the lock's TTL starts when Redis executes the call.
        let since = Instant::now();
        let last = self.player.step(worker, at_most).await?;
        // A lock that expired too early would make any outcome wrong.
        if self.held_until.is_some_and(|until| Instant::now() > until) {
            return Err(Aborted::Late);
        }
        if let Some(before) = before
            && let Ok(after) = self.player.observe().await
        {
            self.note_overwritten(worker, &before, &after);
        }
        match last.as_ref().and_then(|outcome| outcome.meaning) {
            Some(Meaning::Acquired) => {
                self.lock_of = Some(worker);
                self.hold_lock(worker, since);
            }
            Some(Meaning::Renewed) => self.hold_lock(worker, since),
            Some(Meaning::Stored) => self.result_of = Some(worker),
            Some(Meaning::Replay) => {
                let response = last.as_ref().and_then(|outcome| outcome.response.clone());
                self.note_answer(worker, ClientAnswer::Done(response));
            }
            _ if step == StepKind::Complete => {
                let slots = self.player.slots();
                let notes = &mut self.player.history().notes;
                if notes.is_empty() {
                    notes
                        .extend(slots.map(|slots| format!("its result cannot be stored: {slots}")));
                }
            }
            _ => {}
        }
        Ok(last)
    }

    /// Records that a lock was acquired or renewed with a call after `since`.
    fn hold_lock(&mut self, worker: usize, since: Instant) {
        let sent = self.player.workers[worker].job.lock_ttl.parse().unwrap_or_default();
        let lives = Duration::try_from_secs_f64(sent).unwrap_or_default();
        self.held_until = if lives.is_zero() { None } else { since.checked_add(lives) };
    }

    /// Records whether a worker removed or replaced the lock or the result of another one.
    fn note_overwritten(&mut self, worker: usize, before: &Observation, after: &Observation) {
        let schema = self.player.schema();
        for (key_index, reading) in decode::decode_all(schema, before).iter().enumerate() {
            let is_same = before.keys[key_index].content == after.keys[key_index].content;
            let Some(value) = reading.decoded() else { continue };
            if is_same || reading.past_expiry().is_some() {
                continue;
            }
            let (what, owner) = match schema.values[value.format].state {
                State::InProgress => ("lock", self.lock_of),
                _ => ("result", self.result_of),
            };
            if let Some(owner) = owner
                && owner != worker
            {
                let [by, of] = [worker, owner].map(|worker| &self.player.workers[worker].name);
                let what = format!("{by} removed or replaced the {what} of {of}");
                self.player.history().overwritten.get_or_insert(what);
            }
        }
    }

    fn note_answer(&mut self, worker: usize, answer: ClientAnswer) {
        let operation = self.player.workers[worker].job.client_request.operation;
        self.player.history().answer(operation, answer);
    }

    /// Makes calls of the worker's step. If begin fails, its client gets the error; true if it does.
    async fn step_and_answer(&mut self, worker: usize, at_most: usize) -> Played<bool> {
        let step = self.player.next_step(worker);
        let Some(outcome) = self.step(worker, at_most).await? else { return Ok(false) };
        if step != Some(StepKind::Begin) {
            return Ok(false);
        }
        let fails = match outcome.meaning {
            // No reply decided.
            Some(Meaning::Next) => self.player.next_step(worker).is_none(),
            meaning => matches!(meaning, None | Some(Meaning::Fail)),
        };
        let without_redis = self.player.schema().service.without_redis;
        if outcome.is_unreachable && without_redis == Some(WithoutRedis::Execute) {
            self.player.skip_to_effect(worker);
            self.player.execute(worker, true);
        } else if fails {
            let slots = self.player.slots().map_or_else(String::new, |slots| format!(" ({slots})"));
            self.note_answer(worker, ClientAnswer::Error(outcome.words + &slots));
        }
        Ok(fails)
    }

    /// Renews the worker's lock, if its service can. If that fails, the worker stops.
    async fn get_ready(&mut self, worker: usize) -> Played {
        if self.player.next_step(worker) == Some(StepKind::Renew) {
            self.step(worker, usize::MAX).await?;
            if self.player.position(worker).action == NextAction::Nothing {
                let name = self.player.workers[worker].name.clone();
                self.player.note(&name, "stops: the lock is not its own", None, Some("an error"));
            }
        }
        Ok(())
    }

    async fn work(&mut self, worker: usize, effect: bool) -> Played {
        self.get_ready(worker).await?;
        self.player.execute(worker, effect);
        Ok(())
    }

    /// The client disconnects, and the service releases the lock if it does so. The handler
    /// continues.
    async fn hang_up(&mut self, worker: usize) -> Played {
        self.player.note("a client", "hangs up", None, None);
        let schema = self.player.schema();
        if schema.service.on_hang_up == Some(OnHangUp::Release) && schema.release.is_some() {
            let position = self.player.position(worker);
            let working = self.player.workers[worker].position;
            if let Some(released) = position.gives_up_to.or(position.fails_to) {
                self.player.workers[worker].position = released;
                self.step(worker, usize::MAX).await?;
                self.player.workers[worker].position = working;
            }
        }
        Ok(())
    }

    /// So many requests arrive at the same time. Redis executes their calls one after another, so
    /// that every order of the calls is possible.
    async fn crowd(&mut self, count: usize) -> Played {
        let mut running = Vec::new();
        for number in 0..count {
            running.push(self.worker(number).await?);
        }
        let mut rng = Rng::with_seed(self.seed);
        while !running.is_empty() {
            let next = rng.usize(..running.len());
            let worker = running[next];
            let position = self.player.position(worker);
            match position.action {
                NextAction::Call { .. } if !position.is_optional => {
                    self.step_and_answer(worker, 1).await?;
                }
                NextAction::Effect { .. } => self.player.execute(worker, true),
                _ => {
                    running.swap_remove(next);
                }
            }
        }
        Ok(())
    }

    /// Waits until the record's lock or result has expired, if there is one.
    async fn wait_for_expiry(&mut self, what: &str) -> Played {
        let schema = self.player.schema();
        let is_lock = what == "lock";
        let key_index = if is_lock { schema.lock_key_index() } else { schema.result_key_index() };
        loop {
            let seen = self.player.observe().await?;
            let reading = &decode::decode_all(schema, &seen)[key_index];
            let Some(value) = reading.decoded() else { break };
            let holds_lock = schema.values[value.format].state == State::InProgress;
            if reading.past_expiry().is_some() || holds_lock != is_lock {
                break;
            }
            // The value ends with its TTL or with the expiry in it, whichever comes first.
            let left = seen.keys[key_index].time_left.millis().unwrap_or(u64::MAX);
            let left = left.min(self.contained_ms(value));
            if left > 4 * millis(self.lock_ttl) {
                let why = "has no TTL, or not the one that is sent, so it outlives the simulation";
                return Err(Aborted::NotApplicable(format!("its {what} {why}")));
            }
            // One more millisecond, so that it has expired when it is checked again.
            tokio::time::sleep(Duration::from_millis(left + 1)).await;
            self.player.note("time", &format!("the {what}'s TTL ends"), None, None);
        }
        self.held_until = None;
        Ok(())
    }

    /// A client asks once. If it gets the lock, the operation is executed.
    async fn request(&mut self, name: &str, request: ClientRequest) -> Played {
        let client = self.add(name, 0, request).await?;
        self.step_and_answer(client, usize::MAX).await?;
        self.work_and_complete(client).await
    }

    async fn work_and_complete(&mut self, worker: usize) -> Played {
        self.work(worker, true).await?;
        self.step(worker, usize::MAX).await?;
        Ok(())
    }

    /// A client asks until it is served. After a first execution it asks once more, as a client
    /// does that lost the response.
    async fn retry(&mut self) -> Played {
        let name = if self.has_client { "a later retry" } else { "a retry" };
        let before = self.player.history().effects_of(PAYMENT.operation);
        self.serve(name).await?;
        if before == 0 && self.player.history().effects_of(PAYMENT.operation) == 1 {
            self.serve(&format!("{name}, again")).await?;
        }
        Ok(())
    }

    /// A client asks until it is served. The time until then is the time that a client waits
    /// although no worker is running.
    async fn serve(&mut self, name: &str) -> Played {
        let client = self.add(name, 0, PAYMENT).await?;
        let Some(first) = self.step(client, usize::MAX).await? else { return Ok(()) };
        // The verdict reports the client's first answer, whatever it gets while it waits.
        let by = match first.meaning {
            Some(Meaning::Acquired | Meaning::Replay) => {
                return self.work_and_complete(client).await;
            }
            Some(by @ (Meaning::Conflict | Meaning::Mismatch)) => by,
            _ => Meaning::Fail,
        };
        self.held_until = None;
        let schema = self.player.schema();
        let seen = self.player.observe().await?;
        let readings = decode::decode_all(schema, &seen);
        let until = next_request::of(schema, &readings, &seen).until;
        let lease_ms = self.fixed_lease_ms(&readings);
        // Times are reported in the schema's own TTLs, because the simulation shortens them.
        let ms = match (self.ask_again(client).await?, until.and_then(TimeLeft::millis)) {
            (true, _) => Some(millis(self.own[0].lock_ttl)),
            (false, Some(ms)) if ms > millis(self.lock_ttl) => Some(self.to_time_of_schema(ms)),
            (false, _) => None,
        };
        let ms = ms.map(|ms| ms.min(lease_ms));
        self.player.history().note_block(Block { ms, by, reply: first.words });
        self.work_and_complete(client).await
    }

    /// Asks again until the client gets the lock or a response; false if it does not after the TTL
    /// of a lock.
    async fn ask_again(&mut self, client: usize) -> Played<bool> {
        let until = Instant::now() + self.lock_ttl + self.lock_ttl / 4;
        loop {
            tokio::time::sleep(RETRY_AFTER).await;
            let is_last = Instant::now() > until;
            let events = self.player.history().events.len();
            self.player.begin_again(client);
            let outcome = self.step(client, usize::MAX).await?;
            match outcome.and_then(|outcome| outcome.meaning) {
                Some(Meaning::Acquired | Meaning::Replay) => return Ok(true),
                // The history shows only one rejection.
                _ => self.player.history().events.truncate(events),
            }
            if is_last {
                return Ok(false);
            }
        }
    }

    /// The milliseconds that are left of a lock whose script gives every lock the same time, which
    /// the simulation cannot shorten; without such a lock, the largest number.
    fn fixed_lease_ms(&self, readings: &[Reading]) -> u64 {
        let schema = self.player.schema();
        let Some(lock) = readings[schema.lock_key_index()].decoded() else { return u64::MAX };
        let left = self.contained_ms(lock);
        // A TTL may be sent in whole seconds, rounded up.
        let is_fixed = left > millis(self.lock_ttl) + 1_000;
        if is_fixed && schema.values[lock.format].state == State::InProgress {
            return left.div_ceil(1_000).saturating_mul(1_000);
        }
        u64::MAX
    }

    /// How many milliseconds are left until the expiry in a value, if it holds one.
    fn contained_ms(&self, value: &Decoded) -> u64 {
        match value.expires_ms {
            Some(expires_ms) => expires_ms.saturating_sub(self.player.now_ms()),
            None => u64::MAX,
        }
    }

    /// Converts the time that is left of a result, or of a lock to which the service gives its own
    /// TTL. Results live shorter here than in a service.
    fn to_time_of_schema(&self, ms: u64) -> u64 {
        let service = self.result_of.map_or(0, |worker| self.player.workers[worker].service);
        let played = millis(self.player.program.services[service].result_ttl);
        // A Redis key with this much time left was set during this take, with the TTL of a result.
        if ms <= played && ms + self.player.elapsed_ms() + 1_000 >= played {
            return millis(self.own[service].result_ttl);
        }
        ms.div_ceil(1_000) * 1_000
    }
}
