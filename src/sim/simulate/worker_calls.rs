//! Sends the calls of a scenario's worker, and adds their outcomes to the history.

use std::rc::Rc;

use super::run::ScenarioRun;
use super::story::{Aborted, ScenarioResult};
use crate::domain::record::Response;
use crate::domain::schema::{Action, Call, Meaning};
use crate::domain::step::{
    CallSender, ExecutedStep, ReplyMatch, StepCall, StepInputs, StepReply, execute,
};
use crate::sim::service::{is_no_script, words};
use crate::sim::stopped_clock::words_at;
use crate::store::{Connection, StoreError, nowhere, pack};

/// The outcome of a call.
pub(super) enum CallOutcome {
    Replied(KnownReply),
    /// An error, or a reply that the schema does not list.
    Error(String),
    /// Redis was unreachable.
    Unreachable(String),
}

/// A reply that the schema lists.
pub(super) struct KnownReply {
    pub(super) meaning: Meaning,
    pub(super) words: String,
    /// The stored response, if the reply carries it.
    pub(super) response: Option<Vec<u8>>,
    /// The client's answer according to the schema.
    client: Option<String>,
}

impl CallOutcome {
    fn from_reply(
        inputs: &StepInputs<'_>,
        reply: &StepReply,
        matched: Option<ReplyMatch<'_>>,
    ) -> Self {
        let words = plain(&words(reply));
        let Some(matched) = matched else { return Self::Error(words) };
        Self::Replied(KnownReply {
            meaning: matched.meaning(),
            words,
            response: inputs.carried_response(matched, reply),
            client: matched.entry.client.as_deref().map(str::to_owned),
        })
    }

    fn from_error(error: &StoreError) -> Self {
        match error {
            StoreError::ErrorReply { code, why, .. } => {
                Self::Error(plain(&format!("error {code} {why}")))
            }
            error if error.lost_the_reply() => {
                Self::Unreachable("Redis cannot be reached".to_owned())
            }
            error => Self::Error(error.to_string()),
        }
    }

    pub(super) fn meaning(&self) -> Option<Meaning> {
        match self {
            Self::Replied(reply) => Some(reply.meaning),
            _ => None,
        }
    }

    pub(super) fn words(&self) -> String {
        match self {
            Self::Replied(reply) => format!("{} ({})", reply.words, reply.meaning.as_str()),
            Self::Error(why) | Self::Unreachable(why) => why.clone(),
        }
    }

    /// The client's answer after this call; `response` is the worker's response to the client.
    fn client_sees(&self, response: &Response) -> Option<String> {
        let Self::Replied(reply) = self else { return Some("an error".to_owned()) };
        if reply.client.is_some() {
            return reply.client.clone();
        }
        let sees = match reply.meaning {
            Meaning::Conflict => "a conflict".to_owned(),
            Meaning::Replay if reply.response.is_some() => "the stored response".to_owned(),
            Meaning::Replay => "done".to_owned(),
            Meaning::Mismatch => "a mismatch".to_owned(),
            Meaning::Fail => "an error".to_owned(),
            Meaning::Stored => format!("its response, {}", response.status.unwrap_or_default()),
            _ => return None,
        };
        Some(sees)
    }
}

/// Sends a worker's calls, and adds them to the history of the run.
pub(super) struct WorkerCalls<'s> {
    pub(super) run: Rc<ScenarioRun<'s>>,
    pub(super) name: String,
    /// `None` for a worker that is cut off from Redis.
    pub(super) connection: Option<Connection>,
    /// The outcomes of the previous step's calls.
    previous: Vec<String>,
}

impl<'s> WorkerCalls<'s> {
    pub(super) fn new(run: Rc<ScenarioRun<'s>>, name: &str, connection: Connection) -> Self {
        Self { run, name: name.to_owned(), connection: Some(connection), previous: Vec::new() }
    }

    /// Forgets the previous step, so that the history shows all calls of the next one.
    pub(super) fn forget_previous(&mut self) {
        self.previous.clear();
    }

    /// Adds a line about the worker to the history.
    pub(super) fn note(&self, step: &str, reply: Option<String>, client: Option<String>) {
        self.run.note(&self.name, step, reply, client);
    }

    /// Executes a step's calls, or some of them; `None` if each left the decision to the next call.
    ///
    /// The history shows only the calls whose outcome differs from the previous step. Otherwise a
    /// client that asks every 25 ms would fill it.
    pub(super) async fn execute(
        &mut self,
        what: &str,
        calls: &[Call],
        inputs: &StepInputs<'_>,
    ) -> ScenarioResult<Option<CallOutcome>> {
        let previous = std::mem::take(&mut self.previous);
        let mut sender = NotedCalls { worker: self, what, previous, last: None };
        match execute(inputs, calls, &mut sender).await {
            Ok(ExecutedStep::Undecided) => Ok(None),
            Ok(_) => Ok(sender.last),
            Err(StepStopped::Failed(outcome)) => Ok(Some(outcome)),
            Err(StepStopped::Aborted(why)) => Err(why),
        }
    }

