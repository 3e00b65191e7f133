//! One worker in one round of a race: the requests that it sends, and the replies that it gets.

use std::time::{Duration, Instant};

use crate::domain::race::{RaceAct, RaceAnswer, RaceEvent, RacePlan, RaceSteps};
use crate::domain::record::Response;
use crate::domain::schema::{Action, Call, Meaning};
use crate::domain::step::{CallSender, ExecutedStep, StepCall, StepInputs, StepReply, execute};
use crate::sim::service::{LoadedService, is_no_script, words};
use crate::store::{Connection, Packed, StoreError, pack};

/// The hash of the payload of every request in a race.
const FINGERPRINT: &str = "5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9";

/// An instance of the service with its own connection, for all rounds of a race.
pub(super) struct WorkerConnection {
    /// The worker's number, from 1.
    pub(super) id: usize,
    /// The owner ID, for services that check owners.
    pub(super) owner: String,
    /// `None` after a lost reply, which could still arrive and be taken for a later one.
    pub(super) connection: Option<Connection>,
}

/// The parameters that all workers of one round share.
#[derive(Clone, Copy)]
pub(super) struct Course<'r> {
    pub(super) service: &'r LoadedService<'r>,
    pub(super) steps: &'r RaceSteps,
    pub(super) plan: &'r RacePlan,
    pub(super) key: &'r [u8],
}

/// The actions of a worker in one phase of a round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    /// True if the worker requests the lock, for the first time or again.
    pub(super) begins: bool,
    /// True if the worker finishes with the lock that it holds.
    pub(super) finishes: bool,
    /// True if the handler fails, so that the worker releases the lock instead of storing a result.
    pub(super) fails: bool,
}

/// A worker in one round.
pub(super) struct RaceWorker<'r> {
    instance: &'r mut WorkerConnection,
    course: Course<'r>,
    response: Response,
    /// The requests of the begin step, packed ahead of time. A released worker then only has to
    /// send them.
    begin: Vec<Packed>,
    /// The time in the packed `begin`, in milliseconds since the epoch.
    begin_ms: u64,
    /// How long the worker pauses between the calls of a step.
    pub(super) pause: Duration,
    /// The start of the round, from which events are timed.
    pub(super) clock: Instant,
    has_begun: bool,
    pub(super) holds_lock: bool,
    pub(super) won: bool,
    pub(super) events: Vec<RaceEvent>,
    /// Why a reply was lost, or why the server refused the service.
    pub(super) error: Option<StoreError>,
}

