//! The values that a service writes.

use serde::Deserialize;
use strum::IntoStaticStr;

use super::value_template::{self, Place, Template};
use crate::domain::as_str::as_str;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteFormat {
    #[serde(deserialize_with = "value_template::of_value")]
    pub(crate) lock_value: Template,
    #[serde(deserialize_with = "value_template::of_value")]
    pub(crate) result_value: Template,
    /// What the result of an operation that failed looks like; `None` where the service keeps no error.
    #[serde(default, deserialize_with = "value_template::of_optional_value")]
    pub failed_value: Option<Template>,
    /// The response as the complete step sends it and a replay brings it back, where that is a part of the result.
    #[serde(default, deserialize_with = "value_template::of_response")]
    pub(crate) response: Option<Template>,
    pub(crate) no_body: Option<String>,
    #[serde(default)]
    pub(crate) header_names: HeaderNames,
    /// Go's JSON writes `<`, `>` and `&` as `\u003c` and so on.
    #[serde(default)]
    pub(crate) escape_html: bool,
}

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
    pub body: bool,
    /// The body only as text: bytes that are not UTF-8 would be lost.
    pub(crate) text_only: bool,
    pub(crate) error: bool,
}

impl WriteFormat {
    pub fn keeps(&self) -> Keeps {
        let templates = || [Some(&self.result_value), self.failed_value.as_ref(), self.response.as_ref()];
        let has = |places: &[Place]| templates().into_iter().flatten().any(|template| template.has(places));
        let bytes = has(&[Place::Body, Place::BodyBase64]);
        let text = has(&[Place::BodyJson, Place::BodyText]);
        Keeps {
            status: has(&[Place::Status]),
            headers: has(&[Place::Headers, Place::HeaderLists]),
            body: bytes || text,
            text_only: text && !bytes,
            error: self.failed_value.is_some(),
        }
    }

    /// True when a lock holds the time it was taken.
    pub(crate) fn keeps_time(&self) -> bool {
        self.lock_value.has(&[Place::Now])
    }

    /// True when a lock or a result holds the hash of the request's payload.
    pub fn keeps_fingerprint(&self) -> bool {
        self.lock_value.has(&[Place::Fingerprint]) || self.result_value.has(&[Place::Fingerprint])
    }
}