    /// Sends one call. If the server forgot its script, sends the whole script.
    async fn send(&mut self, call: StepCall<'_>) -> Result<StepReply, StepStopped> {
        let Some(connection) = &mut self.connection else {
            return Err(StepStopped::Failed(CallOutcome::from_error(&self.unreachable().await?)));
        };
        let packed = match self.run.stopped_at() {
            Some(now_ms) => pack(words_at(call, now_ms)),
            None => self.run.service.pack(call),
        };
        let mut reply = connection.ask(&packed).await;
        if matches!(&reply, Ok(reply) if is_no_script(reply))
            && matches!(call.call.action, Action::Script { .. })
        {
            let forgotten = Some("NOSCRIPT: sends it whole".to_owned());
            self.run.note(&self.name, "sends the script by its digest", forgotten, None);
            reply = connection.ask(&pack(call.words())).await;
        }
        match reply {
            Ok(reply) => Ok(reply),
            // If the operator's server refuses a call, this is not evidence about the schema. If a
            // private server refuses it, this is part of the story.
            Err(error)
                if error.lost_the_reply() || error.is_permission() || !self.run.is_private =>
            {
                Err(StepStopped::Aborted(error.into()))
            }
            Err(error) => Err(StepStopped::Failed(CallOutcome::from_error(&error))),
        }
    }

    /// The error of a connection to a server that does not exist. A worker that is cut off gets
    /// this error.
    async fn unreachable(&self) -> Result<StoreError, StepStopped> {
        let target = match nowhere(&self.run.target) {
            Ok(target) => target,
            Err(why) => {
                return Err(StepStopped::Aborted(Aborted::NotApplicable(why.to_string())));
            }
        };
        match Connection::connect(&target).await {
            Err(error) => Ok(error),
            Ok(_) => Err(StepStopped::Aborted(Aborted::NotApplicable(
                "a closed port answers".to_owned(),
            ))),
        }
    }
}

/// Why a worker's step stopped before a reply decided.
enum StepStopped {
    /// The call failed, and the story continues.
    Failed(CallOutcome),
    Aborted(Aborted),
}

/// Sends the calls of one step of a worker, and adds each to the history.
struct NotedCalls<'w, 's> {
    worker: &'w mut WorkerCalls<'s>,
    /// The verb for the step in the history, such as "begins".
    what: &'w str,
    /// The outcomes of the previous step's calls.
    previous: Vec<String>,
    /// The outcome of the last call.
    last: Option<CallOutcome>,
}

impl NotedCalls<'_, '_> {
    fn note_outcome(&mut self, call: StepCall<'_>, outcome: &CallOutcome) {
        let what = format!("{} ({})", self.what, call.call.name());
        // Compare without the numbers in a reply, which differ each time.
        let result = match outcome.meaning() {
            Some(meaning) => meaning.as_str().to_owned(),
            None => outcome.words(),
        };
        let line = format!("{what}: {result}");
        if self.previous.get(call.index) != Some(&line) {
            let sees = outcome.client_sees(call.inputs.response);
            self.worker.note(&what, Some(outcome.words()), sees);
        }
        self.worker.previous.push(line);
    }
}

impl CallSender for NotedCalls<'_, '_> {
    type Error = StepStopped;

    async fn send_call(&mut self, call: StepCall<'_>) -> Result<StepReply, StepStopped> {
        // In a cluster, each call must run on the node of its Redis keys.
        self.worker.run.prepare_node(&call.redis_keys()).await.map_err(StepStopped::Aborted)?;
        let reply = self.worker.send(call).await;
        if let Err(StepStopped::Failed(outcome)) = &reply {
            self.note_outcome(call, outcome);
        }
        reply
    }

    fn note(&mut self, call: StepCall<'_>, reply: &StepReply, matched: Option<ReplyMatch<'_>>) {
        let outcome = CallOutcome::from_reply(call.inputs, reply, matched);
        self.note_outcome(call, &outcome);
        self.last = Some(outcome);
    }
}

/// An error's text without the digests and line numbers, which each release of Redis adds in its
/// own way.
fn plain(text: &str) -> String {
    let text = text.split(" script: ").next().unwrap_or_default().trim_end_matches('.');
    // Redis 6.2 writes:
    // `ERR Error running script (call to f_…): @user_script:25: @user_script: 25: -CODE text`.
    if let Some((before, rest)) = text.rsplit_once("user_script:")
        && before.starts_with("error ERR")
        && let Some((_line, message)) = rest.split_once(": ")
    {
        return format!("error {}", message.trim_start_matches('-'));
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reads_alike_on_every_release() {
        for (raw, told) in [
            ("error LOCKED the key is held", "error LOCKED the key is held"),
            (
                "error ERR value is not an integer or out of range script: dbde81, on @user_script:30.",
                "error ERR value is not an integer or out of range",
            ),
            (
                "error ERR user_script:25: Expected value but found invalid token script: 2fe5, on @user_script:25.",
                "error Expected value but found invalid token",
            ),
            (
                "error ERR Error running script (call to f_2fe5): @user_script:19: @user_script: 19: -OOM no memory",
                "error OOM no memory",
            ),
        ] {
            assert_eq!(plain(raw), told);
        }
    }
}
