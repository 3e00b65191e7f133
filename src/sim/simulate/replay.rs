//! Replays a schedule of an exploration with real workers. They execute the schema's own steps,
//! unchanged, on the server. Keys expire early, so that a replay does not wait.

use super::job::{ClientRequest, Job, OTHER_PAYMENT, PAYMENT, Played, owner_of, unused_payment};
use super::outcome::CallOutcome;
use super::player::Player;
use crate::domain::duration;
use crate::domain::exploration::{
    AbstractState, Act, AttributedReply, ENDED, MAX_LOST_WRITES, ResponseAuthor, TraceLine,
    held_at, holds,
};
use crate::domain::schema::{Meaning, Role};
use crate::domain::step::StepReply;
use crate::explore::TracedStep;
use crate::store::pack;

/// A replayed schedule, and how it deviated from the exploration.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub(crate) lines: Vec<TraceLine>,
    pub(crate) deviates: Option<String>,
}

struct Replayer<'s> {
    player: Player<'s>,
    /// The number of workers, without the requests after them.
    workers: usize,
    has_other_payload: bool,
    /// True if scripts and clients see the time of the exploration.
    stops_clock: bool,
    /// The replies to DUMP before each of the last writes, the latest first. A failover restores
    /// some of them.
    before_writes: Vec<Vec<Option<Vec<u8>>>>,
}

/// Replays a schedule with workers of these services. The last one may request another operation
/// with the same key. The Redis keys are deleted before and after it.
pub(crate) async fn replay(
    player: Player<'_>,
    services: &[usize],
    has_other_payload: bool,
    steps: &[TracedStep],
) -> Played<Replayed> {
    // A script may compare times after a part of a TTL, and no TTL can bring that forward. The time
    // in a value cannot be brought forward either.
    let stops_clock = player.program.services.iter().any(|schema| schema.contains_expiry())
        || steps.iter().any(|step| step.act == Act::Delay);
    let workers = services.len();
    let before_writes = Vec::new();
    let mut replayer = Replayer { player, workers, has_other_payload, stops_clock, before_writes };
    for (worker, service) in services.iter().enumerate() {
        let is_last = worker + 1 == workers;
        let payment = if has_other_payload && is_last { OTHER_PAYMENT } else { PAYMENT };
        replayer.add(*service, worker, &format!("worker {}", worker + 1), payment).await?;
    }
    replayer.clear().await?;
    let mut replayed = Replayed { lines: Vec::new(), deviates: None };
    for step in steps {
        let outcome = replayer.apply(step).await?;
        replayed.lines.push(replayer.line(step));
        replayed.deviates = replayer.deviation(step, outcome.as_ref()).await?;
        // What follows a deviation is another schedule, and is not evidence about this one.
        if replayed.deviates.is_some() {
            break;
        }
    }
    replayer.clear().await?;
    Ok(replayed)
}

