//! The outcome of one call of a worker, and what the worker's client gets.

use crate::domain::record::Response;
use crate::domain::schema::{Call, Meaning};
use crate::domain::step::{StepInputs, StepReply};
use crate::sim::service::words;
use crate::store::StoreError;

/// The outcome of a call.
pub(super) struct CallOutcome {
    /// `None` for an error, and for a reply that the schema does not list.
    pub(super) meaning: Option<Meaning>,
    /// The reply or the error in words.
    pub(super) words: String,
    /// The stored response, if the reply carries it.
    pub(super) response: Option<Vec<u8>>,
    /// The client's answer according to the schema.
    client: Option<String>,
    /// True if the worker could not reach Redis.
    pub(super) is_unreachable: bool,
}

impl CallOutcome {
    pub(super) fn of_reply(inputs: &StepInputs<'_>, call: &Call, reply: &StepReply) -> Self {
        let mut outcome = Self::of_error(&words(reply));
        if let Some(matched) = inputs.matcher().match_reply(call, reply) {
            outcome.meaning = Some(matched.meaning());
            outcome.response = inputs.carried_response(matched, reply);
            outcome.client = matched.entry.client.as_deref().map(str::to_owned);
        }
        outcome
    }

    pub(super) fn of_store_error(error: &StoreError) -> Self {
        match error {
            StoreError::ErrorReply { code, why, .. } => {
                Self::of_error(&format!("error {code} {why}"))
            }
            error => Self::of_error(&error.to_string()),
        }
    }

    pub(super) fn of_error(why: &str) -> Self {
        Self {
            meaning: None,
            words: plain(why),
            response: None,
            client: None,
            is_unreachable: false,
        }
    }

    pub(super) fn unreachable() -> Self {
        Self { is_unreachable: true, ..Self::of_error("Redis cannot be reached") }
    }

    /// The reply and its meaning.
    pub(super) fn described(&self) -> String {
        match self.meaning {
            Some(meaning) => format!("{} ({})", self.words, meaning.as_str()),
            None => self.words.clone(),
        }
    }

    /// The client's answer after this call; `response` is the worker's response to the client.
    pub(super) fn client_sees(&self, response: &Response) -> Option<String> {
        if self.client.is_some() {
            return self.client.clone();
        }
        let sees = match self.meaning {
            Some(Meaning::Conflict) => "a conflict",
            Some(Meaning::Replay) if self.response.is_some() => "the stored response",
            Some(Meaning::Replay) => "done",
            Some(Meaning::Mismatch) => "a mismatch",
            Some(Meaning::Fail) | None => "an error",
            Some(Meaning::Stored) => {
                return Some(format!("its response, {}", response.status.unwrap_or_default()));
            }
            Some(_) => return None,
        };
        Some(sees.to_owned())
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
