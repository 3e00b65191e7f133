//! Replays a schedule of an exploration with the workers of the scenarios. They execute the
//! schema's own steps, unchanged, on the server. Keys expire early, so that a replay does not wait.

use std::cell::RefCell;
use std::rc::Rc;

use super::run::ScenarioRun;
use super::story::{
    ClientRequest, LockLifetime, OTHER_PAYMENT, PAYMENT, ScenarioResult, owner_of, unused_payment,
};
use super::worker::ScenarioWorker;
use super::worker_calls::CallOutcome;
use crate::domain::duration;
use crate::domain::exploration::{
    AbstractState, Act, AttributedReply, MAX_LOST_WRITES, NextAction, ResponseAuthor, TraceLine,
    WorkerProgram, held_at, holds,
};
use crate::domain::schema::{Meaning, Role, Schema};
use crate::domain::simulation::History;
use crate::domain::step::{StepKind, StepReply};
use crate::explore::TracedStep;
use crate::store::{StoreError, Writable, pack};

/// The schedule's program, and the server on which it is replayed.
#[derive(Clone, Copy)]
pub(crate) struct ScheduleReplay<'s> {
    pub(crate) program: &'s WorkerProgram,
    /// The index of each worker's service.
    pub(crate) services: &'s [usize],
    /// True if the last worker requests another operation with the same key.
    pub(crate) has_other_payload: bool,
    pub(crate) key: &'s [u8],
    pub(crate) target: &'s Writable,
    /// True on a temporary local Redis.
    pub(crate) is_private: bool,
}

/// A replayed schedule, and how it deviated from the exploration.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub(crate) lines: Vec<TraceLine>,
    pub(crate) deviates: Option<String>,
}

struct Player<'s> {
    program: &'s WorkerProgram,
    schema: &'s Schema,
    /// One run for each service, all with the same key.
    runs: Vec<Rc<ScenarioRun<'s>>>,
    workers: Vec<Option<ScenarioWorker<'s>>>,
    names: Vec<String>,
    has_other_payload: bool,
    history: Rc<RefCell<History>>,
    redis_keys: Vec<Vec<u8>>,
    /// True if scripts and clients see the time of the exploration.
    stops_clock: bool,
    /// The replies to DUMP before each of the last writes, the latest first. A failover restores
    /// some of them.
    before_writes: Vec<Vec<Option<Vec<u8>>>>,
}

impl<'s> ScheduleReplay<'s> {
    /// Replays a schedule. The Redis keys are deleted before and after it.
    pub(crate) async fn run(self, steps: &[TracedStep]) -> ScenarioResult<Replayed> {
        let mut player = self.player().await?;
        player.clear().await?;
        // A script may compare times after a part of a TTL, and no TTL can bring that forward.
        player.stops_clock |= steps.iter().any(|step| step.act == Act::Delay);
        let mut replayed = Replayed { lines: Vec::new(), deviates: None };
        for step in steps {
            let outcome = player.apply(step).await?;
            replayed.lines.push(player.line(step));
            replayed.deviates = player.deviation(step, outcome.as_ref()).await?;
            // What follows a deviation is another schedule, and is not evidence about this one.
            if replayed.deviates.is_some() {
                break;
            }
        }
        player.clear().await?;
        Ok(replayed)
    }

