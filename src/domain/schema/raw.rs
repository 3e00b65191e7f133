//! `schema.toml` as it is written, before any name in it is resolved. The same types read the JSON that the built-in
//! ones are compiled in as.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A text that is only looked at, so that it can stay where it is in the file. Most of a schema's texts are of this kind.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSchema<'a> {
    pub format: u32,
    pub name: String,
    #[serde(default)]
    pub summary: String,
    pub older_release_of: Option<String>,
    pub keys: RawKeys,
    pub ttl: RawTtl,
    pub value: Vec<RawValue>,
    pub write: RawWrite,
    #[serde(borrow)]
    pub begin: RawStep<'a>,
    #[serde(borrow)]
    pub complete: RawStep<'a>,
    #[serde(borrow)]
    pub renew: Option<RawStep<'a>>,
    #[serde(borrow)]
    pub release: Option<RawStep<'a>>,
    #[serde(default)]
    pub service: RawConduct,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawKeys {
    pub record: Option<String>,
    pub lock: Option<String>,
    pub result: Option<String>,
    #[serde(default)]
    pub prefix: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTtl {
    pub lock: String,
    pub result: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawValue {
    pub name: String,
    pub at: RawSlot,
    pub encoding: RawEncoding,
    pub equals: Option<String>,
    #[serde(default, rename = "where")]
    pub fields_are: BTreeMap<String, Value>,
    #[serde(default)]
    pub has: Vec<String>,
    pub required: Option<Vec<String>>,
    pub optional: Option<Vec<String>>,
    #[serde(default)]
    pub null: Vec<String>,
    #[serde(default)]
    pub strict: bool,
    #[serde(default)]
    pub opaque: bool,
    pub state: RawState,
    #[serde(default)]
    pub fields: RawFields,
    #[serde(default)]
    pub body_encoding: RawBodyEncoding,
    #[serde(default)]
    pub timestamp: RawTimestamp,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawSlot {
    Record,
    Lock,
    Result,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawEncoding {
    Text,
    Json,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawState {
    InProgress,
    Completed,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawBodyEncoding {
    #[default]
    Text,
    Base64,
    Json,
}

#[derive(Deserialize, Default, Clone, Copy)]
pub(super) enum RawTimestamp {
    #[default]
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "s")]
    Seconds,
    #[serde(rename = "rfc3339")]
    Rfc3339,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawFields {
    pub owner: Option<String>,
    pub fingerprint: Option<String>,
    pub created_at: Option<String>,
    pub completed_at: Option<String>,
    pub status: Option<String>,
    pub headers: Option<String>,
    pub body: Option<String>,
    pub error: Option<String>,
    pub blob: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawWrite {
    pub lock_value: String,
    pub result_value: String,
    pub failed_value: Option<String>,
    pub response: Option<String>,
    pub no_body: Option<String>,
    #[serde(default)]
    pub header_names: RawHeaderNames,
    #[serde(default)]
    pub escape_html: bool,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawHeaderNames {
    #[default]
    AsGiven,
    Canonical,
    Lower,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawConduct {
    pub on_failure: Option<RawOnFailure>,
    pub on_hang_up: Option<RawOnHangUp>,
    pub without_redis: Option<RawWithoutRedis>,
    pub stores: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawOnFailure {
    Store,
    Release,
    Keep,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawOnHangUp {
    Release,
    GoOn,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawWithoutRedis {
    Refuse,
    Execute,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawStep<'a> {
    #[serde(default)]
    pub checks_owner: bool,
    pub note: Option<String>,
    #[serde(borrow)]
    pub call: Vec<RawCall<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCall<'a> {
    pub script: Option<String>,
    #[serde(borrow, default)]
    pub keys: Vec<Text<'a>>,
    #[serde(borrow, default)]
    pub args: Vec<Text<'a>>,
    #[serde(borrow)]
    pub command: Option<Vec<Text<'a>>>,
    #[serde(borrow)]
    pub replies: Vec<RawReply<'a>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawReply<'a> {
    pub word: Option<String>,
    pub integer: Option<i64>,
    pub nil: Option<bool>,
    pub error: Option<String>,
    pub array: Option<RawFirst>,
    pub text: Option<bool>,
    pub means: RawMeaning,
    #[serde(borrow)]
    pub when: Option<RawWhen<'a>>,
    pub client: Option<String>,
}

/// The first element of an array reply.
#[derive(Deserialize)]
#[serde(untagged, expecting = "the first element of an array is a whole number or a word")]
pub(super) enum RawFirst {
    Integer(i64),
    Word(String),
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawMeaning {
    Acquired,
    Conflict,
    Replay,
    Mismatch,
    Fail,
    Stored,
    Renewed,
    Refused,
    Released,
    Next,
}

/// The alternatives: one table, or a list of them.
pub(super) struct RawWhen<'a>(pub Vec<BTreeMap<Text<'a>, Text<'a>>>);

impl<'de: 'a, 'a> Deserialize<'de> for RawWhen<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Alternatives)
    }
}

struct Alternatives;

impl<'de> Visitor<'de> for Alternatives {
    type Value = RawWhen<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a table of slots, or a list of such tables")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawWhen<'de>, A::Error> {
        BTreeMap::deserialize(MapAccessDeserializer::new(map)).map(|one| RawWhen(vec![one]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<RawWhen<'de>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(seq)).map(RawWhen)
    }
}
