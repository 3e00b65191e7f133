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
    pub(crate) stores: Option<StatusCodes>,
    /// What becomes of the payload; `None` if begin compares it, or if any payload gets the same.
    pub(crate) payload: Option<PayloadUse>,
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

/// What a service makes of the payload, if its begin step does not compare it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum PayloadUse {
    /// Nothing: the fingerprint is a hash of other things, such as the path.
    Ignored,
    /// The Redis key is a hash that includes it, so that another payload has another record.
    InKey,
}

as_str!(PayloadUse);

/// The status codes of the responses that a service stores, as ranges; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StatusCodes(Vec<RangeInclusive<i64>>);

impl StatusCodes {
    pub(crate) fn contains(&self, code: i64) -> bool {
        self.0.iter().any(|range| range.contains(&code))
    }

    /// The first code.
    pub(crate) fn first(&self) -> i64 {
        self.0.first().map_or(200, |range| *range.start())
    }

    /// The ranges as in `schema.toml`, such as `200-424,426-499`.
    pub(crate) fn as_text(&self) -> String {
        let ranges = self.0.iter().map(|range| format!("{}-{}", range.start(), range.end()));
        ranges.collect::<Vec<_>>().join(",")
    }
}

impl<'de> Deserialize<'de> for StatusCodes {
    /// Parses `200-299`, the first and the last status code, or several such ranges.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut ranges = Vec::new();
        for part in text.split(',') {
            match range(part.trim()) {
                // A service whose first code is above the last would store nothing.
                Some(codes) if !codes.is_empty() => ranges.push(codes),
                _ => {
                    return Err(D::Error::custom(format_args!(
                        "`{text}` is not a range of status codes, such as 200-299"
                    )));
                }
            }
        }
        Ok(Self(ranges))
    }
}

fn range(text: &str) -> Option<RangeInclusive<i64>> {
    let (first, last) = text.split_once('-')?;
    Some(first.parse().ok()?..=last.parse().ok()?)
}
