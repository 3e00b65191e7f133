//! The formats that the value of a Redis key can have, and how idemctl distinguishes them.

use std::time::Duration;

use humantime::parse_duration;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use strum::IntoStaticStr;

use super::closed_fields::ClosedFields;
use super::decoder::{Decoding, Encoding};
use crate::domain::as_str::as_str;

/// The state of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum State {
    #[serde(skip_deserializing)]
    Absent,
    /// A lock is held, and no result is stored.
    InProgress,
    Completed,
    /// The operation failed, and the failure is stored as the result.
    Failed,
    /// The lock was given up, and the record remains without a result.
    Released,
    /// A value is stored that idemctl cannot read with this schema.
    #[serde(skip_deserializing)]
    Unreadable,
}

as_str!(State);

impl State {
    /// True if a result is stored: a response or a failure.
    pub fn is_result(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

/// What every response body of a format is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum BodyIs {
    /// JSON or any text. The body of a JSON string is its text.
    #[default]
    Any,
    /// JSON. A JSON string is sent with its quotes.
    Json,
}

as_str!(BodyIs);

/// How a value holds a response body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum BodyEncoding {
    #[default]
    Text,
    Base64,
    /// Any JSON value. A string represents its own text.
    Json,
    /// An array of the numbers of the bytes, as serde writes `Vec<u8>`. So are the values of headers.
    Bytes,
}

as_str!(BodyEncoding);

/// The unit of the timestamps in a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Timestamp {
    /// Milliseconds since the epoch.
    #[default]
    #[serde(rename = "ms")]
    #[strum(serialize = "ms")]
    Milliseconds,
    /// Seconds since the epoch, with an optional fraction.
    #[serde(rename = "s")]
    #[strum(serialize = "s")]
    Seconds,
    Rfc3339,
    /// Ticks of .NET: units of 100 nanoseconds since the beginning of the year 1.
    Ticks,
}

as_str!(Timestamp);

/// An expiry in the value itself. The service's client obeys it, whatever TTL the Redis key has.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpiresAt {
    /// The JSON pointer to the time. A value without this field does not expire in this way.
    pub(crate) field: String,
    /// The time after that in the field. It is longer than zero if the field has the beginning of a
    /// lease whose length only the service knows.
    #[serde(default, deserialize_with = "lease")]
    pub(crate) plus: Duration,
    #[serde(default)]
    pub(crate) unit: Timestamp,
    #[serde(default)]
    pub(crate) clock: Clock,
    #[serde(default)]
    pub(crate) past: PastExpiry,
}

impl ExpiresAt {
    /// The time after that in the field, in milliseconds.
    pub(crate) fn plus_ms(&self) -> u64 {
        u64::try_from(self.plus.as_millis()).unwrap_or(u64::MAX)
    }
}

/// Parses the length of a lease, such as `30s`.
fn lease<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_duration(&text)
        .map_err(|why| D::Error::custom(format_args!("`{text}` is not a duration: {why}")))
}

/// Whose clock decides whether the expiry has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Clock {
    /// The clock of the service's client, which idemctl cannot read.
    #[default]
    Client,
    /// The clock of the Redis server.
    Server,
}

as_str!(Clock);

/// How the next request treats a value whose contained expiry has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum PastExpiry {
    /// As absent.
    #[default]
    Absent,
    /// As present; the next request replaces it.
    Reclaimable,
}

as_str!(PastExpiry);

/// One `[[value]]`: a format that the value of a Redis key can have, how it is recognised, and what
/// it shows about the record.
#[derive(Debug, Clone)]
pub struct ValueFormat {
    /// The name by which `when` refers to it.
    pub(crate) name: String,
    /// The index in [`super::Schema::keys`] of the Redis key that holds the value.
    pub(crate) key_index: usize,
    pub(crate) decoding: Decoding,
    /// The tests that a value of this format must pass.
    pub(crate) tests: Where,
    /// The fields that the service writes; `None` if a value may also have any other field.
    pub(crate) closed: Option<ClosedFields>,
    pub(crate) state: State,
    pub(crate) fields: FieldPointers,
    /// The members of the document that several fields are in, so that each is read only once.
    pub(crate) shared_parents: Vec<String>,
    pub(crate) body_encoding: BodyEncoding,
    pub(crate) body_is: BodyIs,
    pub(crate) timestamp: Timestamp,
    pub(crate) expires_at: Option<ExpiresAt>,
    /// The indexes of the later formats of another state at the same Redis key that only the fields
    /// of a whole value distinguish from this one. The first that fits a whole value is its format,
    /// so that the beginning of a value has this format only if none of them can still fit.
    pub(crate) rivals: Vec<usize>,
}

