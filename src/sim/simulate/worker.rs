//! One instance of the service at work on one request: what it sends, and what its client sees.

use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::abort::Played;
use super::job::Job;
use super::run::Run;
use super::story::{Begun, LONG, Lock, Operation};
use super::worker_calls::{Calls, Met};
use crate::domain::exploration::Stage;
use crate::domain::schema::{Meaning, OnFailure};
use crate::domain::simulation::{Execution, Told};
use crate::domain::step::Request;
use crate::sim::service::Prepared;
use crate::store::Connection;

/// One instance of the service, with one request.
pub(super) struct Worker<'s> {
    pub(super) calls: Calls<'s>,
    pub(super) job: Job,
    /// The time by the worker's clock when it began, in milliseconds since the epoch.
    now_ms: u64,
    /// How long its lock lives for certain, where the story reckons with that.
    lives: Option<Duration>,
}

impl<'s> Worker<'s> {
    pub(super) fn new(run: Rc<Run<'s>>, name: &str, operation: Operation, lock: Lock, connection: Connection) -> Self {
        let seconds = |ttl: Duration| ttl.as_millis().div_ceil(1_000).to_string();
        let lock_ttl = match lock {
            Lock::Short => seconds(run.lock_ttl),
            Lock::Long => seconds(LONG),
            Lock::Own => seconds(run.schema().lock_ttl),
            Lock::Raw(text) => text.to_owned(),
        };
        let job = Job::new(&Uuid::new_v4().to_string(), operation, lock_ttl);
        let lives = match lock {
            Lock::Short => Some(run.lock_ttl),
            Lock::Long | Lock::Own => None,
            Lock::Raw(text) => {
                let seconds = text.parse().ok().filter(|seconds| *seconds > 0.0);
                seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            }
        };
        let now_ms = run.now_ms;
        Self { calls: Calls::new(run, name, connection), job, now_ms, lives }
    }

    pub(super) async fn begins(&mut self) -> Played<Begun> {
        self.calls.forget();
        self.begins_again().await
    }

    /// Begins once more. The sequence shows the calls only where they come to something else than before.
    pub(super) async fn begins_again(&mut self) -> Played<Begun> {
        let calls = self.begin_calls();
        self.begins_with(0..calls).await.map(|begun| begun.unwrap_or_else(|| Begun::Fails("no reply decided".into())))
    }

    pub(super) fn begin_calls(&self) -> usize {
        self.calls.run.schema().begin_calls().len()
    }

    /// Makes some calls of the begin step; `None` when the calls behind them decide.
    pub(super) async fn begins_with(&mut self, calls: Range<usize>) -> Played<Option<Begun>> {
        if calls.start == 0 && self.calls.run.schema().lapses() {
            self.now_ms = self.calls.run.time_ms();
        }
        let step = self.calls.run.service.begin(&self.request());
        let since = Instant::now();
        let Some(met) = self.performs("begins", &step[calls]).await? else { return Ok(None) };
        let begun = match met {
            Met::Error(why) => Begun::Fails(why),
            Met::Unreachable(why) => Begun::Unreachable(why),
            Met::Said(said) => match said.means {
                Meaning::Acquired => {
                    self.holds_the_lock(since);
                    Begun::Acquired
                }
                Meaning::Conflict => Begun::Conflict(said.words),
                Meaning::Mismatch => Begun::Mismatch(said.words),
                Meaning::Replay => {
                    self.calls.run.told(self.job.operation, Told::Done(said.carried));
                    Begun::Replayed
                }
                _ => Begun::Fails(said.words),
            },
        };
        Ok(Some(begun))
    }

    /// The handler makes the operation, whose effect comes about and is counted.
    pub(super) fn works(&mut self) {
        self.job.makes(&self.calls.name);
        self.executed(true);
        self.calls.note(&format!("makes the {}", self.job.operation.what), None, None);
    }

    /// The handler asks for the operation, which does not come about.
    pub(super) fn works_in_vain(&mut self) {
        self.job.makes_nothing(&self.calls.name);
        self.executed(false);
        let what = format!("asks for the {}, which does not come about", self.job.operation.what);
        self.calls.note(&what, None, None);
    }

    fn executed(&mut self, effect: bool) {
        let response = self.request().replayed();
        let (worker, operation) = (self.calls.name.clone(), self.job.operation.what);
        self.calls.run.history.borrow_mut().executions.push(Execution { worker, operation, effect, response });
    }

