//! A request, and what came back.

use std::collections::BTreeMap;

use url::Url;

use super::body::ProbeBody;
use crate::domain::record::response::is_secret_header;

/// One request of a probe, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ProbeRequest {
    pub(crate) method: String,
    /// The whole URL, without a fragment.
    pub(crate) url: String,
    /// Names as given, and values; a header with several lines occurs several times.
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    /// The name of the header that names the caller, if the operator named another one.
    pub(crate) caller_header: Option<String>,
    /// Whose certificates are trusted, for the curl lines.
    pub(crate) trust: ServiceTrust,
    pub(crate) body: Vec<u8>,
    /// The idempotency key without quotation marks; `None` if the request has none.
    pub(crate) key: Option<String>,
}

/// Which certificate of a service is accepted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum ServiceTrust {
    /// One of the system's authorities.
    #[default]
    System,
    /// One of the authorities in this file.
    File(String),
    /// Any.
    Any,
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ProbeAnswer {
    pub(crate) status: u16,
    /// Names in lower case, and values.
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: ProbeBody,
    /// False if the body is longer than the part that was read.
    pub(crate) is_whole: bool,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProbeOutcome {
    Answered(ProbeAnswer),
    /// The service did not answer, or not in HTTP/1.1.
    Unanswered(String),
    /// idemctl closed the connection before an answer, as the check wants.
    Abandoned,
}

/// A request and how it ended. Times are in microseconds since the start of the probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProbeExchange {
    pub(crate) request: ProbeRequest,
    /// When the header section was complete, so that the service could act.
    pub(crate) sent_us: Option<u64>,
    /// When the head of the answer arrived.
    pub(crate) answered_us: Option<u64>,
    /// When the whole answer had arrived, or idemctl closed the connection.
    pub(crate) ended_us: Option<u64>,
    pub(crate) outcome: ProbeOutcome,
}

impl ProbeRequest {
    /// True for a header of this request whose value is never shown.
    pub(crate) fn masks(&self, name: &str) -> bool {
        let is_caller =
            self.caller_header.as_ref().is_some_and(|caller| caller.eq_ignore_ascii_case(name));
        is_caller || is_masked_header(name)
    }

    /// True if it has a credential. A service can send it back in any form, so nothing of the answers
    /// is shown then. Each request of a run has the headers of the run.
    pub(crate) fn has_credentials(&self) -> bool {
        if self.caller_header.is_some() || self.headers.iter().any(|(name, _)| self.masks(name)) {
            return true;
        }
        let Ok(url) = Url::parse(&self.url) else { return false };
        url.query_pairs().any(|(name, _)| is_masked_parameter(&name))
    }
}

impl ProbeAnswer {
    /// The first value of a header. `name` is in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&[u8]> {
        let mut headers = self.headers.iter();
        headers.find(|(known, _)| known == name).map(|(_, value)| value.as_slice())
    }

    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// True if the answer carries another result than this one: another resource or another body.
    pub(crate) fn is_other_result(&self, other: &Self) -> bool {
        let locations = self.header("location").zip(other.header("location"));
        locations.is_some_and(|(one, other)| one != other) || !self.body.is_same(&other.body)
    }

    /// True for answers that an overloaded service or its gateway gives, whatever the key.
    pub(crate) fn is_overload(&self) -> bool {
        matches!(self.status, 429 | 502 | 503 | 504)
    }
}

impl ProbeExchange {
    pub(crate) fn answer(&self) -> Option<&ProbeAnswer> {
        match &self.outcome {
            ProbeOutcome::Answered(answer) => Some(answer),
            ProbeOutcome::Unanswered(_) | ProbeOutcome::Abandoned => None,
        }
    }

    /// The time from the complete header section to the head of the answer.
    pub(crate) fn answer_time_us(&self) -> Option<u64> {
        self.answered_us?.checked_sub(self.sent_us?)
    }

    /// True if this request was sent before the head of that answer arrived.
    pub(super) fn was_sent_before_answer_of(&self, other: &Self) -> bool {
        match (self.sent_us, other.answered_us) {
            (Some(sent), Some(answered)) => sent < answered,
            _ => false,
        }
    }

    /// The outcome in a few words.
    pub(crate) fn in_words(&self) -> String {
        match &self.outcome {
            ProbeOutcome::Answered(answer) => answer.status.to_string(),
            ProbeOutcome::Unanswered(why) => format!("no answer ({why})"),
            ProbeOutcome::Abandoned => "connection closed by idemctl".to_owned(),
        }
    }
}

/// True for a header whose value is never shown.
pub(crate) fn is_masked_header(name: &str) -> bool {
    if is_secret_header(name) {
        return true;
    }
    let name = name.to_ascii_lowercase();
    let parts = [
        "auth",
        "token",
        "secret",
        "pass",
        "pwd",
        "signature",
        "session",
        "cred",
        "key",
        "jwt",
        "dpop",
        "cert",
    ];
    // An idempotency key is not a credential.
    !name.contains("idempot") && parts.iter().any(|part| name.contains(part))
}

/// True for a parameter in a URL whose value is never shown.
pub(crate) fn is_masked_parameter(name: &str) -> bool {
    is_masked_header(name) || ["sig", "code"].contains(&name)
}

/// Counts equal words, in their order: `1 × 201, 19 × 409`.
pub(super) fn counted(words: impl IntoIterator<Item = String>) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for word in words {
        *counts.entry(word).or_default() += 1;
    }
    let counts = counts.into_iter().map(|(word, count)| format!("{count} × {word}"));
    counts.collect::<Vec<_>>().join(", ")
}
