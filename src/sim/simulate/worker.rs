//! One instance of the service at work on one request: what it sends, and what its client sees.

use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use uuid::Uuid;

use super::environment::Played;
use super::run::Take;
use crate::domain::record::response::Response;
use crate::domain::schema::{Meaning, OnFailure};
use crate::domain::simulation::{Execution, Told};
use crate::domain::step::request::Request;
use crate::store::Wire;

use super::worker_calls::Met;

/// How long a lock lives that is not to run out.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// What a client asks for. Requests with the same payload ask for the same operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operation {
    /// In words.
    pub(super) what: &'static str,
    /// A hash of the payload.
    pub(super) fingerprint: &'static str,
}

/// The operation of most stories.
pub(super) const PAYMENT: Operation = Operation { what: "payment of 10", fingerprint: "sha256-of-10" };

/// Another operation, by a client that takes the same key for it.
pub(super) const OTHER_PAYMENT: Operation = Operation { what: "payment of 99", fingerprint: "sha256-of-99" };

/// How long the lock lives that a worker takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lock {
    /// It is to run out in the story.
    Short,
    /// It is not.
    Long,
    /// This text is sent as TTL.
    Raw(&'static str),
}

/// What a begin step came to.
#[derive(Debug)]
pub(super) enum Begun {
    /// The lock is the worker's.
    Acquired,
    /// Another holds it.
    Conflict(String),
    /// The client got the stored response, or that it is done.
    Replayed,
    /// The key is in use for another payload.
    Mismatch(String),
    /// The service fails.
    Fails(String),
    /// Redis could not be reached.
    Unreachable(String),
}

/// One instance of the service, with one request.
pub(super) struct Instance<'s> {
    pub(super) take: Rc<Take<'s>>,
    pub(super) name: String,
    owner: String,
    operation: Operation,
    pub(super) lock_ttl: String,
    pub(super) short: bool,
    pub(super) wire: Option<Wire>,
    pub(super) response: Response,
    error: Option<String>,
    /// What the calls of the step before came to.
    pub(super) met: Vec<String>,
}

impl<'s> Instance<'s> {
    pub(super) fn new(take: Rc<Take<'s>>, name: &str, operation: Operation, lock: Lock, wire: Wire) -> Self {
        let seconds = |ttl: Duration| ttl.as_millis().div_ceil(1_000).to_string();
        let lock_ttl = match lock {
            Lock::Short => seconds(take.lock_ttl),
            Lock::Long => seconds(LONG),
            Lock::Raw(text) => text.to_owned(),
        };
        Self {
            take,
            name: name.to_owned(),
            owner: Uuid::new_v4().to_string(),
            operation,
            lock_ttl,
            short: matches!(lock, Lock::Short),
            wire: Some(wire),
            response: Response::default(),
            error: None,
            met: Vec::new(),
        }
    }

    /// The begin step.
    pub(super) async fn begins(&mut self) -> Played<Begun> {
        self.met.clear();
        self.begins_again().await
    }

    /// The begin step once more; the sequence shows it when it comes to something else than before.
    pub(super) async fn begins_again(&mut self) -> Played<Begun> {
        let calls = self.begin_calls();
        self.begins_with(0..calls).await.map(|begun| begun.unwrap_or_else(|| Begun::Fails("no reply decided".into())))
    }

    /// How many calls the begin step has.
    pub(super) fn begin_calls(&self) -> usize {
        self.take.schema().begin.calls.len()
    }

    /// Some calls of the begin step; `None` when the next ones decide.
    pub(super) async fn begins_with(&mut self, calls: Range<usize>) -> Played<Option<Begun>> {
        let step = self.take.service.begin(&self.request());
        let Some(met) = self.performs("begins", &step[calls]).await? else { return Ok(None) };
        let begun = match met {
            Met::Error(why) => Begun::Fails(why),
            Met::Unreachable(why) => Begun::Unreachable(why),
            Met::Said(said) => match said.means {
                Meaning::Acquired => {
                    if self.short {
                        self.take.is_held();
                    }
                    Begun::Acquired
                }
                Meaning::Conflict => Begun::Conflict(said.words),
                Meaning::Mismatch => Begun::Mismatch(said.words),
                Meaning::Replay => {
                    self.take.told(self.operation, Told::Done(said.carried));
                    Begun::Replayed
                }
                _ => Begun::Fails(said.words),
            },
        };
        Ok(Some(begun))
    }

