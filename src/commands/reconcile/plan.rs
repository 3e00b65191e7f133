//! What is done to each lock after the first answer. A response is stored only if the service
//! replays exactly this response, as a rehearsal on a temporary local Redis shows.

use super::lock::Fate;
use super::reconciliation::Reconciliation;
use crate::change::completion::{
    ChosenCompletion, RehearsalOutcome, check_delivery, local_servers,
};
use crate::change::{check_ttls, described_step, time_for};
use crate::domain::change::unlock;
use crate::domain::manual_step::{self, BROKEN_JSON, NotExecutable, ResponseInput};
use crate::domain::reconcile::{DoneResponse, ProviderAnswer};
use crate::domain::record::{Record, Response};
use crate::domain::schema::{Meaning, Step};
use crate::domain::step::{Answer, StepInputs, StepKind};
use crate::exit::CommandError;
use crate::sim::RehearsalServer;

impl Reconciliation<'_> {
    /// Decides what is done to each lock that has an answer.
    pub(super) async fn plan(&mut self) {
        for index in 0..self.locks.len() {
            if self.interrupt.is_raised() || self.trouble.is_some() {
                return;
            }
            self.keep_held().await;
            let lock = &self.locks[index];
            if lock.fate != Fate::Open {
                continue;
            }
            let fate = match &lock.answer {
                None => Fate::Left("it was not asked about".to_owned()),
                Some(ProviderAnswer::Unknown(why)) => Fate::Left(format!("unknown: {why}")),
                Some(ProviderAnswer::NotDone) if self.args.ask.is_none() => {
                    Fate::Left("not done, which only --ask can confirm".to_owned())
                }
                Some(ProviderAnswer::NotDone) => match release_way(&lock.record) {
                    Ok(_) => Fate::ToRelease,
                    Err(why) => Fate::Left(format!("not done, but {why}")),
                },
                Some(ProviderAnswer::Done(response)) => {
                    let response = response.clone();
                    let record = lock.record.clone();
                    match self.check_completion(&record, &response).await {
                        Ok(untested) => {
                            self.locks[index].untested = untested;
                            Fate::ToComplete(*response)
                        }
                        Err(why) => Fate::Refused(why),
                    }
                }
            };
            self.locks[index].fate = fate;
        }
    }

    /// Passes if the response can be stored, and the service replays it. Returns why this was not
    /// tested, if only the schema says so.
    ///
    /// # Errors
    /// Why not.
    async fn check_completion(
        &mut self,
        record: &Record,
        given: &DoneResponse,
    ) -> Result<Option<String>, String> {
        let (step, response, chosen) = completion_of(record, given)?;
        let inputs = chosen.checked_inputs(record, &response, None).map_err(in_words)?;
        if manual_step::predict_complete(record, &chosen.owner, None) != Meaning::Stored {
            return Err("the service would refuse to store the response".to_owned());
        }
        let rehearsal = self.rehearse(record, step, &inputs).await;
        let predicted_record =
            manual_step::predicted_record(record, &inputs, rehearsal.time_left());
        check_delivery(&predicted_record, &inputs, &rehearsal).map_err(in_words)?;
        let predicted = predicted_record.next_request.answer;
        match &rehearsal {
            RehearsalOutcome::Ran(_) if rehearsal.next_meaning() != Some(Meaning::Replay) => {
                Err("on a temporary local Redis, the service does not replay it".to_owned())
            }
            RehearsalOutcome::Ran(_) | RehearsalOutcome::NotNeeded => Ok(None),
            RehearsalOutcome::NotRun(why) if predicted == Answer::Replay => Ok(Some(why.clone())),
            RehearsalOutcome::NotRun(why) => {
                Err(format!("it is unknown whether the service replays it ({why})"))
            }
        }
    }

    /// Starts the temporary local Redis, if a response may have to be rehearsed.
    pub(super) async fn start_rehearsals(&mut self) {
        let is_needed = self.locks.iter().any(|lock| {
            lock.record.schema.complete.is_some() && lock.record.schema.begin.is_some()
        });
        if !is_needed {
            return;
        }
        let servers = local_servers(self.session);
        let started = self.while_held(RehearsalServer::start(&servers)).await;
        self.rehearsals = Some(started.map_err(|why| why.to_string()));
    }

    /// Tries the completion on the temporary local Redis.
    async fn rehearse(
        &mut self,
        record: &Record,
        step: &Step,
        inputs: &StepInputs<'_>,
    ) -> RehearsalOutcome {
        match &mut self.rehearsals {
            Some(_) if record.schema.begin.is_none() => RehearsalOutcome::NotNeeded,
            Some(Ok(server)) => server.rehearse(record, step, inputs, None).await.into(),
            Some(Err(why)) => RehearsalOutcome::NotRun(why.clone()),
            None => RehearsalOutcome::NotNeeded,
        }
    }
}

/// The step and the response that complete a lock, in the name of its holder.
///
/// # Errors
/// Why the response cannot be stored.
pub(super) fn completion_of<'a>(
    record: &'a Record,
    given: &DoneResponse,
) -> Result<(&'a Step, Response, ChosenCompletion), String> {
    let step = described_step(record, StepKind::Complete).map_err(in_words)?;
    let input = ResponseInput {
        status: given.status,
        headers: given.headers.clone(),
        body: given.body.clone(),
        error: None,
    };
    if input.is_broken_json() {
        return Err(BROKEN_JSON.to_owned());
    }
    let response = input.response(&record.schema).map_err(|misfit| misfit.message)?;
    let chosen = ChosenCompletion::of_lock(record).map_err(in_words)?;
    Ok((step, response, chosen))
}

/// The service's own step that releases the lock of a record; `None` if the service has none, so that
/// the lock's Redis key is removed.
///
/// # Errors
/// Why it is not.
pub(super) fn release_way(record: &Record) -> Result<Option<&Step>, String> {
    match manual_step::releasable(record) {
        Ok(step) => {
            check_ttls(&record.schema, step).map_err(in_words)?;
            let owner = record.owner().unwrap_or_default();
            if manual_step::predict_release(record, step, owner) != Meaning::Released {
                return Err("the service would refuse to release it".to_owned());
            }
            time_for(&record.schema, record.seen.server_ms, record.schema.sends_time(step))
                .map_err(in_words)?;
            Ok(Some(step))
        }
        Err(NotExecutable::NoSuchStep | NotExecutable::Undescribed(_)) => {
            unlock::removable(record)?;
            Ok(None)
        }
        Err(why) => Err(why.to_string()),
    }
}

pub(super) fn in_words(error: CommandError) -> String {
    error.message
}