    async fn player(self) -> Result<Player<'s>, StoreError> {
        let Self { program, services, has_other_payload, key, target, is_private } = self;
        let history = Rc::new(RefCell::new(History::default()));
        let mut runs = Vec::new();
        for schema in &program.services {
            let history = Rc::clone(&history);
            let lock_ttl = schema.lock_ttl;
            let run = ScenarioRun::begin(
                schema,
                schema,
                key.to_vec(),
                target,
                is_private,
                lock_ttl,
                history,
            );
            runs.push(Rc::new(run.await?));
        }
        let schema = &*program.services[0];
        let redis_keys = schema.redis_keys(key);
        let mut player = Player {
            program,
            schema,
            runs,
            workers: Vec::new(),
            names: (1..=services.len()).map(|number| format!("worker {number}")).collect(),
            has_other_payload,
            history,
            before_writes: Vec::new(),
            redis_keys,
            // The time in a value cannot be brought forward, so the clock is.
            stops_clock: program.services.iter().any(|schema| schema.contains_expiry()),
        };
        for (worker, service) in services.iter().enumerate() {
            // A worker without a connection does nothing, which the comparison of states reports.
            let is_last = worker + 1 == services.len();
            let payment = if has_other_payload && is_last { OTHER_PAYMENT } else { PAYMENT };
            let worker = player.worker(*service, worker, &player.names[worker], payment).await.ok();
            player.workers.push(worker);
        }
        Ok(player)
    }
}

