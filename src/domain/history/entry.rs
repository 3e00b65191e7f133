//! A line of an operation's details: one change to one Redis key.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::domain::change::provenance::Provenance;
use crate::domain::record::{KeyIdentity, RecordName};

/// The `what` of an entry if no reply showed the outcome of the change.
pub(crate) const OUTCOME_UNKNOWN: &str = "outcome-unknown";

/// The `what` of an entry if a step of several calls ended between two of them.
pub(crate) const PARTIAL: &str = "partial";

/// The `what` of an entry for a Redis key that was kept although the rest of its record changed.
pub(crate) const LEFT_ALONE: &str = "left-alone";

/// The `what` of an entry for a lock that got more time.
pub(crate) const EXTENDED: &str = "extended";

/// The `what` of an entry for a lock that got an expiry from `sweep --action expire`.
pub(crate) const EXPIRED: &str = "expired";

/// The command whose operations change a record several times.
pub(crate) const RECONCILE: &str = "reconcile";

/// One change to one Redis key: who made it, where, when, what and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry<'a> {
    /// RFC 3339 in UTC.
    pub at: Cow<'a, str>,
    /// The operator's user name.
    pub who: Cow<'a, str>,
    pub host: Cow<'a, str>,
    pub server: Cow<'a, str>,
    pub command: Cow<'a, str>,
    pub schema: Cow<'a, str>,
    /// The prefix of the record's Redis keys, if it is not the schema's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Cow<'a, str>>,
    /// The idempotency key; bytes that are not UTF-8 are escaped.
    pub key: String,
    /// The changed Redis key; bytes that are not UTF-8 are escaped.
    pub redis_key: String,
    /// The kind of change, such as `purged`, or one of the constants above.
    pub what: Cow<'a, str>,
    pub reason: Option<Cow<'a, str>>,
    pub backup: Option<Cow<'a, str>>,
    /// The name of the operation, which is one run of a command.
    pub op: Cow<'a, str>,
    /// The user who called sudo, if the command ran under sudo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sudo_user: Option<Cow<'a, str>>,
    /// The operation that this one undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<Cow<'a, str>>,
    /// The bytes of the idempotency key, if `key` does not hold them unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_base64: Option<String>,
    /// The bytes of the Redis key, if `redis_key` does not hold them unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis_key_base64: Option<String>,
    /// The identity of the value before the change, if the change wrote a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<KeyIdentity>,
    /// The identity of the value after the change; `None` if the outcome is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<KeyIdentity>,
    /// The server and database of the change. It is set on the first line from each place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Provenance>,
}

/// True for a kind of change by which an operator gives a lock its expiry.
pub(crate) fn gives_expiry(what: &str) -> bool {
    what == EXTENDED || what == EXPIRED
}

/// The decoded Base64 if there is any, else the bytes of the text.
fn bytes(base64: Option<&str>, text: &str) -> Vec<u8> {
    base64
        .and_then(|base64| STANDARD.decode(base64).ok())
        .unwrap_or_else(|| text.as_bytes().to_vec())
}

impl AuditEntry<'_> {
    /// True if the Redis key kept its value and got another expiry.
    pub(crate) fn changes_only_expiry(&self) -> bool {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => before.has_same_value(after),
            _ => false,
        }
    }

    /// The bytes of the Redis key.
    pub(crate) fn redis_key_bytes(&self) -> Vec<u8> {
        bytes(self.redis_key_base64.as_deref(), &self.redis_key)
    }

    /// The record's name.
    pub(crate) fn name(&self) -> RecordName {
        RecordName {
            db: None,
            schema: self.schema.to_string(),
            prefix: self.prefix.as_deref().map(str::to_owned),
            key: bytes(self.key_base64.as_deref(), &self.key),
        }
    }
}
