//! The rehearsal of a completion on a temporary local Redis, and what idemctl may promise after it.

use crate::domain::manual_step::Delivered;
use crate::domain::record::{Content, Record, TimeLeft};
use crate::domain::schema::{Meaning, Step};
use crate::domain::step::{Answer, StepInputs, StepReply};
use crate::render::words;
use crate::session::Session;
use crate::sim::simulate::LocalServers;
use crate::sim::{self, NotRehearsed, Rehearsal, RehearsedAnswer};

/// A rehearsal of the service's complete step, and of the begin step of the next request.
pub(crate) enum RehearsalOutcome {
    /// Nothing was rehearsed: nothing is promised, or the schema describes no begin step that could
    /// show a result.
    NotNeeded,
    /// The steps were executed.
    Ran(Rehearsal),
    /// The rehearsal failed. No local Redis could be started, or it failed later; the text says why.
    NotRun(String),
}

impl From<Result<Option<Rehearsal>, NotRehearsed>> for RehearsalOutcome {
    fn from(rehearsed: Result<Option<Rehearsal>, NotRehearsed>) -> Self {
        match rehearsed {
            Ok(Some(rehearsal)) => Self::Ran(rehearsal),
            Ok(None) => Self::NotNeeded,
            Err(why) => Self::NotRun(why.to_string()),
        }
    }
}

/// How temporary local servers are started for the server of this run.
pub(crate) fn local_servers(session: &Session) -> LocalServers {
    let environment = session.settings.environment();
    LocalServers {
        path: environment.path(),
        temp_dir: environment.temp_dir(),
        like: session.settings.target().clone(),
    }
}

impl RehearsalOutcome {
    /// Rehearses a completion whose response the service is predicted to store.
    pub(crate) async fn of(
        session: &Session,
        record: &Record,
        step: &Step,
        inputs: &StepInputs<'_>,
        step_lock: Option<&Content>,
    ) -> Self {
        sim::rehearse(record, step, inputs, step_lock, &local_servers(session)).await.into()
    }

    fn ran(&self) -> Option<&Rehearsal> {
        match self {
            Self::Ran(rehearsal) => Some(rehearsal),
            Self::NotNeeded | Self::NotRun(_) => None,
        }
    }

    /// True if the rehearsal confirmed what the schema predicts for the next request, or none is
    /// needed.
    pub(crate) fn verifies(&self, predicted_record: &Record) -> bool {
        match self.next_meaning() {
            Some(means) => is_as_predicted(means, predicted_record.next_request.answer),
            None => matches!(self, Self::NotNeeded),
        }
    }

    /// What the service's own begin step replied after the completion.
    pub(crate) fn next_meaning(&self) -> Option<Meaning> {
        match self.ran()?.then {
            RehearsedAnswer::Answers(means) => Some(means),
            RehearsedAnswer::NotStored | RehearsedAnswer::Unknown => None,
        }
    }

    /// The response that the client of the rehearsal got.
    pub(crate) fn delivered(&self) -> Option<&Delivered> {
        self.ran()?.delivered.as_ref()
    }

    /// The content of the result's Redis key after the rehearsed step. `None` if it stored no
    /// result there, of which [`Self::print`] warns.
    pub(crate) fn stored(&self) -> Option<&Content> {
        let rehearsal = self.ran()?;
        if rehearsal.then == RehearsedAnswer::NotStored { None } else { Some(&rehearsal.stored) }
    }

    /// The reply of the rehearsed step, if it did not store the response.
    pub(crate) fn refusal(&self) -> Option<&StepReply> {
        self.ran()?.refusal.as_ref()
    }

    /// How long the result will stay after the step; `None` if the rehearsal did not show it.
    pub(crate) fn time_left(&self) -> Option<TimeLeft> {
        self.ran()?.time_left
    }

    /// Prints what the next request gets after the completion, and whether that was tested.
    pub(crate) fn print(&self, session: &mut Session, predicted_record: &Record) {
        let then = words::then_of_result(predicted_record);
        match self {
            Self::NotNeeded => session.ui.status(&format!("Then {then}.")),
            Self::Ran(_) if self.verifies(predicted_record) => {
                session.ui.status(&format!(
                    "Then {then}. Tested with the service's scripts on a temporary local Redis."
                ));
            }
            Self::Ran(rehearsal) => {
                let what = match &rehearsal.then {
                    RehearsedAnswer::Answers(means) => {
                        format!("the service's begin step replied {}", means.as_str())
                    }
                    RehearsedAnswer::NotStored => "nothing was stored".to_owned(),
                    RehearsedAnswer::Unknown => {
                        "the begin step's reply is not in the schema".to_owned()
                    }
                };
                session.ui.warning(&format!(
                    "on a temporary local Redis, {what}, although the schema predicts that {then}"
                ));
            }
            Self::NotRun(why) => {
                session.ui.status(&format!("Not tested ({why}). The schema predicts that {then}."));
            }
        }
    }
}

/// True if a reply of the begin step is what the schema predicts for the next request.
fn is_as_predicted(means: Meaning, predicted: Answer) -> bool {
    match predicted {
        Answer::Execute => means == Meaning::Acquired,
        Answer::Conflict => means == Meaning::Conflict,
        Answer::Replay => means == Meaning::Replay,
        Answer::Fail => matches!(means, Meaning::Fail | Meaning::Mismatch),
        Answer::Unknown => false,
    }
}