impl ValueFormat {
    /// The encoding of a value of this format after its codecs are undone.
    pub(crate) fn encoding(&self) -> Encoding {
        self.decoding.value.encoding
    }

    /// True if almost any text has this format. Only the Redis key then shows to which schema the
    /// value belongs.
    pub(crate) fn is_opaque(&self) -> bool {
        !self.encoding().has_fields() && self.tests.equals.is_none()
    }

    /// True if every text has this format, whatever it begins with.
    pub(crate) fn takes_any_text(&self) -> bool {
        self.encoding() == Encoding::Text
            && self.is_opaque()
            && self.decoding.value.codecs.is_empty()
    }

    /// True if a value that passes the tests of this format can pass those of another one, too, and
    /// has another state then.
    pub(super) fn has_rival(&self, other: &Self) -> bool {
        if self.closed.is_none() || self.key_index != other.key_index || self.state == other.state {
            return false;
        }
        // A text whose format is `equals` is never cut, and opaque text is what remains if no
        // other format fits.
        if self.decoding != other.decoding || other.is_opaque() || other.tests.equals.is_some() {
            return false;
        }
        for (path, value) in &self.tests.fields {
            if other.tests.fields.iter().any(|(known, wanted)| known == path && wanted != value) {
                return false;
            }
        }
        true
    }

    /// True if a value of this format is JSON without a codec.
    pub(crate) fn reads_json_as_it_stands(&self) -> bool {
        self.decoding.value.codecs.is_empty() && self.encoding() == Encoding::Json
    }

    /// True for a result that only the name of its Redis key identifies.
    pub(crate) fn is_result_by_key_name(&self) -> bool {
        self.state.is_result() && !self.is_distinctive()
    }

    /// True if the bytes of a value distinguish it from values of other programs: the schema lists
    /// all of its fields (`closed`), or the whole value.
    pub(crate) fn is_distinctive(&self) -> bool {
        self.closed.is_some() || self.tests.equals.is_some()
    }
}

/// The tests that a value of a format must pass.
#[derive(Debug, Clone, Default)]
pub(crate) struct Where {
    /// The bytes that the whole value must equal.
    pub(crate) equals: Option<Vec<u8>>,
    /// JSON pointers, and the value that must be at each.
    pub(crate) fields: Vec<(String, Value)>,
    /// JSON pointers to fields that must exist, with any value.
    pub(crate) has: Vec<String>,
}

impl Where {
    /// True if there are no tests: any value of the type has the format.
    pub(crate) fn is_empty(&self) -> bool {
        self.equals.is_none() && self.fields.is_empty() && self.has.is_empty()
    }
}

/// JSON pointers to the fields of a value. The empty pointer is the whole value.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FieldPointers {
    /// The owner token in a lock, which the service's scripts compare.
    pub(crate) owner: Option<String>,
    pub(crate) fingerprint: Option<String>,
    pub(crate) created_at: Option<String>,
    pub(crate) completed_at: Option<String>,
    pub(crate) status: Option<String>,
    /// The response's headers: an object of strings, or of lists of strings.
    pub(crate) headers: Option<String>,
    /// The content type, for services that store no other header.
    pub(crate) content_type: Option<String>,
    pub(crate) body: Option<String>,
    pub(crate) error: Option<String>,
    /// A reference to a result in a blob store.
    pub(crate) blob: Option<String>,
}

impl FieldPointers {
    /// The pointers that are set, each with the name of its field.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = (&'static str, &str)> {
        // Without `..`, so that the compiler reports a field that is missing below.
        let Self {
            owner,
            fingerprint,
            created_at,
            completed_at,
            status,
            headers,
            content_type,
            body,
            error,
            blob,
        } = self;
        let all = [
            ("owner", owner),
            ("fingerprint", fingerprint),
            ("created_at", created_at),
            ("completed_at", completed_at),
            ("status", status),
            ("headers", headers),
            ("content_type", content_type),
            ("body", body),
            ("error", error),
            ("blob", blob),
        ];
        all.into_iter().filter_map(|(name, pointer)| Some((name, pointer.as_deref()?)))
    }

    /// The members of the document that contain at least two of the fields, and are none
    /// themselves, unescaped.
    pub(super) fn shared_parents(&self) -> Vec<String> {
        let mut parents: Vec<String> = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        for (_, pointer) in self.pointers() {
            let Some((parent, _)) = pointer.strip_prefix('/').and_then(|rest| rest.split_once('/'))
            else {
                continue;
            };
            let is_field =
                self.pointers().any(|(_, other)| other.strip_prefix('/') == Some(parent));
            let is_escaped = parent.contains('~');
            if seen.contains(&parent) && !is_field && !is_escaped {
                parents.push(parent.to_owned());
            }
            seen.push(parent);
        }
        parents.dedup();
        parents
    }
}
