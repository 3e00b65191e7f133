//! Sending a step's calls, and what comes back.

use std::rc::Rc;

use super::abort::{Abort, Played};
use super::run::Run;
use crate::domain::record::Response;
use crate::domain::schema::Template;
use crate::domain::schema::{Action, Call, Meaning};
use crate::domain::step::{Listener, Request, StepReply};
use crate::sim::service::{Prepared, words};
use crate::store::{Connection, StoreError, nowhere};

pub(super) enum Met {
    Said(Said),
    /// An error, or a reply that the schema does not know.
    Error(String),
    /// Nothing: Redis could not be reached.
    Unreachable(String),
}

pub(super) struct Said {
    pub(super) means: Meaning,
    pub(super) words: String,
    /// The stored response, where the reply carries it.
    pub(super) carried: Option<Vec<u8>>,
    /// What the schema says that the client gets.
    client: Option<String>,
}

impl Met {
    pub(super) fn means(&self) -> Option<Meaning> {
        match self {
            Self::Said(said) => Some(said.means),
            _ => None,
        }
    }

    pub(super) fn words(&self) -> String {
        match self {
            Self::Said(said) => format!("{} ({})", said.words, said.means.as_str()),
            Self::Error(why) | Self::Unreachable(why) => why.clone(),
        }
    }

    /// What the call came to, without the numbers that a reply carries.
    fn gist(&self) -> String {
        self.means().map_or_else(|| self.words(), |means| means.as_str().to_owned())
    }

    /// What the client sees of the call, where `response` is what the worker has for the client.
    fn client_sees(&self, response: &Response) -> Option<String> {
        let Self::Said(said) = self else { return Some("an error".to_owned()) };
        if said.client.is_some() {
            return said.client.clone();
        }
        Some(match said.means {
            Meaning::Conflict => "turned away".to_owned(),
            Meaning::Replay if said.carried.is_some() => "the stored response".to_owned(),
            Meaning::Replay => "done".to_owned(),
            Meaning::Mismatch => "a mismatch".to_owned(),
            Meaning::Fail => "an error".to_owned(),
            Meaning::Stored => format!("its response, {}", response.status.unwrap_or_default()),
            _ => return None,
        })
    }
}

/// Sends a worker's calls, and tells the sequence of them.
pub(super) struct Calls<'s> {
    pub(super) run: Rc<Run<'s>>,
    pub(super) name: String,
    /// `None` for a worker that is cut off from Redis.
    pub(super) connection: Option<Connection>,
    /// What the calls of the step before came to.
    before: Vec<String>,
}

impl<'s> Calls<'s> {
    pub(super) fn new(run: Rc<Run<'s>>, name: &str, connection: Connection) -> Self {
        Self { run, name: name.to_owned(), connection: Some(connection), before: Vec::new() }
    }

    /// Forgets the step before, so that the sequence shows the next one whatever the calls come to.
    pub(super) fn forget(&mut self) {
        self.before.clear();
    }

    /// Adds a line of the worker to the sequence.
    pub(super) fn note(&self, step: &str, reply: Option<String>, client: Option<String>) {
        self.run.note(&self.name, step, reply, client);
    }

    /// Makes a step's calls until one decides; `None` when none did. The sequence shows the calls that come to something else
    /// than those of the step before.
    pub(super) async fn make(
        &mut self,
        what: &str,
        step: &[Prepared<'s>],
        request: &Request<'_>,
    ) -> Played<Option<Met>> {
        let before = std::mem::take(&mut self.before);
        for (index, prepared) in step.iter().enumerate() {
            let Some(call) = prepared.call() else { continue };
            self.run.meets(&self.run.service.redis_keys(call, request)).await?;
            let met = met(request.listener(), call, self.ask(prepared).await?);
            let what = format!("{what} ({})", name(call));
            let gist = format!("{what}: {}", met.gist());
            if before.get(index) != Some(&gist) {
                self.note(&what, Some(met.words()), met.client_sees(request.response));
            }
            self.before.push(gist);
            if met.means() != Some(Meaning::Next) {
                return Ok(Some(met));
            }
        }
        Ok(None)
    }

    /// Sends one call, with the whole script where the server has forgotten the script. The story goes on after the inner
    /// error: a private server refuses, or this worker is cut off. Where the operator's server refuses there is no verdict.
    async fn ask(&mut self, prepared: &Prepared<'s>) -> Played<Result<StepReply, StoreError>> {
        let Some(connection) = &mut self.connection else {
            let target = nowhere(&self.run.target).map_err(|why| Abort::NotApplicable(why.to_string()))?;
            return Ok(Connection::connect(&target).await.map(|_| StepReply::Nil));
        };
        let mut reply = connection.ask(&prepared.request).await;
        if matches!(&reply, Ok(StepReply::Error { code, .. }) if code == "NOSCRIPT")
            && let Some(whole) = prepared.whole()
        {
            let forgotten = Some("NOSCRIPT: sends it whole".to_owned());
            self.run.note(&self.name, "sends the script by its digest", forgotten, None);
            reply = connection.ask(&whole).await;
        }
        match reply {
            // What the operator's server, or its user, refuses is no verdict.
            Err(error) if error.lost_the_reply() || error.is_permission() || !self.run.is_private => Err(error.into()),
            reply => Ok(reply),
        }
    }
}

/// What a call came to, told by its reply or error.
fn met(listener: Listener<'_>, call: &Call, reply: Result<StepReply, StoreError>) -> Met {
    let reply = match reply {
        Ok(reply) => reply,
        Err(StoreError::Refused { code, why, .. }) => return Met::Error(plain(&format!("error {code} {why}"))),
        Err(error) if error.lost_the_reply() => return Met::Unreachable("Redis cannot be reached".to_owned()),
        Err(error) => return Met::Error(error.to_string()),
    };
    let Some(known) = listener.recognise(call, &reply) else { return Met::Error(plain(&words(&reply))) };
    Met::Said(Said {
        means: known.means,
        words: plain(&words(&reply)),
        carried: listener.carried(known, &reply).map(<[u8]>::to_vec),
        client: known.client.clone(),
    })
}

/// An error's text without the digests and line numbers that each release of Redis adds in its own way.
fn plain(text: &str) -> String {
    let text = text.split(" script: ").next().unwrap_or_default().trim_end_matches('.');
    // Redis 6.2: `ERR Error running script (call to f_…): @user_script:25: @user_script: 25: -CODE text`.
    let behind = text.rsplit_once("user_script:").filter(|(before, _)| before.starts_with("error ERR"));
    match behind.and_then(|(_, rest)| rest.split_once(": ")) {
        Some((_, message)) => format!("error {}", message.trim_start_matches('-')),
        None => text.to_owned(),
    }
}

/// The name of a call: that of its script, or of its command.
fn name(call: &Call) -> String {
    match &call.action {
        Action::Script { name, .. } => name.clone(),
        Action::Command(command) => command.first().map(Template::display).unwrap_or_default(),
    }
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