impl Replayer<'_> {
    /// Adds a worker of a service, with the owner ID that this caller has in the exploration.
    async fn add(
        &mut self,
        service: usize,
        caller: usize,
        name: &str,
        client_request: ClientRequest,
    ) -> Played<usize> {
        let owner = owner_of(u8::try_from(caller).unwrap_or(u8::MAX));
        // Whole seconds, rounded up, so that a lock's TTL is never 0.
        let lock_ttl = self.player.program.services[service].lock_ttl.as_millis().div_ceil(1_000);
        let job = Job::new(&owner, client_request, lock_ttl.to_string());
        Ok(self.player.add_worker(name, service, job).await?)
    }

    /// Applies one step, and returns the outcome of a call.
    async fn apply(&mut self, step: &TracedStep) -> Played<Option<CallOutcome>> {
        // A failover loses the last writes, so that the replica has a state before them.
        if step.before != step.after && step.reply.is_some() {
            let dumps = self.dump().await?;
            self.before_writes.insert(0, dumps);
            self.before_writes.truncate(MAX_LOST_WRITES);
        }
        if self.stops_clock {
            self.player.stopped_at = Some(step.before.now_ms());
        }
        let number = usize::from(step.act.worker().unwrap_or_default());
        match step.act {
            Act::Call(_) => return self.player.call(number).await,
            Act::Lost(_) => {
                let outcome = self.player.call(number).await?;
                // A worker that lost its reply does nothing more, and neither it nor its client
                // knows the outcome.
                self.player.workers[number].position = ENDED;
                self.lose_reply(Some("an error"), "; its reply is lost");
                return Ok(outcome);
            }
            Act::Resend(_) => {
                let resends_at = self.player.position(number).resends_at;
                let outcome = self.player.call(number).await?;
                // The client library sends the call again.
                self.player.workers[number].position = resends_at.unwrap_or(ENDED);
                self.lose_reply(None, "; its reply is lost, and it is sent again");
                return Ok(outcome);
            }
            Act::Next(service) => {
                return self.request(service, 0, "a later request", PAYMENT).await;
            }
            Act::Other(service) => {
                let payment = unused_payment(self.has_other_payload);
                return self.request(service, 1, "another payload", payment).await;
            }
            Act::Effect(_) => self.player.execute(number, true),
            Act::Fail(_) | Act::LateFail(_) | Act::GiveUp(_) => self.player.fail(number, step.act),
            Act::Crash(_) => self.player.crash(number),
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

    /// Records that a reply was lost.
    fn lose_reply(&mut self, client: Option<&str>, what: &str) {
        if let Some(event) = self.player.history().events.last_mut() {
            event.client = client.map(str::to_owned);
            event.step.push_str(what);
        }
    }

    /// Sends the first or second request after the workers, until a reply decides.
    async fn request(
        &mut self,
        service: u8,
        number: usize,
        name: &str,
        client_request: ClientRequest,
    ) -> Played<Option<CallOutcome>> {
        let caller = self.workers + number;
        let worker = self.add(usize::from(service), caller, name, client_request).await?;
        self.player.step(worker, usize::MAX).await
    }

    /// Applies a fault that no worker causes. The Redis keys get the TTLs that the exploration's
    /// keys have after it, or are deleted.
    async fn apply_fault(&mut self, step: &TracedStep) -> Played {
        let mut restored = Vec::new();
        if let Act::Failover(more) = step.act {
            let lost = (usize::from(more) + 1).min(self.before_writes.len());
            // The write that is lost first is the last one in the list.
            restored = self.before_writes.drain(..lost).next_back().unwrap_or_default();
        }
        for (key_index, redis_key) in self.player.redis_keys.clone().iter().enumerate() {
            let before = &step.before.stored[key_index];
            let after = &step.after.stored[key_index];
            let ttl_ms = step.after.ttl_ms(key_index);
            let ttl = ttl_ms.unwrap_or(0).to_string();
            let request = match (after, restored.get(key_index)) {
                (Some(_), Some(Some(dump))) => {
                    pack([b"RESTORE", &redis_key[..], ttl.as_bytes(), dump, b"REPLACE"])
                }
                // Only a failover creates a Redis key. Every other fault changes or ends an
                // existing one.
                _ if before.is_none() => continue,
                (None, _) => pack([b"DEL", &redis_key[..]]),
                (Some(_), _) if ttl_ms.is_some() => {
                    pack([b"PEXPIRE", &redis_key[..], ttl.as_bytes()])
                }
                (Some(_), _) => pack([b"PERSIST", &redis_key[..]]),
            };
            self.player.send(&request).await?;
        }
        let (actor, what) = self.describe_fault(step);
        self.player.note(actor, &what, None, None);
        Ok(())
    }

    /// The cause of a fault, and its description.
    fn describe_fault(&self, step: &TracedStep) -> (&'static str, String) {
        let key_index = match step.act {
            Act::Expiry(key) | Act::Lapse(key) | Act::Evict(key) | Act::Persist(key) => key,
            _ => 0,
        };
        let key = match held_at(self.player.schema(), &step.before, usize::from(key_index)) {
            Some(Role::Result) => "result",
            Some(Role::Lock) => "lock",
            _ => "record",
        };
        match step.act {
            Act::Expiry(_) => ("time", format!("the {key}'s TTL ends")),
            Act::Lapse(_) => ("time", format!("the {key}'s own expiry passes")),
            Act::Evict(_) => ("redis", format!("the {key} is evicted")),
            Act::Delay => ("time", format!("{} pass", duration::short(passed_ms(step)))),
            Act::Restart => ("redis", "it restarts without its data".to_owned()),
            Act::Persist(_) => ("world", format!("the TTL of the {key} is removed")),
            Act::Failover(more) if more > 0 => (
                "redis",
                format!("the master fails before its last {} writes are on the replica", more + 1),
            ),
            _ => ("redis", "the master fails before its last write is on the replica".to_owned()),
        }
    }

    /// The step's line in the trace: the last event in the history.
    fn line(&mut self, step: &TracedStep) -> TraceLine {
        let mut holder = None;
        if let Some(worker) = step.holder
            && usize::from(worker) < self.workers
        {
            holder = Some(self.player.workers[usize::from(worker)].name.as_str());
        }
        let mut line = TraceLine {
            act: step.act,
            actor: String::new(),
            step: String::new(),
            reply: None,
            sees: None,
            holds: holds(self.player.schema(), &step.after, holder),
        };
        if let Some(event) = self.player.history().events.last() {
            line.actor.clone_from(&event.actor);
            line.step.clone_from(&event.step);
            line.reply.clone_from(&event.reply);
            line.sees.clone_from(&event.client);
        }
        line
    }

    /// How the step deviated from the exploration; `None` if it did not.
    async fn deviation(
        &mut self,
        step: &TracedStep,
        outcome: Option<&CallOutcome>,
    ) -> Played<Option<String>> {
        if let Some(explored) = step.reply
            && let Some(why) = self.reply_deviation(explored, outcome)
        {
            return Ok(Some(why));
        }
        let schema = self.player.schema();
        let replayed = AbstractState::from_observation(schema, &self.player.observe().await?);
        let explored = AbstractState::from_keys(schema, &step.after);
        if replayed == explored {
            return Ok(None);
        }
        Ok(Some(format!("real workers leave {replayed}; the exploration predicts {explored}")))
    }

    /// How a call's reply differs from the reply in the exploration; `None` if it does not.
    fn reply_deviation(
        &mut self,
        explored: AttributedReply,
        outcome: Option<&CallOutcome>,
    ) -> Option<String> {
        let meaning = match outcome {
            None => Some(Meaning::Next),
            Some(outcome) => outcome.meaning,
        };
        if meaning != explored.meaning {
            return Some(format!(
                "with real workers the reply means {}; the exploration predicts {}",
                meaning_word(meaning),
                meaning_word(explored.meaning)
            ));
        }
        let ResponseAuthor::Effect(worker) = explored.author else { return None };
        let name = self.player.workers.get(usize::from(worker))?.name.clone();
        // If the response came before its effect, that is the violation itself, and a replay cannot
        // attribute it.
        let own = self
            .player
            .history()
            .executions
            .iter()
            .find(|execution| execution.worker == name && execution.effect)?;
        if outcome?.response.as_ref() == Some(&own.response) {
            return None;
        }
        Some(format!("with real workers the response is not that of {name}"))
    }

    async fn dump(&mut self) -> Played<Vec<Option<Vec<u8>>>> {
        let mut dumps = Vec::new();
        for redis_key in self.player.redis_keys.clone() {
            dumps.push(match self.player.send(&pack([b"DUMP", &redis_key[..]])).await? {
                StepReply::Text(dump) => Some(dump),
                _ => None,
            });
        }
        Ok(dumps)
    }

    async fn clear(&mut self) -> Played {
        for redis_key in self.player.redis_keys.clone() {
            self.player.send(&pack([b"DEL", &redis_key[..]])).await?;
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
