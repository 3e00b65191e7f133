//! The calls of a service's own step, each guarded by what was seen right before it.

use anyhow::Result;

use crate::domain::record::{Content, Identity, Observation, Record, age, locate};
use crate::domain::schema::{Meaning, Step, TtlOf};
use crate::domain::step::{Request, StepReply};
use crate::exit::{Exit, Stop};
use crate::render::change::Report;
use crate::render::escape;
use crate::store::{Hold, StepOutcome, StoreError, Writer};

/// The TTL of a lock that is taken for a step, in milliseconds, where the service gives its locks none: long enough for the step.
const HELD_MS: u64 = 60_000;

/// A service's own step, to be done by hand.
pub struct ManualStep<'a> {
    pub step: &'a Step,
    /// The step's name, the record as it was shown, and what the service is predicted to answer.
    pub report: Report<'a>,
    pub what: &'static str,
    /// What the step's placeholders stand for.
    pub request: Request<'a>,
    /// The value of a lock that is taken for the step, at the moment of the step's first call.
    pub hold: Option<Content>,
    /// The role of the Redis key that the audit log names.
    pub role: usize,
    pub question: &'static str,
    /// What is said after a step that was done.
    pub afterwards: Option<String>,
    /// True where what the schema foretells of the next request was seen on a private server, or needs not be.
    pub vouched: bool,
}

pub struct StepResult {
    pub means: Option<Meaning>,
    /// The reply; `None` when the reply was lost, and reading back told the outcome.
    pub reply: Option<StepReply>,
    pub now: Record,
}

impl StepResult {
    pub fn is_done(&self) -> bool {
        matches!(self.means, Some(Meaning::Acquired | Meaning::Stored | Meaning::Released))
    }
}

impl ManualStep<'_> {
    /// Makes the step's calls, each guarded by what was there right before it.
    ///
    /// # Errors
    /// Changed: the record is no longer as it was shown. Partial: a call before changed something. Outcome unknown: the reply
    /// was lost, and reading back did not tell.
    pub(super) async fn make_calls(
        &self,
        writer: &Writer,
        read_back: impl Fn(&Record) -> Option<Meaning>,
    ) -> Result<StepResult> {
        let mut seen = self.report.record.seen.clone();
        let hashes = self.report.record.schema.hashes();
        let mut before_hold = None;
        for (index, call) in self.step.calls.iter().enumerate() {
            let hold = self.hold().filter(|_| index == 0);
            let guard = writer.call(&seen, hold.as_ref(), self.request.words(call), &hashes).await;
            let (reply, before, after) = match guard.map_err(|error| self.in_between(error.into(), index, &seen))? {
                StepOutcome::Made { reply, before, after } => (reply, before, after),
                StepOutcome::Changed => return Err(self.in_between(changed().into(), index, &seen)),
                StepOutcome::Lost { now, why } => return self.after_lost_reply(writer, now, &why, read_back),
            };
            before_hold = hold.map(|_| before).or(before_hold);
            let known = reply.as_ref().ok().and_then(|reply| self.request.listener().recognise(call, reply));
            let means = known.map(|known| known.means);
            let mut now = after;
            if let (Some(before), false) = (&before_hold, matches!(means, Some(Meaning::Stored | Meaning::Next))) {
                self.give_back(writer, before, &now).await?;
                now.clone_from(before);
            }
            let reply = reply.map_err(|error| self.in_between(error.into(), index, &now))?;
            if means != Some(Meaning::Next) {
                return Ok(StepResult { means, reply: Some(reply), now: self.record_of(now) });
            }
            seen = now;
        }
        Err(self.in_between(Stop::new(Exit::No, "no reply of the step decided").into(), self.step.calls.len(), &seen))
    }

    fn hold(&self) -> Option<Hold> {
        let schema = &self.report.record.schema;
        let ttl_ms = schema.ttl(TtlOf::Lock).map_or(HELD_MS, age::millis).max(1);
        Some(Hold { role: schema.lock_role(), value: self.hold.clone()?, ttl_ms })
    }

    /// Takes back the lock that was taken for a step which then did not store.
    async fn give_back(&self, writer: &Writer, before: &Observation, after: &Observation) -> Result<()> {
        match writer.put_back(before, after).await {
            Ok(true) => Ok(()),
            left => {
                let why = left.err().map_or_else(|| "it changed meanwhile".to_owned(), |error| error.to_string());
                Err(Stop::new(
                    Exit::Partial,
                    format!("the step did not store, and the lock taken for it is left: {why}"),
                )
                .hint("inspect the key; it goes with its TTL, and what stood there is in the backup")
                .into())
            }
        }
    }

    /// The error of a call, as a partial one where the calls before it changed something.
    fn in_between(&self, error: anyhow::Error, made: usize, seen: &Observation) -> anyhow::Error {
        if !Identity::of(&self.report.record.seen).differs(seen) {
            return error;
        }
        let all = self.step.calls.len();
        Stop::new(Exit::Partial, format!("{error:#}; {made} of the step's {all} calls were made"))
            .hint("inspect the key: what it is now tells")
            .into()
    }

    /// What came of a call whose reply was lost, from the record as it is now.
    fn after_lost_reply(
        &self,
        writer: &Writer,
        now: Option<Observation>,
        why: &StoreError,
        read_back: impl Fn(&Record) -> Option<Meaning>,
    ) -> Result<StepResult> {
        let now = now.map(|now| self.record_of(now));
        if let Some(now) = now
            && let Some(means) = read_back(&now)
        {
            return Ok(StepResult { means: Some(means), reply: None, now });
        }
        let what = format!("the {} step for {}", self.report.name, escape::text(&self.report.record.key));
        Err(StoreError::OutcomeUnknown { target: writer.name(), what, why: why.to_string() }.into())
    }

    fn record_of(&self, seen: Observation) -> Record {
        locate::read_as(&self.report.record.schema, &self.report.record.key, seen)
    }
}

fn changed() -> Stop {
    Stop::new(Exit::Changed, "the record changed since it was shown; nothing was done")
        .hint("inspect it again: its worker may be at it")
}
