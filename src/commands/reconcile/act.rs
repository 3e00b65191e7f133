//! Completes and releases locks, each by the guarded step of the service: compare, back up, log,
//! and read back.

use std::time::Duration;

use tokio::time::Instant;

use super::hold::is_of_the_server;
use super::lock::{Fate, LockChange};
use super::plan::{completion_of, in_words, release_way};
use super::reconciliation::{Changes, Reconciliation};
use crate::change::ManualStep;
use crate::domain::manual_step;
use crate::domain::reconcile::{DoneResponse, reconcilable};
use crate::domain::record::{Record, Response, TimeLeft, locate};
use crate::domain::schema::{Meaning, State};
use crate::domain::step::{StepInputs, StepKind};
use crate::exit::{CommandError, Exit};
use crate::render::words;
use crate::store::{KeyAction, Outcome, StoreError};

/// The time that a lock must have left when its step is made, so that it does not end during the
/// step.
const MIN_LEFT: Duration = Duration::from_secs(2);

/// Why a lock is left whose step did nothing.
const CHANGED_IN_STEP: &str = "another client changed it, or it ended";

/// After so many errors in a row to reach the server, the other locks are not tried. Each of them
/// would wait for the same timeout.
const MAX_UNREACHABLE: u32 = 3;

impl Reconciliation<'_> {
    /// Stores the responses of all locks that are to be completed.
    pub(super) async fn complete_all(&mut self) {
        for index in 0..self.locks.len() {
            if self.interrupt.is_raised() || self.trouble.is_some() {
                return;
            }
            let Fate::ToComplete(response) = self.locks[index].fate.clone() else { continue };
            if !self.is_ready(index).await {
                continue;
            }
            if let Err(why) = self.complete(index, &response).await {
                self.locks[index].fate = Fate::Refused(why);
            }
            self.keep_held().await;
        }
    }

    /// Releases a lock of which a second answer said that the operation is not done.
    pub(super) async fn release(&mut self, index: usize) {
        if self.interrupt.is_raised() || self.trouble.is_some() || !self.is_ready(index).await {
            return;
        }
        let record = self.locks[index].record.clone();
        match release_way(&record) {
            Ok(Some(step)) => {
                let owner = record.owner().unwrap_or_default();
                let response = Response::default();
                let inputs = StepInputs {
                    now_ms: record.seen.server_ms.unwrap_or_default(),
                    fingerprint: record.fingerprint().unwrap_or_default(),
                    ..StepInputs::new(&record.schema, &record.key, owner, &response)
                };
                let manual = ManualStep::new(StepKind::Release, &record, step, inputs);
                self.execute_step(index, &manual, manual_step::was_released).await;
            }
            Ok(None) => self.remove(index).await,
            Err(why) => self.locks[index].fate = Fate::Left(format!("not done, but {why}")),
        }
    }

    /// Reads a lock right before its step. False if it is not to be changed, which its fate says.
    /// The step compares the record, too, but only a read shows how much time the lock has left,
    /// and whether the expiry in its value has passed.
    async fn is_ready(&mut self, index: usize) -> bool {
        if self.unreachable >= MAX_UNREACHABLE {
            self.locks[index].fate = Fate::Failed("the server cannot be reached".to_owned());
            return false;
        }
        let read = self.read(&[index]).await.pop();
        let lock = &mut self.locks[index];
        let now = match read {
            Some(Ok(now)) => now,
            Some(Err(error)) => {
                self.unreachable += 1;
                lock.fate = Fate::Failed(error.to_string());
                self.not_reached = Some(error);
                return false;
            }
            None => return false,
        };
        self.unreachable = 0;
        if let Some(change) = lock.change_in(&now) {
            lock.has_changed(change);
            return false;
        }
        let record = locate::undiagnosed_record(&lock.record.schema, &lock.record.key, now);
        if record.state != State::InProgress || reconcilable(&record).is_err() {
            // The bytes are the same, so only the expiry in the value can have passed.
            lock.fate = Fate::Left("the expiry in its value has passed".to_owned());
            return false;
        }
        if let TimeLeft::Millis(left) = record.seen.keys[lock.key_index].time_left
            && Duration::from_millis(left) < MIN_LEFT.min(self.args.hold / 2)
        {
            lock.fate = Fate::Left("it would end during the step".to_owned());
            return false;
        }
        lock.record = record;
        lock.read_at = Instant::now();
        true
    }

    /// Stores the response of one lock.
    ///
    /// # Errors
    /// Why it cannot be stored; then nothing was sent.
    async fn complete(&mut self, index: usize, given: &DoneResponse) -> Result<(), String> {
        let record = self.locks[index].record.clone();
        let (step, response, chosen) = completion_of(&record, given)?;
        let inputs = chosen.checked_inputs(&record, &response, None).map_err(in_words)?;
        let manual = ManualStep::new(StepKind::Complete, &record, step, inputs);
        let read_back = |now: &Record| manual_step::was_stored(&record, now, &manual.inputs);
        self.execute_step(index, &manual, read_back).await;
        Ok(())
    }

    /// Makes a step of the service, and notes what became of the lock.
    async fn execute_step(
        &mut self,
        index: usize,
        step: &ManualStep<'_>,
        read_back: impl Fn(&Record) -> Option<Meaning>,
    ) {
        let now = self.session.now();
        let Some(Changes { writer, journal }) = &mut self.changes else { return };
        let mut result = step.execute_and_note(journal, writer, now, &read_back).await;
        if let Err(error) = &result
            && is_of_the_server(error)
        {
            // Nothing was done. The connection may be an old one that was lost meanwhile.
            self.reconnect().await;
            let Some(Changes { writer, journal }) = &mut self.changes else { return };
            result = step.execute_and_note(journal, writer, now, &read_back).await;
        }
        self.check_replicas();
        let (executed, noted) = match result {
            Ok(result) => result,
            Err(error) => {
                self.locks[index].fate = Fate::Failed(format!("no backup: {error:#}"));
                self.note_trouble(error);
                return;
            }
        };
        let fate = match &executed {
            Ok(outcome) => {
                let how = match &outcome.reply {
                    Some(reply) => format!("the service answered {}", words::reply(reply)),
                    None => "as reading back shows".to_owned(),
                };
                if !step.took_effect(outcome) {
                    Fate::Failed(format!("{how} and did not do it"))
                } else if step.report.kind == StepKind::Complete {
                    Fate::Completed(format!("completed: {how}; {}", words::then(&outcome.now)))
                } else {
                    Fate::Released(format!("released: {how}"))
                }
            }
            Err(error) => fate_of(error),
        };
        match &executed {
            Err(error) if is_of_the_server(error) => {
                self.count_unreachable(error);
                self.reconnect().await;
            }
            Err(_) => {}
            Ok(_) => self.unreachable = 0,
        }
        let lock = &mut self.locks[index];
        match fate {
            Fate::Changed(_) => lock.has_changed(LockChange::Other(CHANGED_IN_STEP)),
            fate => lock.fate = fate,
        }
        if let Err(error) = noted {
            self.note_trouble(error);
        }
    }

    /// Removes a lock whose service has no release step, as `force-unlock` does.
    async fn remove(&mut self, index: usize) {
        let change = self.locks[index].change();
        let now = self.session.now();
        let Some(Changes { writer, journal }) = &mut self.changes else { return };
        let only = std::slice::from_ref(&change);
        let (outcomes, ended) =
            journal.apply(writer, only, KeyAction::Remove, "unlocked", now).await;
        let lock = &mut self.locks[index];
        match outcomes.first() {
            Some(Outcome::Done | Outcome::Expires(_) | Outcome::FoundDone) => {
                lock.fate = Fate::Released("released: its lock was removed".to_owned());
            }
            Some(Outcome::Unknown) => {
                lock.fate = Fate::OutcomeUnknown("outcome unknown: the reply was lost".to_owned());
            }
            Some(Outcome::Gone | Outcome::ChangedMeanwhile | Outcome::Kept) => {
                lock.has_changed(LockChange::Other(CHANGED_IN_STEP));
            }
            Some(Outcome::NotMade | Outcome::Partly) | None => {
                let why = match &ended {
                    Err(error) => format!("{error:#}"),
                    Ok(()) => "its server refused the change or did not answer".to_owned(),
                };
                lock.fate = Fate::Failed(why);
            }
        }
        match ended {
            Ok(()) => self.unreachable = 0,
            Err(error) if is_of_the_server(&error) => {
                self.count_unreachable(&error);
                self.reconnect().await;
            }
            Err(error) => self.note_trouble(error),
        }
    }

    /// Notes if the replicas that the operator requires did not have a change in time.
    pub(super) fn check_replicas(&mut self) {
        if let Some(Changes { writer, .. }) = &self.changes
            && let Err(error) = writer.replicas_have_it()
        {
            self.behind.get_or_insert(error);
        }
    }

    fn count_unreachable(&mut self, error: &anyhow::Error) {
        if crate::exit::of(error) == Exit::Unreachable {
            self.unreachable += 1;
        }
    }

    /// After an error of the backup or the log nothing more is changed. An error of the server
    /// concerns one lock.
    pub(super) fn note_trouble(&mut self, error: anyhow::Error) {
        if is_of_the_server(&error) {
            self.count_unreachable(&error);
            return;
        }
        self.trouble.get_or_insert(error);
    }
}

/// What became of a lock whose step ended with this error.
fn fate_of(error: &anyhow::Error) -> Fate {
    if let Some(StoreError::OutcomeUnknown { .. }) = error.downcast_ref() {
        return Fate::OutcomeUnknown(format!("{error:#}"));
    }
    match error.downcast_ref::<CommandError>() {
        Some(CommandError { exit: Exit::Changed, .. }) => Fate::Changed(CHANGED_IN_STEP.to_owned()),
        _ => Fate::Failed(format!("{error:#}")),
    }
}
