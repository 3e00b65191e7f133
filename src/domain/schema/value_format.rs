//! The formats that the value of a Redis key can have, and how idemctl tells one from another.

use serde::Deserialize;
use serde_json::Value;
use strum::IntoStaticStr;

use super::closed_fields::ClosedFields;
use super::decoder::{Decoding, Encoding};
use crate::domain::as_str::as_str;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum State {
    #[serde(skip_deserializing)]
    Absent,
    /// A lock is held and no result is stored.
    InProgress,
    Completed,
    /// Something is stored that idemctl cannot read by this schema.
    #[serde(skip_deserializing)]
    Unreadable,
}

as_str!(State);

/// How a value holds a response body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum BodyEncoding {
    #[default]
    Text,
    Base64,
    /// Any JSON value; a string stands for its text.
    Json,
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
    /// Seconds since the epoch, a fraction allowed.
    #[serde(rename = "s")]
    #[strum(serialize = "s")]
    Seconds,
    Rfc3339,
    /// .NET's: tenths of microseconds since the beginning of the year 1.
    Ticks,
}

as_str!(Timestamp);

impl Timestamp {
    pub(crate) const ALL: [Self; 4] =
        [Self::Milliseconds, Self::Seconds, Self::Rfc3339, Self::Ticks];
}

/// An expiry in the value. The service's client goes by it, whatever TTL the Redis key has.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpiresAt {
    /// The JSON pointer to the time; a value without the field does not expire so.
    pub(crate) field: String,
    #[serde(default)]
    pub(crate) unit: Timestamp,
    #[serde(default)]
    pub(crate) clock: Clock,
    #[serde(default)]
    pub(crate) past: PastExpiry,
}

/// Whose clock tells whether that time is past.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Clock {
    /// That of the service's client, which idemctl does not see.
    #[default]
    Client,
    /// That of the Redis server.
    Server,
}

as_str!(Clock);

/// What a value is to the next request after its own expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum PastExpiry {
    /// As if nothing were there.
    #[default]
    Absent,
    /// There, and the next request takes it over.
    Reclaimable,
}

as_str!(PastExpiry);

/// One `[[value]]`: a format that the value of a Redis key can have, how it is recognised, and what it says of the record.
#[derive(Debug, Clone)]
pub struct ValueFormat {
    /// The name that `when` uses.
    pub(crate) name: String,
    /// The role of the Redis key that holds it: an index into [`super::Schema::keys`].
    pub(crate) role: usize,
    pub(crate) decoding: Decoding,
    /// What must hold for a value of this format.
    pub(crate) tests: Where,
    /// The fields that the service writes; `None` if a value may have any other field, too.
    pub(crate) closed: Option<ClosedFields>,
    /// True if the file says that any text is meant.
    pub(crate) is_marked_opaque: bool,
    pub(crate) state: State,
    pub(crate) fields: FieldPointers,
    pub(crate) body_encoding: BodyEncoding,
    pub(crate) timestamp: Timestamp,
    pub(crate) expires_at: Option<ExpiresAt>,
}

impl ValueFormat {
    /// What a value of this format is, once its codecs are undone.
    pub(crate) fn encoding(&self) -> Encoding {
        self.decoding.value.encoding
    }

    /// True if any text, or nearly any, is of this format: only the Redis key tells whose the value is.
    pub(crate) fn is_opaque(&self) -> bool {
        !self.encoding().has_fields() && self.tests.equals.is_none()
    }

    /// True if a value of this format is JSON with no codec around it.
    pub(crate) fn reads_json_as_it_stands(&self) -> bool {
        self.decoding.value.codecs.is_empty() && self.encoding() == Encoding::Json
    }

    /// True if the bytes of a value tell it from other programs' values.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_some() || self.tests.equals.is_some()
    }
}

/// What must hold for a value of a format.
#[derive(Debug, Clone, Default)]
pub(crate) struct Where {
    /// The whole value equals these bytes.
    pub(crate) equals: Option<Vec<u8>>,
    /// JSON pointers and the values that must be there.
    pub(crate) fields: Vec<(String, Value)>,
    /// JSON pointers that must be there with any value.
    pub(crate) has: Vec<String>,
}

impl Where {
    /// True if there are no tests: any value of the type passes.
    pub(crate) fn is_empty(&self) -> bool {
        self.equals.is_none() && self.fields.is_empty() && self.has.is_empty()
    }
}

/// JSON pointers to what a value holds; the empty pointer is the whole value.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FieldPointers {
    /// Who holds the lock (the fencing token).
    pub(crate) owner: Option<String>,
    pub(crate) fingerprint: Option<String>,
    pub(crate) created_at: Option<String>,
    pub(crate) completed_at: Option<String>,
    pub(crate) status: Option<String>,
    /// The response's headers: an object of strings or of lists of strings.
    pub(crate) headers: Option<String>,
    /// The one header of services that keep no others.
    pub(crate) content_type: Option<String>,
    pub(crate) body: Option<String>,
    pub(crate) error: Option<String>,
    /// A pointer to a result kept in a blob store.
    pub(crate) blob: Option<String>,
}

impl FieldPointers {
    /// The pointers there are, each with the name of what stands there.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = (&'static str, &str)> {
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
}
