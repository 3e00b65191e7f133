//! The calls of a service's own step, each guarded by what was seen right before it.

use anyhow::Result;

use crate::domain::record::{Content, Identity, Observation, Record, age, locate};
use crate::domain::schema::{Meaning, Step, TtlOf};
use crate::domain::step::{CallPerformer, ExecutedStep, Request, StepCall, StepReply, execute};
use crate::exit::{CommandError, Exit};
use crate::render::change::StepReport;
use crate::render::escape;
use crate::store::{Hold, StepOutcome, StoreError, Writer};

/// The TTL of a lock that is taken for a step, in milliseconds, where the service gives its locks none: long enough for the step.
const HELD_MS: u64 = 60_000;

/// A service's own step, to be done by hand.
pub struct ManualStep<'a> {
    pub step: &'a Step,
    /// The step's name, the record as it was shown, and what the service is predicted to answer.
    pub report: StepReport<'a>,
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

/// Why a guarded call has no reply.
enum CallFailed {
    /// The record was no longer as it was seen before the call.
    Changed,
    /// The call was sent, and no reply tells its outcome. `now` is the record afterwards, if it can be read.
    Lost { now: Option<Observation>, why: StoreError, sent_to: String },
    /// The call was executed, and the reply is an error of the server or about the user.
    Refused(StoreError),
    /// The call was not sent.
    NotSent(StoreError),
}

/// Performs each call in a transaction that does nothing unless the record is as it was seen right before.
struct GuardedCalls<'a> {
    writer: &'a Writer,
    /// The lock that is taken for the step, in the transaction of its first call.
    hold: Option<Hold>,
    hashes: Vec<usize>,
    /// The record as it is after the last call.
    seen: Observation,
    /// The record before a lock was taken for the step.
    before_hold: Option<Observation>,
    /// Calls that were made before the current one.
    made: usize,
}

impl CallPerformer for GuardedCalls<'_> {
    type Error = CallFailed;

    async fn perform(&mut self, call: StepCall<'_>) -> Result<StepReply, CallFailed> {
        self.made = call.index;
        // In the transaction of the first call, so that nobody sees the lock without the step.
        let hold = if call.index == 0 { self.hold.as_ref() } else { None };
        let outcome = self.writer.call(&self.seen, hold, call.words(), &self.hashes).await;
        match outcome.map_err(CallFailed::NotSent)? {
            StepOutcome::Made { reply, before, after } => {
                if hold.is_some() {
                    self.before_hold = Some(before);
                }
                // The next call of the step is guarded by what this one left.
                self.seen = after;
                reply.map_err(CallFailed::Refused)
            }
            StepOutcome::Changed => Err(CallFailed::Changed),
            StepOutcome::Lost { now, why, sent_to } => Err(CallFailed::Lost { now, why, sent_to }),
        }
    }
}

impl GuardedCalls<'_> {
    /// Takes back the lock that was taken for a step which then did not store.
    async fn release_hold(&mut self) -> Result<()> {
        let Some(before) = &self.before_hold else { return Ok(()) };
        let why = match self.writer.put_back(before, &self.seen).await {
            Ok(true) => {
                self.seen.clone_from(before);
                return Ok(());
            }
            Ok(false) => "it changed meanwhile".to_owned(),
            Err(error) => error.to_string(),
        };
        let message = format!("the step did not store, and the lock taken for it is left: {why}");
        let hint = "inspect the key; it goes with its TTL, and what stood there is in the backup";
        Err(CommandError::new(Exit::Partial, message).hint(hint).into())
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
        let record = self.report.record;
        let mut calls = GuardedCalls {
            writer,
            hold: self.hold(),
            hashes: record.schema.hashes(),
            seen: record.seen.clone(),
            before_hold: None,
            made: 0,
        };
        let executed = match execute(&self.request, &self.step.calls, &mut calls).await {
            Ok(executed) => executed,
            Err(CallFailed::Lost { now, why, sent_to }) => {
                return self.after_lost_reply(sent_to, now, &why, read_back);
            }
            Err(CallFailed::Changed) => return Err(self.in_between(changed().into(), &calls)),
            Err(CallFailed::NotSent(error)) => return Err(self.in_between(error.into(), &calls)),
            // The call was executed and failed: the lock that was taken for it must not stay.
            Err(CallFailed::Refused(error)) => {
                calls.release_hold().await?;
                return Err(self.in_between(error.into(), &calls));
            }
        };
        let meaning = executed.meaning();
        let reply = match executed {
            ExecutedStep::Decided { reply, .. } | ExecutedStep::Unrecognised { reply, .. } => reply,
            ExecutedStep::Undecided => {
                calls.made = self.step.calls.len();
                let undecided = CommandError::new(Exit::No, "no reply of the step decided");
                return Err(self.in_between(undecided.into(), &calls));
            }
        };
        // A stored result replaces the lock, or the step has deleted it.
        if meaning != Some(Meaning::Stored) {
            calls.release_hold().await?;
        }
        Ok(StepResult { means: meaning, reply: Some(reply), now: self.record_of(calls.seen) })
    }

    fn hold(&self) -> Option<Hold> {
        let schema = &self.report.record.schema;
        let ttl_ms = schema.ttl(TtlOf::Lock).map_or(HELD_MS, age::millis).max(1);
        Some(Hold { role: schema.lock_role(), value: self.hold.clone()?, ttl_ms })
    }

    /// The error of a call, as a partial one if the calls before it changed something.
    fn in_between(&self, error: anyhow::Error, calls: &GuardedCalls<'_>) -> anyhow::Error {
        if !Identity::of(&self.report.record.seen).differs(&calls.seen) {
            return error;
        }
        let made = calls.made;
        let all = self.step.calls.len();
        CommandError::new(
            Exit::Partial,
            format!("{error:#}; {made} of the step's {all} calls were made"),
        )
        .hint("inspect the key: what it is now tells")
        .into()
    }

    /// What came of a call whose reply was lost, from the record as it is now.
    fn after_lost_reply(
        &self,
        target: String,
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
        let what =
            format!("the {} step for {}", self.report.name, escape::text(&self.report.record.key));
        Err(StoreError::OutcomeUnknown { target, what, why: why.to_string() }.into())
    }

    fn record_of(&self, seen: Observation) -> Record {
        locate::read_as(&self.report.record.schema, &self.report.record.key, seen)
    }
}

fn changed() -> CommandError {
    CommandError::new(Exit::Changed, "the record changed since it was shown; nothing was done")
        .hint("inspect it again: its worker may be at it")
}
