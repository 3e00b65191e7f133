//! What a service does that no script shows.

use std::ops::RangeInclusive;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use strum::IntoStaticStr;

use crate::domain::as_str::as_str;

/// What a service does around the steps of the state machine: its own code, which no script shows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServiceBehavior {
    /// When its handler fails; `None` where it is not told.
    pub(crate) on_failure: Option<OnFailure>,
    /// When the client is gone before the response; `None` where it is not told.
    pub(crate) on_hang_up: Option<OnHangUp>,
    /// When Redis cannot be reached; `None` where it is not told.
    pub(crate) without_redis: Option<WithoutRedis>,
    /// The status codes of responses it stores; `None` is all.
    #[serde(deserialize_with = "status_codes")]
    pub(crate) stores: Option<RangeInclusive<i64>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum OnFailure {
    /// The service stores the error as a result.
    Store,
    Release,
    /// Nothing: the lock stays until its TTL ends.
    Keep,
}

as_str!(OnFailure);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum OnHangUp {
    /// The service releases the lock, while the handler still runs.
    Release,
    /// The service goes on and stores the result.
    GoOn,
}

as_str!(OnHangUp);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum WithoutRedis {
    /// The service refuses the request (fail closed).
    Refuse,
    /// The service executes the request all the same (fail open).
    Execute,
}

as_str!(WithoutRedis);

/// Reads `200-299`: the first and the last status code.
fn status_codes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<RangeInclusive<i64>>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let codes = text
        .split_once('-')
        .and_then(|(first, last)| Some(first.parse().ok()?..=last.parse().ok()?));
    let codes = codes.filter(|codes: &RangeInclusive<i64>| !codes.is_empty());
    let wrong =
        || D::Error::custom(format_args!("`{text}` is no range of status codes: write 200-299"));
    codes.ok_or_else(wrong).map(Some)
}
