//! A service's own step, executed manually on one record: confirmed, backed up, executed only if
//! the record is as it was shown, and logged. The caller predicts the reply. If the reply is lost,
//! the record is read back.

use std::time::SystemTime;

use anyhow::Result;

use super::journal::{Journal, JournalStep};
use super::one_record::time_for;
use super::summary::{CHANGED, DRY_RUN, INSPECT_AGAIN};
use super::summary::{in_backup, write_report};
use crate::args::{Output, StepArgs};
use crate::domain::history::{OUTCOME_UNKNOWN, PARTIAL};
use crate::domain::manual_step;
use crate::domain::record::{Identity, Observation, Record, age, locate};
use crate::domain::schema::{Meaning, State, Step, TtlOf};
use crate::domain::step::{
    CallSender, ExecutedStep, NextRequest, StepCall, StepInputs, StepKind, StepReply, execute,
};
use crate::exit::{CommandError, Exit};
use crate::interrupt::Interrupt;
use crate::render::change::{StepOutcome, StepReport};
use crate::render::{escape, words};
use crate::session::Session;
use crate::store::backup::RecordLabel;
use crate::store::{GuardedOutcome, StepLock, StoreError, Writer};

/// The TTL of a lock that is taken for a step, in milliseconds, if the service gives its locks
/// none: long enough for the step. If the step does not remove the lock, it soon expires.
const STEP_LOCK_MS: u64 = 60_000;

/// A service's own step, to be executed manually.
pub struct ManualStep<'a> {
    /// The calls of the service.
    pub step: &'a Step,
    /// The step's name, the record as it was shown, and what the service is predicted to answer.
    pub report: StepReport<'a>,
    /// The values of the step's placeholders; the time is the one at which the record was read.
    pub inputs: StepInputs<'a>,
    /// True if idemctl takes a lock for the step, in the transaction of the step's first call. Only
    /// whether, and not which: a lock may contain the time, so it is built right before the call.
    pub needs_step_lock: bool,
    /// True if what the schema predicts of the next request was seen on a temporary local Redis, or
    /// needs not be.
    pub is_verified: bool,
}

/// The outcome of a step, or why there is none, and an error if the log may lack the step.
pub type StepResult = (Result<StepOutcome>, Result<()>);

impl<'a> ManualStep<'a> {
    /// The step of this kind with these inputs, without a prediction.
    pub fn new(kind: StepKind, record: &'a Record, step: &'a Step, inputs: StepInputs<'a>) -> Self {
        // A script that is sent no owner may assign one, which the lock then shows.
        let is_sent = kind != StepKind::Begin || record.schema.begin_sends_owner();
        let owner = Some(inputs.owner).filter(|owner| is_sent && !owner.is_empty());
        let report = StepReport { kind, record, predicted: None, owner, rehearsed_next: None };
        Self { step, report, inputs, needs_step_lock: false, is_verified: true }
    }
}