impl<'s> Player<'s> {
    /// A worker of a service, with the owner ID that this caller has in the exploration.
    async fn worker(
        &self,
        service: usize,
        caller: usize,
        name: &str,
        client_request: ClientRequest,
    ) -> ScenarioResult<ScenarioWorker<'s>> {
        let owner = owner_of(u8::try_from(caller).unwrap_or(u8::MAX));
        let run = &self.runs[service];
        Ok(run.worker(name, client_request, LockLifetime::OfSchema).await?.with_owner(owner))
    }

    /// Applies one step, and returns the outcome of a call.
    async fn apply(&mut self, step: &TracedStep) -> ScenarioResult<Option<CallOutcome>> {
        // A failover loses the last writes, so that the replica has a state before them.
        if step.before != step.after && step.reply.is_some() {
            self.before_writes.insert(0, self.dump().await?);
            self.before_writes.truncate(MAX_LOST_WRITES);
        }
        if self.stops_clock {
            for run in &self.runs {
                run.stop_clock(step.before.now_ms());
            }
        }
        match step.act {
            Act::Call(worker) => return self.make_call(worker, step.action).await,
            Act::Lost(worker) => {
                let outcome = self.make_call(worker, step.action).await?;
                // A worker that lost its reply does nothing more.
                self.workers[usize::from(worker)] = None;
                self.note_lost_reply();
                return Ok(outcome);
            }
            Act::Resend(worker) => {
                let outcome = self.make_call(worker, step.action).await?;
                self.note_resent_call();
                return Ok(outcome);
            }
            Act::Next(service) => {
                return self.request(service, 0, "a later request", PAYMENT).await;
            }
            Act::Other(service) => {
                let payment = unused_payment(self.has_other_payload);
                return self.request(service, 1, "another payload", payment).await;
            }
            Act::Effect(worker) => {
                if let Some(worker) = &mut self.workers[usize::from(worker)] {
                    worker.have_effect();
                }
            }
            Act::Fail(worker) => {
                if let Some(worker) = &mut self.workers[usize::from(worker)] {
                    worker.fail_handler();
                }
            }
            Act::LateFail(worker) => {
                if let Some(worker) = &mut self.workers[usize::from(worker)] {
                    worker.fail_after_effect();
                }
            }
            Act::GiveUp(worker) => {
                if let Some(worker) = &mut self.workers[usize::from(worker)] {
                    worker.give_up();
                }
            }
            Act::Crash(worker) => {
                if let Some(worker) = self.workers[usize::from(worker)].take() {
                    worker.crash();
                }
            }
            Act::Expiry(_)
            | Act::Lapse(_)
            | Act::Delay
            | Act::Evict(_)
            | Act::Restart
            | Act::Failover(_)
            | Act::Persist(_) => self.apply_fault(step).await?,
        }
        Ok(None)
    }

    async fn make_call(
        &mut self,
        worker: u8,
        action: NextAction,
    ) -> ScenarioResult<Option<CallOutcome>> {
        let NextAction::Call { number, .. } = action else { return Ok(None) };
        let call = self.program.calls[usize::from(number)];
        match &mut self.workers[usize::from(worker)] {
            Some(worker) => {
                // Otherwise the history would hide repeated calls, but every step needs its line.
                worker.forget_previous();
                worker.make_call(call.step, call.index).await
            }
            None => Ok(None),
        }
    }

    /// Sends the first or second request after the workers, until a reply decides.
    async fn request(
        &mut self,
        service: u8,
        number: usize,
        name: &str,
        client_request: ClientRequest,
    ) -> ScenarioResult<Option<CallOutcome>> {
        let caller = self.workers.len() + number;
        let mut worker = self.worker(usize::from(service), caller, name, client_request).await?;
        for index in 0..worker.begin_calls() {
            let outcome = worker.make_call(StepKind::Begin, index).await?;
            if outcome.is_some() {
                return Ok(outcome);
            }
        }
        Ok(None)
    }

    /// Applies a fault that no worker causes. The Redis keys get the TTLs that the exploration's
    /// keys have after it, or are deleted.
    async fn apply_fault(&mut self, step: &TracedStep) -> ScenarioResult {
        let mut restored = Vec::new();
        if let Act::Failover(more) = step.act {
            let lost = (usize::from(more) + 1).min(self.before_writes.len());
            // The write that is lost first is the last one in the list.
            restored = self.before_writes.drain(..lost).next_back().unwrap_or_default();
        }
        let run = &self.runs[0];
        for (key_index, redis_key) in self.redis_keys.iter().enumerate() {
            let before = &step.before.stored[key_index];
            let after = &step.after.stored[key_index];
            let ttl_ms = step.after.ttl_ms(key_index);
            if after.is_some()
                && let Some(Some(dump)) = restored.get(key_index)
            {
                let ttl = ttl_ms.unwrap_or(0).to_string();
                run.send(&pack([b"RESTORE", &redis_key[..], ttl.as_bytes(), dump, b"REPLACE"]))
                    .await?;
                continue;
            }
            // Only a failover creates a Redis key. Every other fault changes or ends an existing
            // one.
            if before.is_none() {
                continue;
            }
            let request = if after.is_none() {
                pack([b"DEL", &redis_key[..]])
            } else if let Some(ms) = ttl_ms {
                pack([b"PEXPIRE", &redis_key[..], ms.to_string().as_bytes()])
            } else {
                pack([b"PERSIST", &redis_key[..]])
            };
            run.send(&request).await?;
        }
        let (actor, what) = self.describe_fault(step);
        run.note(actor, &what, None, None);
        Ok(())
    }

    /// The cause of a fault, and its description.
    fn describe_fault(&self, step: &TracedStep) -> (&'static str, String) {
        match step.act {
            Act::Expiry(key_index) => {
                ("time", format!("the {}'s TTL ends", self.name_at(step, key_index)))
            }
            Act::Lapse(key_index) => {
                ("time", format!("the {}'s own expiry passes", self.name_at(step, key_index)))
            }
            Act::Evict(key_index) => {
                ("redis", format!("the {} is evicted", self.name_at(step, key_index)))
            }
            Act::Delay => ("time", format!("{} pass", duration::short(passed_ms(step)))),
            Act::Restart => ("redis", "it restarts without its data".to_owned()),
            Act::Persist(key_index) => {
                ("world", format!("the TTL of the {} is removed", self.name_at(step, key_index)))
            }
            Act::Failover(more) if more > 0 => (
                "redis",
                format!("the master fails before its last {} writes are on the replica", more + 1),
            ),
            _ => ("redis", "the master fails before its last write is on the replica".to_owned()),
        }
    }

    fn name_at(&self, step: &TracedStep, key_index: u8) -> &'static str {
        match held_at(self.schema, &step.before, usize::from(key_index)) {
            Some(Role::Result) => "result",
            Some(Role::Lock) => "lock",
            _ => "record",
        }
    }

    /// The step's line in the trace: the last event in the history.
    fn line(&self, step: &TracedStep) -> TraceLine {
        let mut holder = None;
        if let Some(worker) = step.holder {
            holder = self.names.get(usize::from(worker)).map(String::as_str);
        }
        let mut line = TraceLine {
            act: step.act,
            actor: String::new(),
            step: String::new(),
            reply: None,
            sees: None,
            holds: holds(self.schema, &step.after, holder),
        };
        if let Some(event) = self.history.borrow().events.last().cloned() {
            line.actor = event.actor;
            line.step = event.step;
            line.reply = event.reply;
            line.sees = event.client;
        }
        line
    }

    /// Records that a worker lost its reply. Neither the worker nor its client knows the outcome.
    fn note_lost_reply(&self) {
        if let Some(event) = self.history.borrow_mut().events.last_mut() {
            event.client = Some("an error".to_owned());
            event.step.push_str("; its reply is lost");
        }
    }

    /// Records that a reply was lost, and that the client library sends the call again.
    fn note_resent_call(&self) {
        if let Some(event) = self.history.borrow_mut().events.last_mut() {
            event.client = None;
            event.step.push_str("; its reply is lost, and it is sent again");
        }
    }

    /// How the step deviated from the exploration; `None` if it did not.
    async fn deviation(
        &self,
        step: &TracedStep,
        outcome: Option<&CallOutcome>,
    ) -> ScenarioResult<Option<String>> {
        if let Some(explored) = step.reply
            && let Some(why) = self.reply_deviation(explored, outcome)
        {
            return Ok(Some(why));
        }
        let replayed = AbstractState::from_observation(self.schema, &self.runs[0].observe().await?);
        let explored = AbstractState::from_keys(self.schema, &step.after);
        if replayed == explored {
            return Ok(None);
        }
        Ok(Some(format!("real workers leave {replayed}; the exploration predicts {explored}")))
    }

    /// How a call's reply differs from the reply in the exploration; `None` if it does not.
    fn reply_deviation(
        &self,
        explored: AttributedReply,
        outcome: Option<&CallOutcome>,
    ) -> Option<String> {
        let meaning = match outcome {
            None => Some(Meaning::Next),
            Some(outcome) => outcome.meaning(),
        };
        if meaning != explored.meaning {
            return Some(format!(
                "with real workers the reply means {}; the exploration predicts {}",
                meaning_word(meaning),
                meaning_word(explored.meaning)
            ));
        }
        let ResponseAuthor::Effect(worker) = explored.author else { return None };
        let Some(CallOutcome::Replied(reply)) = outcome else { return None };
        let name = self.names.get(usize::from(worker))?;
        let history = self.history.borrow();
        // If the response came before its effect, that is the violation itself, and a replay cannot
        // attribute it.
        let own = history
            .executions
            .iter()
            .find(|execution| execution.worker == *name && execution.effect)?;
        if reply.response.as_ref() == Some(&own.response) {
            return None;
        }
        Some(format!("with real workers the response is not that of {name}"))
    }

    async fn dump(&self) -> ScenarioResult<Vec<Option<Vec<u8>>>> {
        let mut dumps = Vec::new();
        for redis_key in &self.redis_keys {
            dumps.push(match self.runs[0].send(&pack([b"DUMP", &redis_key[..]])).await? {
                StepReply::Text(dump) => Some(dump),
                _ => None,
            });
        }
        Ok(dumps)
    }

    async fn clear(&self) -> ScenarioResult {
        for redis_key in &self.redis_keys {
            self.runs[0].send(&pack([b"DEL", &redis_key[..]])).await?;
        }
        Ok(())
    }
}

/// The time in milliseconds that passes in a step without a call.
fn passed_ms(step: &TracedStep) -> u64 {
    for key_index in 0..step.before.stored.len() {
        let ttls = (step.before.ttl_ms(key_index), step.after.ttl_ms(key_index));
        if let (Some(before), Some(after)) = ttls {
            return before.saturating_sub(after);
        }
    }
    step.after.clock_ms.saturating_sub(step.before.clock_ms)
}

fn meaning_word(meaning: Option<Meaning>) -> &'static str {
    match meaning {
        Some(meaning) => meaning.as_str(),
        None => "an unknown reply",
    }
}
