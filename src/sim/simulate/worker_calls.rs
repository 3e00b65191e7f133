//! Sending a step's calls, and what comes back.

use super::environment::{Cut, Played};
use super::worker::Instance;
use crate::domain::schema::Template;
use crate::domain::schema::{Action, Call, Meaning};
use crate::domain::step::reply;
use crate::domain::step::reply::StepReply;
use crate::sim::service::{Prepared, words};
use crate::store::{StoreError, Wire, nowhere};

/// What a call came to.
pub(super) enum Met {
    /// A reply that the schema knows.
    Said(Said),
    /// An error, or a reply that the schema does not know.
    Error(String),
    /// Nothing: Redis could not be reached.
    Unreachable(String),
}

/// A reply that the schema knows.
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

    /// What Redis answered.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Said(said) => format!("{} ({})", said.words, said.means.as_str()),
            Self::Error(why) | Self::Unreachable(why) => why.clone(),
        }
    }

    /// What it comes to, whatever numbers the reply carries.
    fn gist(&self) -> String {
        self.means().map_or_else(|| self.words(), |means| means.as_str().to_owned())
    }
}

impl<'s> Instance<'s> {
    /// Performs calls until one decides; `None` when none did. The sequence shows them when they come to something else
    /// than those before.
    pub(super) async fn performs(&mut self, what: &str, step: &[Prepared<'s>]) -> Played<Option<Met>> {
        let before = std::mem::take(&mut self.met);
        for (index, prepared) in step.iter().enumerate() {
            let Some(call) = prepared.call() else { continue };
            self.take.meets(&self.take.service.redis_keys(call, &self.request())).await?;
            let met = met(call, self.asks(prepared).await?);
            let what = format!("{what} ({})", name(call));
            let gist = format!("{what}: {}", met.gist());
            if before.get(index) != Some(&gist) {
                self.notes(&what, &met);
            }
            self.met.push(gist);
            if met.means() != Some(Meaning::Next) {
                return Ok(Some(met));
            }
        }
        Ok(None)
    }

    /// Sends one call, the whole script where the server has forgotten it. The inner error is one that the story can go
    /// on with: a private server refuses, or this worker is cut off. When the operator's refuses there is no verdict.
    async fn asks(&mut self, prepared: &Prepared<'s>) -> Played<Result<StepReply, StoreError>> {
        let Some(wire) = &mut self.wire else {
            let target = nowhere(&self.take.target).map_err(|why| Cut::NotApplicable(why.to_string()))?;
            return Ok(Wire::connect(&target).await.map(|_| StepReply::Nil));
        };
        let mut reply = wire.ask(&prepared.request).await;
        if matches!(&reply, Ok(StepReply::Error { code, .. }) if code == "NOSCRIPT")
            && let Some(whole) = prepared.whole()
        {
            self.take.note(&self.name, "sends the script by its digest", Some("NOSCRIPT: sends it whole".into()), None);
            reply = wire.ask(&whole).await;
        }
        match reply {
            // What the operator's server, or its user, refuses is no verdict.
            Err(error) if error.lost_the_reply() || error.is_permission() || !self.take.is_private => Err(error.into()),
            reply => Ok(reply),
        }
    }

    /// Adds a call to the sequence.
    fn notes(&mut self, what: &str, met: &Met) {
        let client = match met {
            Met::Said(said) => self.client_sees(said),
            Met::Error(_) | Met::Unreachable(_) => Some("an error".to_owned()),
        };
        self.take.note(&self.name, what, Some(met.words()), client);
    }

    fn client_sees(&self, said: &Said) -> Option<String> {
        if said.client.is_some() {
            return said.client.clone();
        }
        Some(match said.means {
            Meaning::Conflict => "turned away".to_owned(),
            Meaning::Replay if said.carried.is_some() => "the stored response".to_owned(),
            Meaning::Replay => "done".to_owned(),
            Meaning::Mismatch => "a mismatch".to_owned(),
            Meaning::Fail => "an error".to_owned(),
            Meaning::Stored => format!("its response, {}", self.response.status.unwrap_or_default()),
            _ => return None,
        })
    }
}

/// What a call came to, by what came back.
fn met(call: &Call, reply: Result<StepReply, StoreError>) -> Met {
    let reply = match reply {
        Ok(reply) => reply,
        Err(StoreError::Refused { code, why, .. }) => return Met::Error(plain(&format!("error {code} {why}"))),
        Err(error) if error.lost_the_reply() => return Met::Unreachable("Redis cannot be reached".to_owned()),
        Err(error) => return Met::Error(error.to_string()),
    };
    let Some(known) = reply::recognise(call, &reply) else { return Met::Error(plain(&words(&reply))) };
    let carried = reply::carries_response(&known.pattern).then(|| reply.stored()).flatten();
    Met::Said(Said {
        means: known.means,
        words: plain(&words(&reply)),
        carried: carried.map(<[u8]>::to_vec),
        client: known.client.clone(),
    })
}

/// An error without the digests and line numbers that Redis adds, each release in its own way.
fn plain(text: &str) -> String {
    let text = text.split(" script: ").next().unwrap_or_default().trim_end_matches('.');
    // Redis 6.2: `ERR Error running script (call to f_…): @user_script:25: @user_script: 25: -CODE text`.
    let behind = text.rsplit_once("user_script:").filter(|(before, _)| before.starts_with("error ERR"));
    match behind.and_then(|(_, rest)| rest.split_once(": ")) {
        Some((_, message)) => format!("error {}", message.trim_start_matches('-')),
        None => text.to_owned(),
    }
}

/// What a call is called: its script's name, or its command's.
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
