//! Plays a history of the exploration with the workers of the scenarios: the schema's own steps, unchanged, on the server.
//! Deadlines are brought forward, so that nobody waits.

use std::cell::RefCell;
use std::rc::Rc;

use super::abort::Played;
use super::retold::same_answer;
use super::run::Run;
use super::story::{Lock, OTHER_PAYMENT, Operation, PAYMENT};
use super::worker::Worker;
use super::worker_calls::Met;
use crate::domain::exploration::{Act, Does, Line, Program, Stage, gist, trace};
use crate::domain::schema::{Role, Schema};
use crate::domain::simulation::History;
use crate::domain::step::StepReply;
use crate::explore::Traced;
use crate::store::{StoreError, Writable, pack};

/// What is played, and where.
#[derive(Clone, Copy)]
pub(crate) struct Retelling<'s> {
    pub(crate) program: &'s Program,
    /// The service of each worker.
    pub(crate) services: &'s [usize],
    pub(crate) key: &'s [u8],
    pub(crate) target: &'s Writable,
    /// True on a throw-away server.
    pub(crate) is_private: bool,
}

/// A history that was played, and where it went another way than the exploration's.
#[derive(Debug)]
pub(crate) struct Retold {
    pub(crate) lines: Vec<Line>,
    pub(crate) deviates: Option<String>,
}

struct Player<'s> {
    program: &'s Program,
    schema: &'s Schema,
    /// A run a service, all on one key.
    runs: Vec<Rc<Run<'s>>>,
    workers: Vec<Option<Worker<'s>>>,
    names: Vec<String>,
    history: Rc<RefCell<History>>,
    redis_keys: Vec<Vec<u8>>,
    /// What DUMP said before the last write.
    behind: Vec<Option<Vec<u8>>>,
}

impl<'s> Retelling<'s> {
    /// Plays a history. The Redis keys are removed before and after it.
    pub(crate) async fn tell(self, traced: &[Traced]) -> Played<Retold> {
        let mut player = self.player().await?;
        player.clear().await?;
        let mut told = Retold { lines: Vec::new(), deviates: None };
        for step in traced {
            let met = player.plays(step).await?;
            told.lines.push(player.line(step));
            told.deviates = player.deviates(step, met).await?;
            if told.deviates.is_some() {
                break;
            }
        }
        player.clear().await?;
        Ok(told)
    }

    async fn player(self) -> Result<Player<'s>, StoreError> {
        let Self { program, services, key, target, is_private } = self;
        let history = Rc::new(RefCell::new(History::default()));
        let mut runs = Vec::new();
        for schema in &program.services {
            let history = Rc::clone(&history);
            let run = Run::begin(schema, schema, key.to_vec(), target, is_private, schema.lock_ttl, history).await?;
            runs.push(Rc::new(run));
        }
        let schema = &*program.services[0];
        let redis_keys = schema.redis_keys(key);
        let behind = vec![None; redis_keys.len()];
        let names: Vec<_> = (1..=services.len()).map(|worker| format!("worker {worker}")).collect();
        let mut player = Player { program, schema, runs, workers: Vec::new(), names, history, redis_keys, behind };
        for (worker, service) in services.iter().enumerate() {
            let name = player.names[worker].clone();
            let worker = player.request(*service, &name, PAYMENT).await.ok();
            player.workers.push(worker);
        }
        Ok(player)
    }
}

