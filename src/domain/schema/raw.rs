//! `schema.toml` as it is written, before any name in it is resolved.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSchema {
    pub format: Spanned<u32>,
    pub name: Spanned<String>,
    #[serde(default)]
    pub summary: String,
    pub older_release_of: Option<String>,
    pub keys: Spanned<RawKeys>,
    pub ttl: RawTtl,
    pub value: Vec<Spanned<RawValue>>,
    pub write: RawWrite,
    pub begin: Spanned<RawStep>,
    pub complete: Spanned<RawStep>,
    pub release: Option<Spanned<RawStep>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawKeys {
    pub record: Option<Spanned<String>>,
    pub lock: Option<Spanned<String>>,
    pub result: Option<Spanned<String>>,
    #[serde(default)]
    pub prefix: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTtl {
    pub lock: Spanned<String>,
    pub result: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawValue {
    pub name: Spanned<String>,
    pub at: Spanned<RawSlot>,
    pub encoding: RawEncoding,
    pub equals: Option<Spanned<String>>,
    #[serde(default, rename = "where")]
    pub fields_are: BTreeMap<String, Scalar>,
    #[serde(default)]
    pub has: Vec<Spanned<String>>,
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

#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Scalar {
    Flag(bool),
    Integer(i64),
    Text(String),
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawFields {
    pub owner: Option<Spanned<String>>,
    pub fingerprint: Option<Spanned<String>>,
    pub created_at: Option<Spanned<String>>,
    pub completed_at: Option<Spanned<String>>,
    pub status: Option<Spanned<String>>,
    pub headers: Option<Spanned<String>>,
    pub body: Option<Spanned<String>>,
    pub error: Option<Spanned<String>>,
    pub blob: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawWrite {
    pub lock_value: Spanned<String>,
    pub result_value: Spanned<String>,
    #[serde(default)]
    pub escape_html: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawStep {
    #[serde(default)]
    pub checks_owner: bool,
    pub note: Option<String>,
    pub call: Vec<Spanned<RawCall>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCall {
    pub script: Option<Spanned<String>>,
    #[serde(default)]
    pub keys: Vec<Spanned<String>>,
    #[serde(default)]
    pub args: Vec<Spanned<String>>,
    pub command: Option<Vec<Spanned<String>>>,
    pub replies: Vec<Spanned<RawReply>>,
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
    pub means: Spanned<RawMeaning>,
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
