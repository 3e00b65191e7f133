//! `schema.toml` as the file is written, before the names in the file are resolved: where a type of the room says the
//! same, that type itself is read. The built-in schemas are compiled in as JSON, which these types read as well.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::conduct::Conduct;
use super::forms::{BodyEncoding, Encoding, Fields, State, Timestamp};
use super::role::Role;
use super::steps::{First, Meaning};
use super::value_template::Template;
use super::write_format::WriteFormat;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSchema {
    pub format: u32,
    pub name: String,
    #[serde(default)]
    pub summary: String,
    pub older_release_of: Option<String>,
    pub keys: RawKeys,
    pub ttl: RawTtl,
    pub value: Vec<RawValue>,
    pub write: WriteFormat,
    pub begin: RawStep,
    pub complete: RawStep,
    pub renew: Option<RawStep>,
    pub release: Option<RawStep>,
    #[serde(default)]
    pub service: Conduct,
}

impl RawSchema {
    /// Every call of every step, with the step's name.
    pub(super) fn calls(&self) -> impl Iterator<Item = (&'static str, &RawCall)> {
        let steps = [
            ("begin", Some(&self.begin)),
            ("renew", self.renew.as_ref()),
            ("complete", Some(&self.complete)),
            ("release", self.release.as_ref()),
        ];
        let calls =
            |(name, step): (_, Option<_>)| step.map(|step: &RawStep| step.call.iter().map(move |call| (name, call)));
        steps.into_iter().filter_map(calls).flatten()
    }
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
    #[serde(deserialize_with = "duration")]
    pub lock: Duration,
    #[serde(deserialize_with = "duration")]
    pub result: Duration,
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    match humantime::parse_duration(&text) {
        Ok(duration) if duration.is_zero() => Err(D::Error::custom("a TTL is longer than zero")),
        Ok(duration) => Ok(duration),
        Err(why) => Err(D::Error::custom(format_args!("`{text}` is no duration ({why}): write 30s, 5m or 24h"))),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawValue {
    pub name: String,
    pub at: Role,
    pub encoding: Encoding,
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
    pub state: State,
    #[serde(default)]
    pub fields: Fields,
    #[serde(default)]
    pub body_encoding: BodyEncoding,
    #[serde(default)]
    pub timestamp: Timestamp,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawStep {
    #[serde(default)]
    pub checks_owner: bool,
    pub note: Option<String>,
    pub call: Vec<RawCall>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCall {
    pub script: Option<String>,
    #[serde(default)]
    pub keys: Vec<Template>,
    #[serde(default)]
    pub args: Vec<Template>,
    pub command: Option<Vec<Template>>,
    pub replies: Vec<RawReply>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawReply {
    pub word: Option<String>,
    pub integer: Option<i64>,
    pub nil: Option<bool>,
    pub error: Option<String>,
    pub array: Option<First>,
    pub text: Option<bool>,
    pub means: Meaning,
    #[serde(default, deserialize_with = "alternatives")]
    pub when: Vec<BTreeMap<String, String>>,
    pub client: Option<String>,
}

/// Reads the alternatives of a reply: one table, or a list of tables.
fn alternatives<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<BTreeMap<String, String>>, D::Error> {
    deserializer.deserialize_any(Alternatives)
}

struct Alternatives;

impl<'de> Visitor<'de> for Alternatives {
    type Value = Vec<BTreeMap<String, String>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a table of slots, or a list of such tables")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        BTreeMap::deserialize(MapAccessDeserializer::new(map)).map(|one| vec![one])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(seq))
    }
}