    /// The handler makes the operation: its effect comes about, and is counted.
    pub(super) fn works(&mut self) {
        self.answers(201, format!(r#"{{"made":"{}","by":"{}"}}"#, self.operation.what, self.name), true);
        self.take.note(&self.name, &format!("makes the {}", self.operation.what), None, None);
    }

    /// The handler asks for the operation, which does not come about.
    pub(super) fn works_in_vain(&mut self) {
        self.answers(200, format!(r#"{{"made":null,"by":"{}"}}"#, self.name), false);
        let what = format!("asks for the {}, which does not come about", self.operation.what);
        self.take.note(&self.name, &what, None, None);
    }

    fn answers(&mut self, status: i64, body: String, effect: bool) {
        let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        self.response = Response { status: Some(status), headers, body: body.into_bytes(), whole: true };
        let response = self.request().replayed();
        let (worker, operation) = (self.name.clone(), self.operation.what);
        self.take.history.borrow_mut().executions.push(Execution { worker, operation, effect, response });
    }

    /// Before it goes on after a pause, a service that can asks for its lock: false when that is not its own any more.
    pub(super) async fn may_go_on(&mut self) -> Played<bool> {
        let Some(step) = self.take.service.renew(&self.request()) else { return Ok(true) };
        let met = self.performs("renews its lock", &step).await?;
        let renewed = met.and_then(|met| met.means()) == Some(Meaning::Renewed);
        if !renewed {
            self.take.note(&self.name, "stops: the lock is not its own", None, Some("an error".to_owned()));
        }
        Ok(renewed)
    }

    /// The complete step; true when its result is stored.
    pub(super) async fn completes(&mut self) -> Played<bool> {
        let calls = self.take.schema().complete.calls.len();
        self.completes_with(0..calls).await
    }

    /// The complete step of a worker whose lock has run out: what it does to the others' is worth a remark.
    pub(super) async fn completes_late(&mut self, over: &str) -> Played {
        let step = self.take.service.complete(&self.request());
        let met = self.performs("completes", &step).await?;
        let what = match met {
            Some(met) if met.means() == Some(Meaning::Stored) => format!("stored over {over}"),
            met => format!("refused: {}", met.map_or_else(|| "no reply".to_owned(), |met| met.words())),
        };
        self.take.remark(format!("the late result of {} is {what}", self.name));
        Ok(())
    }

    /// Some calls of the complete step.
    pub(super) async fn completes_with(&mut self, calls: Range<usize>) -> Played<bool> {
        let step = self.take.service.complete(&self.request());
        let met = self.performs("completes", &step[calls]).await?;
        Ok(met.and_then(|met| met.means()) == Some(Meaning::Stored))
    }

    /// The release step; true when the lock is gone. Services without one do nothing.
    pub(super) async fn releases(&mut self) -> Played<bool> {
        let Some(step) = self.take.service.release(&self.request()) else { return Ok(false) };
        let met = self.performs("releases", &step).await?;
        Ok(met.and_then(|met| met.means()) == Some(Meaning::Released))
    }

    /// The handler fails without effect, and the service does what it does then.
    pub(super) async fn fails(&mut self) -> Played {
        self.error = Some("provider unavailable".to_owned());
        self.answers(500, String::new(), false);
        self.take.note(&self.name, "fails: the provider is unavailable", None, Some("500".to_owned()));
        match self.take.schema().on_failure() {
            OnFailure::Store => _ = self.completes().await?,
            OnFailure::Release => _ = self.releases().await?,
            OnFailure::Keep => {}
        }
        Ok(())
    }

    /// The worker is gone.
    pub(super) fn crashes(self) {
        self.take.note(&self.name, "crashes", None, None);
    }

    /// From here on the worker reaches no Redis.
    pub(super) fn loses_redis(&mut self) {
        self.wire = None;
        self.take.note("network", &format!("{} is cut off from Redis", self.name), None, None);
    }

    pub(super) fn request(&self) -> Request<'_> {
        Request {
            fingerprint: self.operation.fingerprint,
            error: self.error.as_deref(),
            now_ms: self.take.now_ms,
            lock_ttl: Some(&self.lock_ttl),
            ..Request::new(self.take.schema(), &self.take.key, &self.owner, &self.response)
        }
    }
}
