//! A `schema.toml` as it is written, before its names are resolved. Types of this module that have
//! the same form in the file are read directly. The built-in schemas are compiled in as JSON, which
//! these types read as well.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, IntoDeserializer as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use strum::IntoStaticStr;

use super::decoder::{self, Encoding};
use super::service_behavior::ServiceBehavior;
use super::steps::{First, Meaning};
use super::ttl::parse_ttl_or_none;
use super::value_format::{BodyEncoding, BodyIs, ExpiresAt, FieldPointers, State, Timestamp};
use super::value_template::Template;
use super::write_format::WriteFormat;
use crate::domain::as_str::as_str;

/// A whole `schema.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSchema {
    /// 0 if the file has none.
    #[serde(default)]
    pub(crate) format: u32,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) summary: String,
    pub(crate) older_release_of: Option<String>,
    /// The protocol of the steps that the file does not describe.
    pub(crate) protocol: Option<Protocol>,
    /// What the service's client receives, by the meaning of a reply of the protocol.
    #[serde(default)]
    pub(crate) client: BTreeMap<String, String>,
    /// The unit of the TTLs that the protocol sends.
    #[serde(default)]
    pub(crate) ttl_unit: TtlUnit,
    pub(crate) keys: RawKeys,
    pub(crate) ttl: RawTtl,
    #[serde(default)]
    pub(crate) value: Vec<RawValue>,
    pub(crate) write: Option<WriteFormat>,
    pub(crate) begin: Option<RawStep>,
    pub(crate) complete: Option<RawStep>,
    pub(crate) renew: Option<RawStep>,
    pub(crate) release: Option<RawStep>,
    #[serde(default)]
    pub(crate) service: ServiceBehavior,
}

impl RawSchema {
    /// Every call of every step, with the step's name and the call's index in the step.
    pub(super) fn calls(&self) -> impl Iterator<Item = (&'static str, usize, &RawCall)> {
        let mut calls = Vec::new();
        let steps = [
            ("begin", &self.begin),
            ("renew", &self.renew),
            ("complete", &self.complete),
            ("release", &self.release),
        ];
        for (name, step) in steps {
            for (index, call) in step.iter().flat_map(|step| &step.call).enumerate() {
                calls.push((name, index, call));
            }
        }
        calls.into_iter()
    }
}

/// The unit of the TTLs that the plain commands of a protocol send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TtlUnit {
    /// Milliseconds, with `PX`.
    #[default]
    Ms,
    /// Seconds, with `EX`.
    S,
}

/// How a library takes locks and stores results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Protocol {
    /// `SET NX`, then `GET`; the client decides by the value. Complete is a `SET`.
    SetNxGet,
    /// `GET`, then `SET NX`. Otherwise as `set-nx-get`.
    GetSetNx,
    /// Scripts that compare the owner in the lock.
    FencedScript,
}

as_str!(Protocol);

/// The table `[keys]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawKeys {
    pub(crate) record: Option<String>,
    pub(crate) lock: Option<String>,
    pub(crate) result: Option<String>,
    #[serde(default)]
    pub(crate) prefix: OneOrMore,
    /// The regular expression that `{key}` must match.
    pub(crate) key: Option<String>,
    #[serde(default)]
    /// Templates of Redis keys that are not records.
    pub(crate) ignore: Vec<String>,
}

/// A string, or a list of strings.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a text, or a list of texts")]
pub(super) enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl Default for OneOrMore {
    fn default() -> Self {
        Self::One(String::new())
    }
}

impl OneOrMore {
    /// The strings as a list.
    pub(super) fn texts(&self) -> Vec<&str> {
        match self {
            Self::One(text) => vec![text],
            Self::More(texts) => texts.iter().map(String::as_str).collect(),
        }
    }
}

/// The table `[ttl]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTtl {
    #[serde(default, deserialize_with = "duration")]
    pub(crate) lock: Option<Duration>,
    #[serde(default, deserialize_with = "duration")]
    pub(crate) result: Option<Duration>,
}

/// Parses `30s`, or `none` for a Redis key on which the service sets no TTL.
fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_ttl_or_none(&text)
        .map(Some)
        .map_err(|why| D::Error::custom(format_args!("`{text}` is not a duration: {why}")))
}