impl<'r> RaceWorker<'r> {
    pub(super) fn new(instance: &'r mut WorkerConnection, course: Course<'r>) -> Self {
        // Every worker has its own response, so that a replay shows whose response it is.
        let body = format!(r#"{{"worker":{}}}"#, instance.id).into_bytes();
        let response = Response { status: Some(201), headers: Vec::new(), body, whole: true };
        let begin_ms = course.service.now_ms();
        let inputs = inputs(course, &instance.owner, &response, begin_ms);
        let begin = pack_calls(course, &course.steps.begin, &inputs);
        Self {
            instance,
            course,
            response,
            begin,
            begin_ms,
            pause: Duration::ZERO,
            clock: Instant::now(),
            has_begun: false,
            holds_lock: false,
            won: false,
            // Most workers only begin and retry.
            events: Vec::with_capacity(2),
            error: None,
        }
    }

    /// True if the worker can still send.
    pub(super) fn is_connected(&self) -> bool {
        self.instance.connection.is_some()
    }

    /// Takes part in one phase of the round, and adds the outcome to the events.
    pub(super) async fn run(&mut self, turn: Turn) {
        if turn.begins {
            let act = if self.has_begun { RaceAct::Retry } else { RaceAct::Begin };
            self.has_begun = true;
            let steps = self.course.steps;
            let packed = std::mem::take(&mut self.begin);
            self.holds_lock = self.execute(&steps.begin, &packed, self.begin_ms, act).await;
            // This remains true after the lock is given up, because only workers that never won
            // retry.
            self.won |= self.holds_lock;
            self.begin = packed;
        }
        if turn.finishes && self.holds_lock {
            self.holds_lock = false;
            self.finish(turn.fails).await;
        }
    }

    async fn finish(&mut self, fails: bool) {
        let steps = self.course.steps;
        let now_ms = self.course.service.now_ms();
        let inputs = inputs(self.course, &self.instance.owner, &self.response, now_ms);
        // A lock without a result is released in any case.
        let (calls, act) = if fails || steps.complete.is_empty() {
            let Some(release) = &steps.release else { return };
            (release, RaceAct::Release)
        } else {
            (&steps.complete, RaceAct::Complete(inputs.replayed()))
        };
        let packed = pack_calls(self.course, calls, &inputs);
        self.execute(calls, &packed, now_ms, act).await;
    }

    /// Executes a step, and returns whether it acquired the lock.
    async fn execute(
        &mut self,
        calls: &[Call],
        packed: &[Packed],
        now_ms: u64,
        act: RaceAct,
    ) -> bool {
        // Only the exchange with the server happens between these two times.
        let start = self.now();
        let replied = self.answer(calls, packed, now_ms).await;
        let end = self.now();
        let answer = match replied {
            Ok(answer) => answer,
            Err(error) if error.lost_the_reply() => {
                let why = error.to_string();
                self.error = Some(error);
                // The reply may still arrive, and would be taken for the reply to the next request.
                self.instance.connection = None;
                RaceAnswer::Lost(why)
            }
            Err(error) => {
                self.error = Some(error);
                return false;
            }
        };
        let acquired = answer == RaceAnswer::Acquired;
        self.events.push(RaceEvent { worker: self.instance.id, act, answer, start, end });
        acquired
    }

    async fn answer(
        &mut self,
        calls: &[Call],
        packed: &[Packed],
        now_ms: u64,
    ) -> Result<RaceAnswer, StoreError> {
        let Some(connection) = &mut self.instance.connection else {
            return Ok(RaceAnswer::Lost("not connected".to_owned()));
        };
        let inputs = inputs(self.course, &self.instance.owner, &self.response, now_ms);
        let mut sender = PackedCalls { connection, packed, pause: self.pause };
        let executed = execute(&inputs, calls, &mut sender).await?;
        Ok(answer_of(&inputs, executed))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

fn inputs<'a>(
    course: Course<'a>,
    owner: &'a str,
    response: &'a Response,
    now_ms: u64,
) -> StepInputs<'a> {
    let schema = course.service.schema;
    // All requests have the same payload. A hash that is never empty differs from one that was
    // lost.
    let fingerprint = if schema.has_fingerprints() { FINGERPRINT } else { "" };
    StepInputs { now_ms, fingerprint, ..StepInputs::new(schema, course.key, owner, response) }
}

fn pack_calls(course: Course<'_>, calls: &[Call], inputs: &StepInputs<'_>) -> Vec<Packed> {
    let mut packed = Vec::with_capacity(calls.len());
    for (index, call) in calls.iter().enumerate() {
        packed.push(course.service.pack(StepCall { inputs, call, index }));
    }
    packed
}

/// Sends requests that were packed ahead of time, and pauses between the calls of a step.
struct PackedCalls<'w> {
    connection: &'w mut Connection,
    packed: &'w [Packed],
    pause: Duration,
}

impl CallSender for PackedCalls<'_> {
    type Error = StoreError;

    async fn send_call(&mut self, call: StepCall<'_>) -> Result<StepReply, StoreError> {
        if call.index > 0 && !self.pause.is_zero() {
            tokio::time::sleep(self.pause).await;
        }
        let reply = self.connection.ask(&self.packed[call.index]).await?;
        // On NOSCRIPT the server executed nothing. Sending the whole script executes it once.
        if is_no_script(&reply) && matches!(call.call.action, Action::Script { .. }) {
            return self.connection.ask(&pack(call.words())).await;
        }
        Ok(reply)
    }
}

/// The outcome of a step for the worker.
fn answer_of(inputs: &StepInputs<'_>, executed: ExecutedStep<'_>) -> RaceAnswer {
    let (reply, matched) = match executed {
        ExecutedStep::Decided { reply, matched, .. } => (reply, matched),
        ExecutedStep::Unlisted { reply, .. } => {
            return RaceAnswer::Wrong(format!("the schema does not know {}", words(&reply)));
        }
        ExecutedStep::Undecided => {
            let why = "the lock was held, and then nothing was there";
            return RaceAnswer::Wrong(why.to_owned());
        }
    };
    match matched.meaning() {
        Meaning::Acquired => RaceAnswer::Acquired,
        Meaning::Conflict => RaceAnswer::Conflict,
        Meaning::Replay => RaceAnswer::Replay(inputs.carried_response(matched, &reply)),
        Meaning::Stored | Meaning::Renewed => RaceAnswer::Stored,
        Meaning::Refused => RaceAnswer::Refused,
        Meaning::Released => RaceAnswer::Released,
        Meaning::Fail | Meaning::Mismatch | Meaning::Next => {
            RaceAnswer::Wrong(format!("the request fails on {}", words(&reply)))
        }
    }
}
