//! `schema.toml` as it is written, before any name in it is resolved. The same types read the JSON that the built-in
//! ones are compiled in as.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

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
    pub write: RawWrite,
    pub begin: RawStep,
    pub complete: RawStep,
    pub release: Option<RawStep>,
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
    #[serde(default)]
    pub escape_html: bool,
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
    pub keys: Vec<String>,
    #[serde(default)]
    pub args: Vec<String>,
    pub command: Option<Vec<String>>,
    pub replies: Vec<RawReply>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawReply {
    pub word: Option<String>,
    pub integer: Option<i64>,
    pub nil: Option<bool>,
    pub error: Option<String>,
    pub array: Option<i64>,
    pub text: Option<bool>,
    pub means: RawMeaning,
    pub when: Option<RawWhen>,
    pub client: Option<String>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RawMeaning {
    Acquired,
    Conflict,
    Replay,
    Fail,
    Stored,
    Refused,
    Released,
    Next,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum RawWhen {
    One(BTreeMap<String, String>),
    Any(Vec<BTreeMap<String, String>>),
}