impl ManualStep<'_> {
    /// Asks for confirmation, executes the step, and prints its outcome. A dry run only prints the
    /// prediction. If the reply is lost, `read_back` infers the outcome from the record. The exit
    /// code is [`Exit::No`] unless the step succeeded.
    ///
    /// # Errors
    /// `Exit::Changed`: the record is no longer as it was shown, and nothing was done. Also an
    /// unknown outcome, `Exit::Partial`, a missing confirmation, and the server's errors.
    pub async fn run(
        &self,
        session: &mut Session,
        args: &StepArgs,
        read_back: impl Fn(&Record) -> Option<Meaning>,
    ) -> Result<Exit> {
        let beside = self.keys_beside_record(self.step.calls.len());
        if !beside.is_empty() {
            session.ui.warning(&format!(
                "this step may also change {beside}, of which idemctl keeps no copy, so that undo \
                does not put it back"
            ));
        }
        if args.change_args.confirm_args.dry_run {
            self.write(session, args.output, None, None)?;
            let expected = match self.report.predicted {
                Some(predicted) => format!("; the expected reply is {}", predicted.as_str()),
                None => String::new(),
            };
            session.ui.status(&format!("{DRY_RUN}{expected}"));
            return Ok(Exit::Done);
        }
        let writer = session.connect_writer(&args.change_args.confirm_args).await?;
        let interrupt = Interrupt::listen()?;
        let confirm_args = &args.change_args.confirm_args;
        let question = match self.report.kind {
            StepKind::Begin => "Begin with this key?",
            StepKind::Complete => "Store this response?",
            _ => "Release this lock?",
        };
        confirm_args.confirm(session, question, &writer.name(), &interrupt).await?;
        // From here on signals are ignored, because a step without its line in the log cannot be
        // undone. The calls are few, and each has a timeout.
        interrupt.handle_terminate()?;
        let (outcome, backup) = self.execute_and_log(session, args, &writer, read_back).await?;
        self.write(session, args.output, Some(&outcome), backup.as_deref())?;
        let difference = self.other_outcome(&outcome);
        self.print_outcome(session, &outcome, backup.as_deref(), difference.as_deref());
        // An error of the replicas comes last, because the step was executed, and its reply must be
        // reported.
        writer.replicas_have_it()?;
        let is_done = self.took_effect(&outcome) && difference.is_none();
        Ok(if is_done { Exit::Done } else { Exit::No })
    }

    /// Writes the backup, executes the step's calls, and writes the audit log. Returns the outcome
    /// and the file of the backup.
    async fn execute_and_log(
        &self,
        session: &mut Session,
        args: &StepArgs,
        writer: &Writer,
        read_back: impl Fn(&Record) -> Option<Meaning>,
    ) -> Result<(StepOutcome, Option<String>)> {
        let started_at = session.now();
        let has_values = !self.report.record.seen.is_absent();
        let mut journal =
            Journal::open(session, &args.change_args, self.report.kind.as_str(), has_values)?;
        let ended = match self.execute_and_note(&mut journal, writer, started_at, read_back).await {
            // An error of the step matters more than one of the log.
            Ok((executed, noted)) => executed.and_then(|outcome| noted.map(|()| outcome)),
            Err(error) => {
                let (_, ended) = journal.close(Err(error), started_at).await;
                return ended;
            }
        };
        let (backup, ended) = journal.close(ended, session.now()).await;
        Ok((ended?, backup.map(|file| file.display().to_string())))
    }

    /// Backs the record up, executes the step's calls, and notes what they did. The caller opens
    /// and closes the journal, which may be that of many steps.
    ///
    /// # Errors
    /// The record could not be backed up; nothing was done.
    pub async fn execute_and_note(
        &self,
        journal: &mut Journal,
        writer: &Writer,
        started_at: SystemTime,
        read_back: impl Fn(&Record) -> Option<Meaning>,
    ) -> Result<StepResult> {
        let record = self.report.record;
        let label = RecordLabel::of(record);
        journal.back_up(writer, &record.seen, &label, started_at).await?;

        let executed = self.execute_calls(writer, read_back).await;

        let mut noted = Ok(());
        if let Some(audit_word) = self.audit_word_for(&executed) {
            // If the reply was lost, the record may have changed again since.
            let mut after = None;
            if let Ok(outcome) = &executed
                && outcome.reply.is_some()
            {
                after = Some(&outcome.now.seen);
            }
            let key_index = match self.report.kind {
                StepKind::Complete => record.schema.result_key_index(),
                _ => record.schema.lock_key_index(),
            };
            let step = JournalStep { label: &label, before: &record.seen, after, key_index };
            noted = journal.note_step(writer, step, audit_word, started_at).await;
        } else {
            journal.nothing_changed();
        }
        Ok((executed, noted))
    }

    /// Executes the step's calls. Each one has no effect unless the record is as it was after the
    /// call before.
    ///
    /// # Errors
    /// `Exit::Changed`: the record is no longer as it was shown. `Exit::Partial`: a call before
    /// changed something. An unknown outcome: the reply was lost, and reading back did not tell.
    /// The server cannot be read, or does not tell a time that the step needs.
    async fn execute_calls(
        &self,
        writer: &Writer,
        read_back: impl Fn(&Record) -> Option<Meaning>,
    ) -> Result<StepOutcome> {
        let record = self.report.record;
        let mut inputs = self.inputs.clone();
        // The value of a lock that is taken for the step may contain the time.
        let needs_time = record.schema.sends_time(self.step)
            || self.needs_step_lock && record.schema.write.keeps_time();
        let mut seen = record.seen.clone();
        // The operator may have thought for minutes since the record was read. A result that is
        // dated then would expire too early, and a lock would seem to hold for longer than it does.
        if needs_time || record.schema.may_contain_time() {
            seen.server_ms = writer.time_at(&record.seen).await?;
        }
        if needs_time {
            inputs.now_ms = time_for(&record.schema, seen.server_ms, true)?;
        }
        let mut calls = GuardedCalls {
            writer,
            step_lock: self.step_lock(&inputs)?,
            hash_key_indexes: record.schema.hash_key_indexes(),
            seen,
            before_lock: None,
            calls_made: 0,
        };
        let executed = match execute(&inputs, &self.step.calls, &mut calls).await {
            Ok(executed) => executed,
            // A slow server may still execute the call, so nothing is put back here. A lock that
            // was taken for the step expires by its TTL.
            Err(CallFailed::Lost { now, why, sent_to }) => {
                return self.after_lost_reply(sent_to, now, &why, read_back);
            }
            Err(CallFailed::ChangedMeanwhile) if calls.calls_made == 0 => {
                return Err(changed().into());
            }
            // A lock that was taken for the step must not stay if the step did not store.
            Err(CallFailed::ChangedMeanwhile) => {
                let left = calls.take_back_lock().await;
                let why = CommandError::new(Exit::Changed, "the record changed during the step");
                return Err(self.in_between(why.into(), &calls, left));
            }
            Err(CallFailed::WithoutEffect(error) | CallFailed::ErrorReply(error)) => {
                let left = calls.take_back_lock().await;
                return Err(self.in_between(error.into(), &calls, left));
            }
        };
        let means = executed.meaning();
        let (reply, last) = match executed {
            ExecutedStep::Decided { reply, index, .. }
            | ExecutedStep::Unlisted { reply, index } => (reply, index),
            ExecutedStep::Undecided => {
                calls.calls_made = self.step.calls.len();
                let left = calls.take_back_lock().await;
                let undecided =
                    CommandError::new(Exit::No, "none of the step's replies decided its outcome");
                return Err(self.in_between(undecided.into(), &calls, left));
            }
        };
        // A stored result replaces the lock, or the step has deleted it.
        if means != Some(Meaning::Stored)
            && let Some(left) = calls.take_back_lock().await
        {
            calls.calls_made = self.step.calls.len();
            let why = CommandError::new(Exit::No, "the step did not store");
            return Err(self.in_between(why.into(), &calls, Some(left)));
        }
        let mut now = self.record_of(calls.seen);
        if self.report.kind == StepKind::Begin && !Identity::of(&record.seen).differs(&now.seen) {
            // The client decides by the value that it read.
            let reads = self.step.calls[last].reads.is_some();
            let lacks_field = record.readings.iter().any(|read| read.lacks_field().is_some());
            if reads
                && (means.is_some() || lacks_field)
                && let Some(why) = self.why_unpredicted()
            {
                let (reply, calls) = (Some(reply), last + 1);
                return Ok(StepOutcome { means: None, unclear: Some(why), reply, now, calls });
            }
            let changes_others = !self.keys_beside_record(last + 1).is_empty();
            if let Some(why) = manual_step::why_disproved(&now, means, changes_others) {
                now.next_request = NextRequest::unknown(Some(why));
            }
        }
        Ok(StepOutcome { means, unclear: None, reply: Some(reply), now, calls: last + 1 })
    }

    /// The lock that is taken for the step, if one is.
    ///
    /// # Errors
    /// Usage: no lock of this request would let the step store.
    fn step_lock(&self, inputs: &StepInputs<'_>) -> Result<Option<StepLock>, CommandError> {
        if !self.needs_step_lock {
            return Ok(None);
        }
        let record = self.report.record;
        let schema = &record.schema;
        let ttl_ms = schema.ttl(TtlOf::Lock).map_or(STEP_LOCK_MS, age::millis).max(1);
        let value = manual_step::lock_for_step(record, inputs)
            .map_err(|why| CommandError::usage(format!("{}: {why}", schema.name)))?;
        Ok(value.map(|value| StepLock { key_index: schema.lock_key_index(), value, ttl_ms }))
    }

    /// The error that ended the step, as a partial one if the calls before it changed something.
    /// `left` says why the lock that was taken for the step is still there, if it is.
    fn in_between(
        &self,
        error: anyhow::Error,
        calls: &GuardedCalls<'_>,
        left: Option<String>,
    ) -> anyhow::Error {
        let mut message = format!("{error:#}");
        if let Some(why) = &left {
            message
                .push_str(&format!(", and the lock that was taken for the step remains ({why})"));
        } else if !Identity::of(&self.report.record.seen).differs(&calls.seen) {
            return error;
        }
        let made = calls.calls_made;
        let all = self.step.calls.len();
        message.push_str(&format!("; {made} of the step's {all} calls were made"));
        CommandError::new(Exit::Partial, message).hint(INSPECT_AGAIN).into()
    }

    /// The outcome of a call whose reply was lost, from the record as it is now.
    fn after_lost_reply(
        &self,
        target: String,
        now: Option<Observation>,
        why: &StoreError,
        read_back: impl Fn(&Record) -> Option<Meaning>,
    ) -> Result<StepOutcome> {
        if let Some(now) = now {
            let now = self.record_of(now);
            if let Some(means) = read_back(&now) {
                let calls = self.step.calls.len();
                let means = Some(means);
                return Ok(StepOutcome { means, unclear: None, reply: None, now, calls });
            }
        }
        let key = escape::text(&self.report.record.key);
        let what = format!("the {} step for {key}", self.report.kind.as_str());
        Err(StoreError::OutcomeUnknown { target, what, why: why.to_string() }.into())
    }

    /// Why the schema does not say how the service answers, if this is a begin step without a
    /// prediction.
    fn why_unpredicted(&self) -> Option<String> {
        if self.report.kind != StepKind::Begin || self.report.predicted.is_some() {
            return None;
        }
        manual_step::why_unpredicted(self.report.record, self.inputs.fingerprint)
    }

    fn record_of(&self, seen: Observation) -> Record {
        let record = self.report.record;
        locate::undiagnosed_record(&record.schema, &record.key, seen)
    }

    /// What the audit log calls the step; `None` if nothing was changed, which is not logged.
    fn audit_word_for(&self, executed: &Result<StepOutcome>) -> Option<&'static str> {
        let done = match self.report.kind {
            StepKind::Begin => "begun",
            StepKind::Complete => "completed",
            _ => "released",
        };
        let error = match executed {
            Ok(outcome) if self.took_effect(outcome) => return Some(done),
            // Its effect may be in another Redis key.
            Ok(outcome)
                if outcome.is_done() && !self.keys_beside_record(outcome.calls).is_empty() =>
            {
                return Some(done);
            }
            // A service may change a lock that it does not take, e.g. give the lock a TTL.
            Ok(outcome) if self.is_changed_by(outcome) => return Some("changed"),
            Ok(_) => return None,
            Err(error) => error,
        };
        if let Some(StoreError::OutcomeUnknown { .. }) = error.downcast_ref() {
            return Some(OUTCOME_UNKNOWN);
        }
        if let Some(CommandError { exit: Exit::Partial, .. }) = error.downcast_ref() {
            return Some(PARTIAL);
        }
        None
    }

    /// True if the step acquired, stored or released as it should. A reply that means "acquired" is
    /// not enough, because the script may have taken no lock.
    pub fn took_effect(&self, outcome: &StepOutcome) -> bool {
        let took_no_lock = outcome.means == Some(Meaning::Acquired)
            && outcome.now.state != State::InProgress
            && !self.is_changed_by(outcome);
        outcome.is_done() && !took_no_lock
    }

    /// How the stored result differs from what the operator asked for. Only the read-back shows it
    /// if the completion was not rehearsed.
    fn other_outcome(&self, outcome: &StepOutcome) -> Option<String> {
        if outcome.means != Some(Meaning::Stored) {
            return None;
        }
        let completed = manual_step::predicted_record(self.report.record, &self.inputs, None);
        let result = &outcome.now.seen.keys[completed.schema.result_key_index()];
        manual_step::other_outcome(&completed, &result.content)
    }

    /// The Redis keys that this many calls of the step may change beside those of the record, as a
    /// list; empty if there are none.
    fn keys_beside_record(&self, calls: usize) -> String {
        let record = self.report.record;
        let mut names = Vec::new();
        for redis_key in record.schema.keys_beside_record(&self.step.calls[..calls], &record.key) {
            names.push(escape::text(&redis_key).to_string());
        }
        names.join(", ")
    }

    fn is_changed_by(&self, outcome: &StepOutcome) -> bool {
        Identity::of(&self.report.record.seen).differs(&outcome.now.seen)
    }

    /// Prints what the service answered, how the stored result differs from what the operator asked
    /// for, and what the next request gets now.
    fn print_outcome(
        &self,
        session: &mut Session,
        outcome: &StepOutcome,
        backup: Option<&str>,
        difference: Option<&str>,
    ) {
        let name = &self.report.record.schema.name;
        let backup = in_backup(backup);
        let means = match (outcome.means, &outcome.unclear) {
            (Some(means), _) => means.as_str().to_owned(),
            (None, Some(why)) => format!("not in the schema ({why})"),
            (None, None) => "not in the schema".to_owned(),
        };
        if let Some(reply) = &outcome.reply {
            let left = if self.took_effect(outcome) {
                ""
            } else if self.is_changed_by(outcome) {
                "; it still changed the record"
            } else if !self.keys_beside_record(outcome.calls).is_empty() {
                "; the record is unchanged"
            } else {
                "; nothing was changed"
            };
            let reply = words::reply(reply);
            session.ui.status(&format!("{name} answers {reply}: {means}{left}{backup}"));
        } else {
            session.ui.status(&format!(
                "The reply was lost, but reading back shows that the step was executed: \
                {means}{backup}"
            ));
        }
        if let Some(difference) = difference {
            session
                .ui
                .warning(&format!("{name} did not store this as its schema says: {difference}"));
        }
        let is_completion = self.report.kind == StepKind::Complete;
        let then = if is_completion {
            words::then_of_result(&outcome.now)
        } else {
            words::then(&outcome.now)
        };
        if self.is_verified || !self.took_effect(outcome) {
            session.ui.status(&format!("Read back: {then}."));
        } else {
            let state = outcome.now.state.as_str();
            session.ui.status(&format!(
                "Read back: {state}. According to the schema, {then}. This was not tested."
            ));
        }
        // The owner may be a random UUID, which the operator needs to end the lock.
        if self.report.kind == StepKind::Begin
            && self.took_effect(outcome)
            && let Some(owner) = outcome.now.owner().or(self.report.owner)
        {
            let owner = escape::text(owner);
            session.ui.status(&format!("The lock belongs to {owner}."));
        }
    }

    /// Writes the step as JSON, if JSON is wanted.
    fn write(
        &self,
        session: &mut Session,
        output: Output,
        outcome: Option<&StepOutcome>,
        backup: Option<&str>,
    ) -> Result<()> {
        let report = self.report.json(outcome, backup, output == Output::Jsonl);
        write_report(session, output, &report)
    }
}

