//! The values that a service writes.

use serde::Deserialize;
use strum::IntoStaticStr;

use super::ttl::TtlOf;
use super::value_format::Timestamp;
use super::value_template::{self, Placeholder, Template};
use crate::domain::as_str::as_str;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteFormat {
    /// `None` where the schema does not say how a lock is written.
    #[serde(default, deserialize_with = "value_template::optional_value")]
    pub(crate) lock_value: Option<Template>,
    /// `None` where the schema does not say how a result is written.
    #[serde(default, deserialize_with = "value_template::optional_value")]
    pub(crate) result_value: Option<Template>,
    /// What the result of an operation that failed looks like; `None` where the service keeps no error.
    #[serde(default, deserialize_with = "value_template::optional_value")]
    pub failed_value: Option<Template>,
    /// The response as the complete step sends it and a replay brings it back, where that is a part of the result.
    #[serde(default, deserialize_with = "value_template::response")]
    pub(crate) response: Option<Template>,
    pub(crate) no_body: Option<String>,
    #[serde(default)]
    pub(crate) header_names: HeaderNames,
    /// Go's JSON writes `<`, `>` and `&` as `\u003c` and so on.
    #[serde(default)]
    pub(crate) escape_html: bool,
    /// What the fingerprint is, for people: what to give where the lock does not tell.
    pub(crate) fingerprint_is: Option<String>,
    /// Pointers to texts that stand for bytes, as base64: where a format tells bytes from text.
    #[serde(default)]
    pub(crate) bytes_at: Vec<String>,
}

/// What stands for a time.
pub(super) const TIMES: [Placeholder; 12] = [
    Placeholder::Now,
    Placeholder::NowSeconds,
    Placeholder::NowRfc3339,
    Placeholder::NowTicks,
    Placeholder::Expires(TtlOf::Lock, Timestamp::Seconds),
    Placeholder::Expires(TtlOf::Lock, Timestamp::Milliseconds),
    Placeholder::Expires(TtlOf::Lock, Timestamp::Rfc3339),
    Placeholder::Expires(TtlOf::Lock, Timestamp::Ticks),
    Placeholder::Expires(TtlOf::Result, Timestamp::Seconds),
    Placeholder::Expires(TtlOf::Result, Timestamp::Milliseconds),
    Placeholder::Expires(TtlOf::Result, Timestamp::Rfc3339),
    Placeholder::Expires(TtlOf::Result, Timestamp::Ticks),
];

/// How the names of headers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum HeaderNames {
    /// As the handler gave the names.
    #[default]
    AsGiven,
    /// As Go's `net/http` does: `Content-Type`.
    Canonical,
    /// As Node.js does: `content-type`.
    Lower,
}

as_str!(HeaderNames);

/// What a schema's results keep of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeps {
    pub status: bool,
    pub headers: bool,
    /// The content type alone, of all headers.
    pub(crate) content_type: bool,
    pub body: bool,
    /// The body only as text: bytes that are not UTF-8 would be lost.
    pub(crate) text_only: bool,
    pub(crate) error: bool,
}

impl WriteFormat {
    pub fn keeps(&self) -> Keeps {
        let bytes =
            self.results_have(&[Placeholder::Body, Placeholder::BodyBase64, Placeholder::BodyHex]);
        let text = self.results_have(&[Placeholder::BodyJson, Placeholder::BodyText]);
        Keeps {
            status: self.results_have(&[Placeholder::Status]),
            headers: self.results_have(&[Placeholder::Headers, Placeholder::HeaderLists]),
            content_type: self.results_have(&[Placeholder::ContentType]),
            body: bytes || text,
            text_only: text && !bytes,
            error: self.failed_value.is_some(),
        }
    }

    /// True if a result, or the response in it, has one of these placeholders.
    fn results_have(&self, placeholders: &[Placeholder]) -> bool {
        let templates = [&self.result_value, &self.failed_value, &self.response];
        templates.into_iter().flatten().any(|template| template.has(placeholders))
    }

    /// True when a lock holds the time it was taken, or is to end.
    pub(crate) fn keeps_time(&self) -> bool {
        self.lock_value.as_ref().is_some_and(|lock| lock.has(&TIMES))
    }

    /// True when a result that idemctl writes holds the time it was stored, or is to end.
    pub(crate) fn dates_results(&self) -> bool {
        self.result_value.as_ref().is_some_and(|result| result.has(&TIMES))
    }

    /// The texts that are written, each with its name.
    pub(super) fn values(&self) -> impl Iterator<Item = (&'static str, &Template)> {
        let values = [
            ("lock_value", &self.lock_value),
            ("result_value", &self.result_value),
            ("failed_value", &self.failed_value),
        ];
        values.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)))
    }

    /// True when a lock or a result holds the hash of the request's payload.
    pub fn keeps_fingerprint(&self) -> bool {
        let values = [&self.lock_value, &self.result_value];
        values.into_iter().flatten().any(|value| value.has(&[Placeholder::Fingerprint]))
    }
}