/// One `[[value]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawValue {
    pub(crate) name: String,
    /// The template in `[write]` that describes what this table does not.
    pub(crate) written: Option<Written>,
    /// The name of a Redis key in `[keys]`.
    pub(crate) at: Option<String>,
    /// The type of the Redis key as an encoding; `None` for a string.
    #[serde(default, rename = "type", deserialize_with = "value_type")]
    pub(crate) kind: Option<Encoding>,
    #[serde(default, deserialize_with = "encoding")]
    pub(crate) encoding: Option<Encoding>,
    pub(crate) decode: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) decode_at: BTreeMap<String, Vec<String>>,
    pub(crate) equals: Option<String>,
    #[serde(default, rename = "where")]
    pub(crate) fields_are: BTreeMap<String, Value>,
    #[serde(default)]
    pub(crate) has: Vec<String>,
    pub(crate) required: Option<Vec<String>>,
    pub(crate) optional: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) null: Vec<String>,
    #[serde(default)]
    pub(crate) strict: bool,
    #[serde(default)]
    pub(crate) opaque: bool,
    pub(crate) state: Option<State>,
    #[serde(default)]
    pub(crate) fields: FieldPointers,
    pub(crate) body_encoding: Option<BodyEncoding>,
    #[serde(default)]
    pub(crate) body_is: BodyIs,
    pub(crate) timestamp: Option<Timestamp>,
    pub(crate) expires_at: Option<ExpiresAt>,
}

impl RawValue {
    /// True for the format of a response or a failure.
    pub(super) fn is_result(&self) -> bool {
        self.state.is_some_and(State::is_result)
    }
}

/// Parses an encoding. For an encoding that idemctl does not decode, the error says what to use
/// instead.
fn encoding<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Encoding>, D::Error> {
    let word = String::deserialize(deserializer)?;
    if let Some(why) = decoder::not_decoded(&word) {
        return Err(D::Error::custom(why));
    }
    let encoding = Encoding::deserialize(word.as_str().into_deserializer())?;
    Ok(Some(encoding))
}

/// Parses a type. For a stream, the error says why there is none.
fn value_type<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Encoding>, D::Error> {
    let word = String::deserialize(deserializer)?;
    if word == "stream" {
        return Err(D::Error::custom(
            "a record cannot be in a stream, because idemctl compares and removes whole Redis keys",
        ));
    }
    match word.parse::<Encoding>() {
        Ok(encoding) if encoding.other_type().is_some() => Ok(Some(encoding)),
        _ if word == "string" => Ok(None),
        _ => Err(D::Error::custom(format_args!(
            "`{word}` is not a type; write string, hash, set, zset or list"
        ))),
    }
}

/// One step, such as `[begin]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawStep {
    #[serde(default)]
    pub(crate) checks_owner: bool,
    #[serde(default)]
    pub(crate) gives_ttl: bool,
    pub(crate) note: Option<String>,
    #[serde(default)]
    pub(crate) call: Vec<RawCall>,
}

/// One `[[begin.call]]`, or a call of another step.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCall {
    pub(crate) script: Option<String>,
    #[serde(default)]
    pub(crate) keys: Vec<Template>,
    #[serde(default)]
    pub(crate) args: Vec<Template>,
    pub(crate) command: Option<Vec<Template>>,
    pub(crate) replies: Vec<RawReply>,
}

impl RawCall {
    /// The words that are sent, with the name of their list: KEYS and ARGV of a script, or the
    /// words of a command.
    pub(super) fn lists(&self) -> [(&'static str, &[Template]); 3] {
        [
            ("keys", &self.keys),
            ("args", &self.args),
            ("command", self.command.as_deref().unwrap_or_default()),
        ]
    }

    /// All words that are sent.
    pub(super) fn words(&self) -> impl Iterator<Item = &Template> {
        self.lists().into_iter().flat_map(|(_, words)| words)
    }
}

/// One entry of a call's `replies`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawReply {
    pub(crate) word: Option<String>,
    pub(crate) integer: Option<i64>,
    pub(crate) nil: Option<bool>,
    pub(crate) error: Option<String>,
    pub(crate) array: Option<First>,
    pub(crate) text: Option<bool>,
    pub(crate) value: Option<String>,
    pub(crate) means: Meaning,
    #[serde(default, deserialize_with = "alternatives")]
    pub(crate) when: Vec<BTreeMap<String, String>>,
    pub(crate) client: Option<String>,
}

/// Parses the alternatives of a reply: one table, or a list of tables.
fn alternatives<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<BTreeMap<String, String>>, D::Error> {
    deserializer.deserialize_any(Alternatives)
}

struct Alternatives;

impl<'de> Visitor<'de> for Alternatives {
    type Value = Vec<BTreeMap<String, String>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a table of roles, or a list of such tables")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let only = BTreeMap::deserialize(MapAccessDeserializer::new(map))?;
        Ok(vec![only])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(seq))
    }
}

/// A template in `[write]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, IntoStaticStr)]
pub(super) enum Written {
    #[serde(rename = "lock_value")]
    #[strum(serialize = "lock_value")]
    Lock,
    #[serde(rename = "result_value")]
    #[strum(serialize = "result_value")]
    Result,
    #[serde(rename = "failed_value")]
    #[strum(serialize = "failed_value")]
    Failed,
}