/// Sends each call in a transaction that does nothing unless the record is as it was seen right
/// before.
struct GuardedCalls<'a> {
    writer: &'a Writer,
    /// The lock that is taken for the step, in the transaction of its first call.
    step_lock: Option<StepLock>,
    /// The Redis keys that are hashes, by their indexes in the record.
    hash_key_indexes: Vec<usize>,
    /// The record as it is after the last call.
    seen: Observation,
    /// The record before a lock was taken for the step.
    before_lock: Option<Observation>,
    /// Calls that were made before the current one.
    calls_made: usize,
}

/// Why a guarded call has no reply.
enum CallFailed {
    /// The record was no longer as it was seen before the call, so the call had no effect.
    ChangedMeanwhile,
    /// The call was sent, and no reply tells its outcome. `now` is the record afterwards, if it can
    /// be read.
    Lost { now: Option<Observation>, why: StoreError, sent_to: String },
    /// The server replied to the call with an error about itself or the Redis user, e.g. because
    /// the user may not send it. An error of the service's own script is a reply.
    ErrorReply(StoreError),
    /// The call had no effect: it was not sent, or its transaction was not executed.
    WithoutEffect(StoreError),
}

impl CallSender for GuardedCalls<'_> {
    type Error = CallFailed;

    async fn send_call(&mut self, call: StepCall<'_>) -> Result<StepReply, CallFailed> {
        self.calls_made = call.index;
        // In the transaction of the first call, so that nobody sees the lock without the step.
        let step_lock = if call.index == 0 { self.step_lock.as_ref() } else { None };
        let outcome =
            self.writer.call(&self.seen, step_lock, call.words(), &self.hash_key_indexes).await;
        match outcome.map_err(CallFailed::WithoutEffect)? {
            GuardedOutcome::Made { reply, before, after, .. } => {
                if step_lock.is_some() {
                    self.before_lock = Some(before);
                }
                // The next call of the step is guarded by what this one left.
                self.seen = after;
                reply.map_err(CallFailed::ErrorReply)
            }
            GuardedOutcome::ChangedMeanwhile => Err(CallFailed::ChangedMeanwhile),
            GuardedOutcome::Lost { now, why, sent_to } => {
                Err(CallFailed::Lost { now, why, sent_to })
            }
        }
    }
}

impl GuardedCalls<'_> {
    /// Takes back the lock that was taken for a step which then did not store. Says why if the lock
    /// is left.
    async fn take_back_lock(&mut self) -> Option<String> {
        let before = self.before_lock.take()?;
        let put_back = self.writer.put_back(&before, &self.seen).await;
        if put_back.is_ok() {
            self.seen = before;
        }
        put_back.err()
    }
}

impl StepOutcome {
    /// True if the step acquired, stored or released as it should.
    fn is_done(&self) -> bool {
        matches!(self.means, Some(Meaning::Acquired | Meaning::Stored | Meaning::Released))
    }
}

fn changed() -> CommandError {
    CommandError::new(Exit::Changed, format!("the record {CHANGED}")).hint(INSPECT_AGAIN)
}