    /// Renews the lock after a pause, where the service has such a step; false when the lock is the worker's no more.
    pub(super) async fn may_go_on(&mut self) -> Played<bool> {
        let Some(step) = self.calls.run.service.renew(&self.request()) else { return Ok(true) };
        let met = self.performs("renews its lock", &step).await?;
        let renewed = met.and_then(|met| met.means()) == Some(Meaning::Renewed);
        if !renewed {
            self.calls.note("stops: the lock is not its own", None, Some("an error".to_owned()));
        }
        Ok(renewed)
    }

    pub(super) async fn completes(&mut self) -> Played<bool> {
        let calls = self.calls.run.schema().complete_calls().len();
        self.completes_with(0..calls).await
    }

    /// Completes after the worker's lock has run out, and remarks what became of the others' lock or result, `over`.
    pub(super) async fn completes_late(&mut self, over: &str) -> Played {
        let step = self.calls.run.service.complete(&self.request());
        let met = self.performs("completes", &step).await?;
        let what = match met {
            Some(met) if met.means() == Some(Meaning::Stored) => format!("stored over {over}"),
            met => format!("refused: {}", met.map_or_else(|| "no reply".to_owned(), |met| met.words())),
        };
        self.calls.run.remark(format!("the late result of {} is {what}", self.calls.name));
        Ok(())
    }

    /// Makes some calls of the complete step; true when the result is stored.
    pub(super) async fn completes_with(&mut self, calls: Range<usize>) -> Played<bool> {
        let step = self.calls.run.service.complete(&self.request());
        let met = self.performs("completes", &step[calls]).await?;
        Ok(met.and_then(|met| met.means()) == Some(Meaning::Stored))
    }

    /// Releases, where the service has such a step; true when the lock is gone.
    pub(super) async fn releases(&mut self) -> Played<bool> {
        let Some(step) = self.calls.run.service.release(&self.request()) else { return Ok(false) };
        let met = self.performs("releases", &step).await?;
        Ok(met.and_then(|met| met.means()) == Some(Meaning::Released))
    }

    /// The handler fails without effect, and the service stores the error, releases the lock, or keeps it.
    pub(super) async fn fails(&mut self) -> Played {
        self.breaks();
        match self.calls.run.schema().on_failure() {
            OnFailure::Store => _ = self.completes().await?,
            OnFailure::Release => _ = self.releases().await?,
            OnFailure::Keep => {}
        }
        Ok(())
    }

    /// The handler fails without effect.
    pub(super) fn breaks(&mut self) {
        self.job.fails();
        self.executed(false);
        self.calls.note("fails: the provider is unavailable", None, Some("500".to_owned()));
    }

    /// Makes one call of one part of its work; `None` when the next call decides.
    pub(super) async fn sends(&mut self, stage: Stage, index: usize) -> Played<Option<Met>> {
        let (service, request) = (&self.calls.run.service, self.request());
        let (what, step) = match stage {
            Stage::Begin => ("begins", service.begin(&request)),
            Stage::Renew => ("renews its lock", service.renew(&request).unwrap_or_default()),
            Stage::Complete | Stage::StoreFailure => ("completes", service.complete(&request)),
            Stage::Release => ("releases", service.release(&request).unwrap_or_default()),
        };
        self.performs(what, step.get(index..=index).unwrap_or_default()).await
    }

    pub(super) fn crashes(self) {
        self.calls.note("crashes", None, None);
    }

    /// From here on the worker reaches no Redis.
    pub(super) fn loses_redis(&mut self) {
        self.calls.connection = None;
        self.calls.run.note("network", &format!("{} is cut off from Redis", self.calls.name), None, None);
    }

    /// Notes that a lock which is to run out was asked for at `since`, and was got.
    pub(super) fn holds_the_lock(&self, since: Instant) {
        if let Some(lives) = self.lives {
            self.calls.run.is_held(since, lives);
        }
    }

    /// Makes a step's calls. What they come to counts only while the lock is held that the story takes for held.
    async fn performs(&mut self, what: &str, step: &[Prepared<'s>]) -> Played<Option<Met>> {
        let run = Rc::clone(&self.calls.run);
        let met = self.calls.make(what, step, &self.job.request(run.schema(), &run.key, self.now_ms)).await?;
        run.in_time()?;
        Ok(met)
    }

    pub(super) fn request(&self) -> Request<'_> {
        self.job.request(self.calls.run.schema(), &self.calls.run.key, self.now_ms)
    }
}
