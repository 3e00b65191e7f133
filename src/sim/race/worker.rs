//! One worker of a race, and its place in a round.

use std::time::{Duration, Instant};

use crate::domain::race::{Act, Answer, Event};
use crate::domain::record::Response;
use crate::domain::step::{Request, StepReply};
use crate::sim::service::{Prepared, Service};
use crate::store::{Connection, StoreError};

/// One worker: an instance of the service with a connection of its own.
pub(super) struct Worker {
    /// From 1.
    pub(super) id: usize,
    /// The worker's name, where the service checks owners.
    pub(super) owner: String,
    /// `None` after a lost reply, which could still come in place of a later one.
    pub(super) connection: Option<Connection>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    /// True to ask for the lock, for the first time or again.
    pub(super) asks: bool,
    /// True to finish with a lock that is held, or that was just acquired.
    pub(super) finishes: bool,
    /// True when the handler fails, so that finishing is to release.
    pub(super) fails: bool,
}

/// A worker's place in a round: what the worker answers its client, what it is about to send, and what it has seen.
pub(super) struct Seat<'r, 's> {
    worker: &'r mut Worker,
    service: &'r Service<'s>,
    key: &'r [u8],
    response: Response,
    /// The requests of the begin step, packed ahead: when the workers are released they only send.
    begin: Vec<Prepared<'s>>,
    pause: Duration,
    clock: Instant,
    asked: bool,
    pub(super) holds: bool,
    pub(super) won: bool,
    pub(super) events: Vec<Event>,
    /// Why a reply was lost or service refused.
    pub(super) trouble: Option<StoreError>,
}

impl<'r, 's> Seat<'r, 's> {
    pub(super) fn new(worker: &'r mut Worker, service: &'r Service<'s>, key: &'r [u8]) -> Self {
        // Every worker answers differently, so that a replay tells whose response it is.
        let body = format!(r#"{{"worker":{}}}"#, worker.id).into_bytes();
        let response = Response { status: Some(201), headers: Vec::new(), body, whole: true };
        let request =
            Request { now_ms: service.now_ms(), ..Request::new(service.schema, key, &worker.owner, &response) };
        let begin = service.begin(&request);
        Self {
            worker,
            service,
            key,
            response,
            begin,
            pause: Duration::ZERO,
            clock: Instant::now(),
            asked: false,
            holds: false,
            won: false,
            events: Vec::with_capacity(2),
            trouble: None,
        }
    }

    /// Sets how long the worker thinks between the calls of a step, and the moment from which time counts.
    pub(super) fn sit(&mut self, pause: Duration, clock: Instant) {
        self.pause = pause;
        self.clock = clock;
    }

    /// True when the worker can still send.
    pub(super) fn is_connected(&self) -> bool {
        self.worker.connection.is_some()
    }

    /// Plays a turn, and adds what came of it to the events.
    pub(super) async fn play(&mut self, turn: Turn) {
        if turn.asks {
            let act = if self.asked { Act::Retry } else { Act::Begin };
            self.asked = true;
            let begin = std::mem::take(&mut self.begin);
            self.holds = self.perform(&begin, act).await;
            self.won |= self.holds;
            self.begin = begin;
        }
        if turn.finishes && self.holds {
            self.holds = false;
            self.finish(turn.fails).await;
        }
    }

    async fn finish(&mut self, fails: bool) {
        let request = Request {
            now_ms: self.service.now_ms(),
            ..Request::new(self.service.schema, self.key, &self.worker.owner, &self.response)
        };
        if !fails {
            let (step, stores) = (self.service.complete(&request), request.replayed());
            self.perform(&step, Act::Complete(stores)).await;
        } else if let Some(step) = self.service.release(&request) {
            self.perform(&step, Act::Release).await;
        }
    }

    /// Performs a step, and says whether the lock is the worker's now.
    async fn perform(&mut self, step: &[Prepared<'s>], act: Act) -> bool {
        let start = self.now();
        let answered = self.answer(step).await;
        let end = self.now();
        let answer = match answered {
            Ok(answer) => answer,
            Err(error) => {
                let lost = error.lost_the_reply();
                let why = error.to_string();
                self.trouble = Some(error);
                if !lost {
                    return false;
                }
                self.worker.connection = None;
                Answer::Lost(why)
            }
        };
        let acquired = answer == Answer::Acquired;
        self.events.push(Event { worker: self.worker.id, act, answer, start, end });
        acquired
    }

    async fn answer(&mut self, step: &[Prepared<'s>]) -> Result<Answer, StoreError> {
        let Some(connection) = &mut self.worker.connection else { return Ok(Answer::Lost("not connected".to_owned())) };
        for (index, prepared) in step.iter().enumerate() {
            if index > 0 && !self.pause.is_zero() {
                tokio::time::sleep(self.pause).await;
            }
            let mut reply = connection.ask(&prepared.request).await?;
            // A server that has forgotten the script has executed nothing.
            if is_no_script(&reply)
                && let Some(whole) = prepared.whole()
            {
                reply = connection.ask(&whole).await?;
            }
            if let Some(answer) = self.service.read(prepared, reply) {
                return Ok(answer);
            }
        }
        Ok(Answer::Wrong("the lock was held, and then nothing was there".to_owned()))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

fn is_no_script(reply: &StepReply) -> bool {
    matches!(reply, StepReply::Error { code, .. } if code == "NOSCRIPT")
}
