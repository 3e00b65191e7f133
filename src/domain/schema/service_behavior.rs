//! The behaviour of a service that no script shows.

use std::ops::RangeInclusive;

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use strum::IntoStaticStr;

use crate::domain::as_str::as_str;

/// What a service does around the steps of the state machine. Its own code does this, and no script
/// shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServiceBehavior {
    /// What it does when its handler fails; `None` if the file does not say.
    pub(crate) on_failure: Option<OnFailure>,
    /// What it does when the client disconnects before the response; `None` if the file does not
    /// say.
    pub(crate) on_hang_up: Option<OnHangUp>,
    /// What it does when Redis is unreachable; `None` if the file does not say.
    pub(crate) without_redis: Option<WithoutRedis>,
    /// The status codes of responses that it stores; `None` if it stores all.
    #[serde(deserialize_with = "status_codes")]
    pub(crate) stores: Option<RangeInclusive<i64>>,
    /// A body that its handler may return, for the workers that idemctl plays; `None` if any body
    /// will do. `{worker}` stands for the name of the worker.
    pub(crate) sample_body: Option<String>,
}

impl ServiceBehavior {
    /// The sample body as this worker returns it.
    pub(crate) fn sample_body_of(&self, worker: &str) -> Option<String> {
        Some(self.sample_body.as_ref()?.replace("{worker}", worker))
    }
}

/// How the system in which an operation has its effect treats the same operation again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct EffectBehavior {
    /// True if the service passes the idempotency key on, and the system has the effect once per
    /// key. A later request with the key gets the outcome of the first one.
    pub(crate) keyed: bool,
}

/// What a service does when its handler fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum OnFailure {
    /// The service stores the error as a result.
    Store,
    Release,
    /// The service does nothing: the lock remains until its TTL expires.
    Keep,
}

as_str!(OnFailure);

/// What a service does when the client disconnects before the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum OnHangUp {
    /// The service releases the lock while the handler is still running.
    Release,
    /// The service continues and stores the result.
    GoOn,
}

as_str!(OnHangUp);

/// What a service does when Redis is unreachable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum WithoutRedis {
    /// The service rejects the request (fail closed).
    Refuse,
    /// The service executes the request anyway (fail open).
    Execute,
}

as_str!(WithoutRedis);

/// Parses `200-299`: the first and the last status code.
fn status_codes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<RangeInclusive<i64>>, D::Error> {
    let text = String::deserialize(deserializer)?;
    match range(&text) {
        // A service whose first code is above the last would store nothing.
        Some(codes) if !codes.is_empty() => Ok(Some(codes)),
        _ => Err(D::Error::custom(format_args!(
            "`{text}` is not a range of status codes, such as 200-299"
        ))),
    }
}

fn range(text: &str) -> Option<RangeInclusive<i64>> {
    let (first, last) = text.split_once('-')?;
    Some(first.parse().ok()?..=last.parse().ok()?)
}