impl<'s> Player<'s> {
    async fn request(&self, service: usize, name: &str, operation: Operation) -> Played<Worker<'s>> {
        self.runs[service].worker(name, operation, Lock::Own).await
    }

    /// Plays one step; what a call came to.
    async fn plays(&mut self, step: &Traced) -> Played<Option<Met>> {
        if step.before != step.keys && step.heard.is_some() {
            self.behind = self.dumps().await?;
        }
        match step.act {
            Act::Call(worker) => self.sends(worker, step.does).await,
            Act::Lost(worker) => {
                let met = self.sends(worker, step.does).await?;
                self.workers[usize::from(worker)] = None;
                self.correct_last("its reply is lost");
                Ok(met)
            }
            Act::Effect(worker) => {
                if let Some(worker) = &mut self.workers[usize::from(worker)] {
                    worker.works();
                }
                Ok(None)
            }
            Act::Fail(worker) => {
                if let Some(worker) = &mut self.workers[usize::from(worker)] {
                    worker.breaks();
                }
                Ok(None)
            }
            Act::Crash(worker) => {
                if let Some(worker) = self.workers[usize::from(worker)].take() {
                    worker.crashes();
                }
                Ok(None)
            }
            Act::Next(service) => self.asks(service, "a later request", PAYMENT).await,
            Act::Other(service) => self.asks(service, "another payload", OTHER_PAYMENT).await,
            Act::Expiry(_) | Act::Evict(_) | Act::Failover | Act::Persist(_) => {
                self.befalls(step).await?;
                Ok(None)
            }
        }
    }

    async fn sends(&mut self, worker: u8, does: Does) -> Played<Option<Met>> {
        let (Does::Call { ask, .. }, Some(worker)) = (does, &mut self.workers[usize::from(worker)]) else {
            return Ok(None);
        };
        let asks = self.program.asks[usize::from(ask)];
        worker.calls.forget();
        worker.sends(asks.stage, asks.index).await
    }

    async fn asks(&mut self, service: u8, name: &str, operation: Operation) -> Played<Option<Met>> {
        let mut worker = self.request(usize::from(service), name, operation).await?;
        let calls = worker.begin_calls();
        for index in 0..calls {
            let met = worker.sends(Stage::Begin, index).await?;
            if met.is_some() {
                return Ok(met);
            }
        }
        Ok(None)
    }

    /// Brings about what nobody does: the Redis keys get the TTLs that the exploration's have then, or go.
    async fn befalls(&mut self, step: &Traced) -> Played {
        let run = Rc::clone(&self.runs[0]);
        for (role, redis_key) in self.redis_keys.iter().enumerate() {
            let (before, after) = (&step.before.held[role], &step.keys.held[role]);
            let ttl = after.as_ref().and_then(|held| held.ttl_ms);
            if let (Act::Failover, Some(dump)) = (step.act, self.behind[role].as_ref().filter(|_| after.is_some())) {
                let ms = ttl.unwrap_or(0).to_string();
                run.ask(&pack([b"RESTORE", &redis_key[..], ms.as_bytes(), dump, b"REPLACE"])).await?;
                continue;
            }
            let request = match (before, after, ttl) {
                (None, _, _) => continue,
                (Some(_), None, _) => pack([b"DEL", &redis_key[..]]),
                (Some(_), Some(_), None) => pack([b"PERSIST", &redis_key[..]]),
                (Some(_), Some(_), Some(ms)) => pack([b"PEXPIRE", &redis_key[..], ms.to_string().as_bytes()]),
            };
            run.ask(&request).await?;
        }
        let (actor, what) = self.misfortune(step);
        run.note(actor, &what, None, None);
        Ok(())
    }

    fn misfortune(&self, step: &Traced) -> (&'static str, String) {
        let what = |role: u8| match trace::held_at(self.schema, &step.before, usize::from(role)) {
            Some(Role::Result) => "result",
            Some(Role::Lock) => "lock",
            _ => "record",
        };
        match step.act {
            Act::Expiry(role) => ("time", format!("the {}'s TTL ends", what(role))),
            Act::Evict(role) => ("redis", format!("the {} is evicted", what(role))),
            Act::Persist(role) => ("world", format!("somebody takes the {}'s TTL away", what(role))),
            _ => ("redis", "the master fails before its last write is on the replica".to_owned()),
        }
    }

    /// The step's line: what it noted last.
    fn line(&self, step: &Traced) -> Line {
        let history = self.history.borrow();
        let (actor, what, reply, sees) = match history.events.last() {
            Some(event) => (event.actor.clone(), event.step.clone(), event.reply.clone(), event.client.clone()),
            None => (String::new(), String::new(), None, None),
        };
        let holder = step.holder.and_then(|worker| self.names.get(usize::from(worker)));
        let holds = trace::holds(self.schema, &step.keys, holder.map(String::as_str));
        Line { act: step.act, actor, step: what, reply, sees, holds }
    }

    /// A worker that gets no reply does not know, and its client neither.
    fn correct_last(&self, what: &str) {
        if let Some(event) = self.history.borrow_mut().events.last_mut() {
            event.client = Some("an error".to_owned());
            event.step.push_str(&format!("; {what}"));
        }
    }

    /// How the step went another way than in the exploration.
    async fn deviates(&self, step: &Traced, met: Option<Met>) -> Played<Option<String>> {
        if let Some(why) =
            step.heard.and_then(|heard| same_answer(heard, met.as_ref(), &self.history.borrow(), &self.names))
        {
            return Ok(Some(why));
        }
        let seen = self.runs[0].observe().await?;
        let (played, explored) = (gist::of_seen(self.schema, &seen), gist::of_keys(self.schema, &step.keys));
        Ok((played != explored).then(|| format!("played, it leaves {played}; explored, {explored}")))
    }

    async fn dumps(&self) -> Played<Vec<Option<Vec<u8>>>> {
        let mut dumps = Vec::new();
        for redis_key in &self.redis_keys {
            dumps.push(match self.runs[0].ask(&pack([b"DUMP", &redis_key[..]])).await? {
                StepReply::Text(dump) => Some(dump),
                _ => None,
            });
        }
        Ok(dumps)
    }

    async fn clear(&self) -> Played {
        for redis_key in &self.redis_keys {
            self.runs[0].ask(&pack([b"DEL", &redis_key[..]])).await?;
        }
        Ok(())
    }
}
